//! An ensemble of real ZooKeeper servers, and partitions between them.
//!
//! A server that is isolated goes on to talk to its clients and to nobody else: the case in which a
//! client can believe longest in a session that the rest of the ensemble has ended.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::builder::{ServerBuilder, retry_on_taken_ports};
use crate::config::{Config, Member};
use crate::error::{Error, ErrorKind};
use crate::four_letter::Role;
use crate::java::Java;
use crate::links::Links;
use crate::ports::free_ports;
use crate::server::{Place, ZooKeeperServer};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// Several ZooKeeper servers that form one quorum.
///
/// # Examples
///
/// ```no_run
/// use zookeeper_testing::ZooKeeperCluster;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = ZooKeeperCluster::builder(3).proxied_quorum().start()?;
/// let leader = cluster.leader().ok_or("no leader")?;
/// cluster.isolate(leader);
/// cluster.wait_for_leader_other_than(leader)?;
/// cluster.heal(leader);
/// cluster.wait_until_all_serve()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZooKeeperCluster {
    servers: Vec<ZooKeeperServer>,
    links: Option<Links>,
}

/// The settings of a [`ZooKeeperCluster`] that is to be started.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    size: usize,
    server: ServerBuilder,
    network: Network,
}

/// How the servers of an ensemble reach each other.
#[derive(Clone, Copy, Debug)]
enum Network {
    Direct,
    Proxied,
}

impl ClusterBuilder {
    /// As [`ServerBuilder::tick_time`], for each server.
    #[must_use]
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.server = self.server.tick_time(tick);
        self
    }

    /// As [`ServerBuilder::container_check_interval`], for each server.
    #[must_use]
    pub fn container_check_interval(mut self, interval: Duration) -> Self {
        self.server = self.server.container_check_interval(interval);
        self
    }

    /// As [`ServerBuilder::config`], for each server.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.server = self.server.config(key, value);
        self
    }

    /// As [`ServerBuilder::system_property`], for each server.
    #[must_use]
    pub fn system_property(mut self, key: &str, value: &str) -> Self {
        self.server = self.server.system_property(key, value);
        self
    }

    /// Puts proxies between the servers: [`ZooKeeperCluster::isolate`] needs them.
    #[must_use]
    pub fn proxied_quorum(mut self) -> Self {
        self.network = Network::Proxied;
        self
    }

    /// Starts all servers and waits until each of them serves.
    ///
    /// # Errors
    ///
    /// The size is not from 2 to 9, or as [`ServerBuilder::start`].
    pub fn start(self) -> Result<ZooKeeperCluster, Error> {
        if !(2..=9).contains(&self.size) {
            let text = format!("an ensemble has from 2 to 9 servers and not {}", self.size);
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let config = self.server.into_checked_config()?;
        let java = Java::find()?;
        retry_on_taken_ports(|| {
            let cluster = ZooKeeperCluster::prepare(&java, &config, self.size, self.network)?;
            for server in &cluster.servers {
                server.launch()?;
            }
            cluster.wait_until_all_serve()?;
            Ok(cluster)
        })
    }
}

impl ZooKeeperCluster {
    /// Starts an ensemble of `size` servers, from 2 to 9, with the default settings.
    ///
    /// # Errors
    ///
    /// As [`ClusterBuilder::start`].
    pub fn start(size: usize) -> Result<Self, Error> {
        Self::builder(size).start()
    }

    /// The settings of an ensemble of `size` servers, to change them before it starts.
    pub fn builder(size: usize) -> ClusterBuilder {
        ClusterBuilder { size, server: ServerBuilder::default(), network: Network::Direct }
    }

