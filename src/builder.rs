//! Building a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::connect_string::ConnectString;
use crate::connection::{Config, Connection, Scope};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Acl;
use crate::retry::{ExponentialBackoff, RetryPolicy};

impl Client {
    /// Starts to build a client for a connect string: servers with their ports (2181 where none is
    /// given), separated by commas, and a chroot if wanted: `zk1:2181,zk2,[::1]:2183/app`.
    ///
    /// Nothing is looked at before [`ClientBuilder::connect`] or [`ClientBuilder::start`].
    pub fn builder(connect_string: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(connect_string.into())
    }
}

/// ZooKeeper counts timeouts in milliseconds, in 32 signed bits.
const LONGEST_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// Collects the settings of a [`Client`]; made by [`Client::builder`].
///
/// Setters may come in any order and never fail; whatever is wrong is reported by
/// [`connect`](Self::connect) or [`start`](Self::start), with the name and value of the setting.
#[derive(Clone)]
#[must_use = "nothing happens before `connect` or `start`"]
pub struct ClientBuilder {
    connect_string: String,
    session_timeout: Duration,
    connection_timeout: Duration,
    retry_policy: Arc<dyn RetryPolicy>,
    default_acl: Vec<Acl>,
    node_data: Option<Vec<u8>>,
    auth: Vec<(String, Vec<u8>)>,
}

impl ClientBuilder {
    pub(crate) fn new(connect_string: String) -> Self {
        Self {
            connect_string,
            session_timeout: Duration::from_secs(15),
            connection_timeout: Duration::from_secs(15),
            retry_policy: Arc::new(
                ExponentialBackoff::new(Duration::from_millis(100))
                    .max_retries(8)
                    .max_delay(Duration::from_secs(3)),
            ),
            default_acl: Acl::anyone_all(),
            node_data: None,
            auth: Vec::new(),
        }
    }

    /// The session timeout to ask for, by default 15 s: how long the server keeps the session, and
    /// every lock held by it, after it last heard of this client. The server may grant another one,
    /// see [`Session::timeout`](crate::Session::timeout).
    ///
    /// From 1 ms to `i32::MAX` ms. It should be several times the longest pause to be expected of
    /// this process and of the network: the time counts from the last request that the leader
    /// confirmed, which in an idle session is up to two thirds of the timeout ago. So a session,
    /// and what is held by it, is called lost after a third to the whole of the timeout without
    /// answers.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// The longest wait for a connection, by default 15 s: of [`connect`](Self::connect), of each
    /// call, and of [`Client::close`] for its answer.
    ///
    /// At least 1 ms; `Duration::MAX` is for ever.
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.connection_timeout = timeout;
        self
    }

    /// How operations are tried again, by default 8 times after pauses that grow from 100 ms to
    /// 3 s.
    ///
    /// A policy decides on attempts that were made. It does not prolong the wait for a connection:
    /// that is the [connection timeout](Self::connection_timeout), once a call.
    ///
    /// The same policy gives the pauses between attempts to open a new session; there its last
    /// pause, or 100 ms if that is longer, is repeated until the client is closed. Within a session
    /// the connection is restored without it.
    pub fn retry_policy(mut self, policy: impl RetryPolicy) -> Self {
        self.retry_policy = Arc::new(policy);
        self
    }

    /// As [`retry_policy`](Self::retry_policy), for a policy that is chosen at run time or shared.
    pub fn shared_retry_policy(mut self, policy: Arc<dyn RetryPolicy>) -> Self {
        self.retry_policy = policy;
        self
    }

    /// The access control list of nodes that are created without one of their own, by default
    /// [`Acl::anyone_all`].
    pub fn default_acl(mut self, acl: impl Into<Vec<Acl>>) -> Self {
        self.default_acl = acl.into();
        self
    }

    /// The data of nodes that are created without data of their own, those of the recipes
    /// included; by default what [`describe_process`](crate::describe_process) gives.
    #[doc(alias = "defaultData")]
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.node_data = Some(data.into());
        self
    }

    /// Credentials, given to the server in every session; may be called several times.
    ///
    /// `scheme` is one that the server knows, for example `digest` with `user:password`.
    #[doc(alias = "authorization")]
    pub fn auth(mut self, scheme: impl Into<String>, credentials: impl Into<Vec<u8>>) -> Self {
        self.auth.push((scheme.into(), credentials.into()));
        self
    }

    /// Credentials of the scheme `digest`.
    pub fn auth_digest(self, user: &str, password: &str) -> Self {
        self.auth("digest", format!("{user}:{password}"))
    }

    /// Starts the client and waits until it is connected, at most the connection timeout.
    ///
    /// # Errors
    /// `InvalidArgument` for a setting that cannot work; `NotConnected` after the connection
    /// timeout, with what each server said; `AuthFailed` as soon as the server has refused the
    /// credentials. The client is closed then.
    ///
    /// # Cancel safety
    /// Dropped, the client is closed.
    pub async fn connect(self) -> Result<Client> {
        let timeout = self.connection_timeout;
        let client = self.start()?;
        match client.wait_connected(timeout).await {
            Ok(_) => Ok(client),
            Err(error) => {
                client.close().await;
                Err(error)
            }
        }
    }

    /// Starts the client without waiting for a connection.
    ///
    /// # Errors
    /// `InvalidArgument` for a setting that cannot work.
    pub fn start(self) -> Result<Client> {
        let config = self.into_config()?;
        let root = config.connect_string.root().clone();
        Ok(Client::new(Scope::new(Connection::start(config)?, root)))
    }

    fn into_config(self) -> Result<Config> {
        let connect_string = ConnectString::parse(&self.connect_string)?;
        check_timeout("session_timeout", self.session_timeout, LONGEST_TIMEOUT)?;
        check_timeout("connection_timeout", self.connection_timeout, Duration::MAX)?;
        if self.default_acl.is_empty() {
            return Err(Error::new(ErrorKind::InvalidAcl)
                .with_detail("default_acl is empty: nobody could use the nodes"));
        }
        if let Some((scheme, _)) = self.auth.iter().find(|(scheme, _)| scheme.is_empty()) {
            return Err(Error::invalid(format!("auth: the scheme {scheme:?} is empty")));
        }
        Ok(Config {
            connect_string,
            session_timeout: self.session_timeout,
            connection_timeout: self.connection_timeout,
            retry_policy: self.retry_policy,
            default_acl: self.default_acl.into(),
            node_data: self.node_data.map(Into::into),
            auth: self.auth,
        })
    }
}

fn check_timeout(setting: &str, value: Duration, longest: Duration) -> Result<()> {
    if value < Duration::from_millis(1) || value > longest {
        let most = match longest {
            Duration::MAX => String::new(),
            longest => format!(" and at most {longest:?}"),
        };
        return Err(Error::invalid(format!("{setting} is {value:?}: must be at least 1ms{most}")));
    }
    Ok(())
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schemes: Vec<_> = self.auth.iter().map(|(scheme, _)| scheme).collect();
        f.debug_struct("ClientBuilder")
            .field("connect_string", &self.connect_string)
            .field("session_timeout", &self.session_timeout)
            .field("connection_timeout", &self.connection_timeout)
            .field("default_acl", &self.default_acl)
            // The credentials are secret.
            .field("auth", &schemes)
            .finish_non_exhaustive()
    }
}