    fn prepare(java: &Java, config: &Config, size: usize, network: Network) -> Result<Self, Error> {
        let ports = free_ports(3 * size).map_err(|error| Error::io("ports", &error))?;
        let (client_ports, quorum_ports) = ports.split_at(size);
        let members: Vec<Member> = quorum_ports
            .chunks(2)
            .map(|pair| Member { quorum_port: pair[0], election_port: pair[1] })
            .collect();
        let links = match network {
            Network::Direct => None,
            Network::Proxied => {
                Some(Links::start(&members).map_err(|error| Error::io("proxies", &error))?)
            }
        };
        let servers = client_ports.iter().enumerate().map(|(index, port)| {
            let seen = links.as_ref().map_or(members.clone(), |it| it.seen_from(index, &members));
            let place = Place { id: index + 1, members: &seen };
            ZooKeeperServer::prepare(java, config, *port, Some(place))
        });
        let servers = servers.collect::<Result<_, _>>()?;
        Ok(Self { servers, links })
    }

    /// All servers, in the order of their ids.
    pub fn servers(&self) -> &[ZooKeeperServer] {
        &self.servers
    }

    /// The server with this index, counted from zero.
    ///
    /// # Panics
    ///
    /// There is no such server.
    pub fn server(&self, index: usize) -> &ZooKeeperServer {
        match self.servers.get(index) {
            Some(server) => server,
            None => panic!("no server {index} in an ensemble of {}", self.servers.len()),
        }
    }

    /// The addresses of all servers for a client's connect string.
    pub fn connect_string(&self) -> String {
        let addresses = self.servers.iter().map(ZooKeeperServer::connect_string);
        addresses.collect::<Vec<_>>().join(",")
    }

    /// The addresses for clients, in the order of the servers.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(ZooKeeperServer::address).collect()
    }

    /// The index of the server that says it leads; none while there is none.
    ///
    /// A leader that was isolated a moment ago still says so until it notices: then this is the
    /// first of two.
    pub fn leader(&self) -> Option<usize> {
        self.servers.iter().position(leads)
    }

    /// Waits until a leader and a majority of the servers serve, for a minute at most.
    ///
    /// # Errors
    ///
    /// It did not happen in time.
    pub fn wait_for_quorum(&self) -> Result<(), Error> {
        self.wait("a quorum", || {
            let roles: Vec<Role> = self.servers.iter().filter_map(ZooKeeperServer::role).collect();
            roles.contains(&Role::Leader) && 2 * roles.len() > self.servers.len()
        })
    }

    /// Waits until another server than `old` leads, for a minute at most, and returns its index.
    ///
    /// # Errors
    ///
    /// It did not happen in time.
    pub fn wait_for_leader_other_than(&self, old: usize) -> Result<usize, Error> {
        let mut found = None;
        self.wait("a new leader", || {
            let mut others = (0..self.servers.len()).filter(|index| *index != old);
            found = others.find(|index| leads(&self.servers[*index]));
            found.is_some()
        })?;
        Ok(found.expect("the wait ends well only with a leader"))
    }

    /// Waits until every server serves, for a minute at most.
    ///
    /// # Errors
    ///
    /// The process of a server ended, or a server did not serve in time.
    pub fn wait_until_all_serve(&self) -> Result<(), Error> {
        self.servers.iter().try_for_each(ZooKeeperServer::wait_until_serving)
    }

    /// Cuts a server off from all other servers, both ways, and not from its clients: what the
    /// servers send is neither delivered nor refused, as behind a broken switch.
    ///
    /// # Panics
    ///
    /// There is no such server, or the ensemble was built without
    /// [`proxied_quorum`](ClusterBuilder::proxied_quorum).
    pub fn isolate(&self, index: usize) {
        self.server(index);
        self.links().isolate(index);
    }

    /// Ends [`isolate`](Self::isolate): what was held back is delivered.
    ///
    /// # Panics
    ///
    /// As [`isolate`](Self::isolate).
    pub fn heal(&self, index: usize) {
        self.server(index);
        self.links().heal(index);
    }

    fn links(&self) -> &Links {
        self.links.as_ref().expect("isolating needs an ensemble built with `proxied_quorum()`")
    }

    fn wait(&self, what: &str, mut reached: impl FnMut() -> bool) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        while !reached() {
            if Instant::now() > deadline {
                let servers = self.connect_string();
                let text = format!("{servers} did not come to {what} in {PATIENCE:?}");
                return Err(Error::new(ErrorKind::TimedOut, text));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

fn leads(server: &ZooKeeperServer) -> bool {
    server.role() == Some(Role::Leader)
}
