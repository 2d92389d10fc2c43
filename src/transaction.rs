//! Several changes that happen together or not at all.

use std::fmt;
use std::sync::Arc;

use crate::connection::{Scope, Session};
use crate::error::{Error, Result};
use crate::node::{Acl, CreateMode};
use crate::operation::{NewNode, Operation, OperationResult};
use crate::path;
use crate::retry::{Repeat, run};

/// Collects operations that the server carries out all together or not at all; made by
/// [`Client::transaction`](crate::Client::transaction) or
/// [`Session::transaction`](crate::Session::transaction).
///
/// # Examples
///
/// ```no_run
/// # use zookeeper_framework::{Client, TransactionError};
/// # async fn example(client: Client) -> Result<(), TransactionError> {
/// let results = client
///     .transaction()
///     .check("/config", Some(7))
///     .set_data("/config", "new", None)
///     .delete("/config/old", None)
///     .commit()
///     .await?;
/// assert_eq!(results.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `commit`"]
pub struct Transaction {
    carrier: Carrier,
    acl: Arc<[Acl]>,
    operations: Vec<Operation>,
}

/// What carries a transaction to the server.
#[derive(Clone, Debug)]
enum Carrier {
    /// Any session, by the retry policy.
    Client(Scope),
    /// This session, once.
    Session(Session),
}

impl Transaction {
    pub(crate) fn of_client(scope: Scope) -> Self {
        let acl = Arc::clone(&scope.config().default_acl);
        Self { carrier: Carrier::Client(scope), acl, operations: Vec::new() }
    }

    fn of_session(session: Session) -> Self {
        let acl = Arc::clone(session.default_acl());
        Self { carrier: Carrier::Session(session), acl, operations: Vec::new() }
    }

    /// The access control list of the nodes that are created by operations added after this; by
    /// default the client's.
    pub fn acl(mut self, acl: impl Into<Arc<[Acl]>>) -> Self {
        self.acl = acl.into();
        self
    }

    /// Requires that the node exists, where `version` is given in that version.
    pub fn check(self, path: &str, version: Option<i32>) -> Self {
        self.with(Operation::Check { path: path.to_owned(), version })
    }

    /// Creates a node. Its parent must exist, or be created before it in this transaction.
    pub fn create(self, path: &str, data: impl Into<Vec<u8>>, mode: CreateMode) -> Self {
        let new = NewNode { data: data.into(), mode, acl: Arc::clone(&self.acl) };
        self.with(Operation::Create { path: path.to_owned(), new })
    }

    /// Sets a node's data, where `version` is given only in that version.
    pub fn set_data(self, path: &str, data: impl Into<Vec<u8>>, version: Option<i32>) -> Self {
        self.with(Operation::SetData { path: path.to_owned(), data: data.into(), version })
    }

    /// Deletes a node, where `version` is given only in that version.
    pub fn delete(self, path: &str, version: Option<i32>) -> Self {
        self.with(Operation::Delete { path: path.to_owned(), version })
    }

    fn with(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Sends the transaction and gives the result of each operation, in order.
    ///
    /// A transaction of a client is repeated by the retry policy as long as it surely changed
    /// nothing; one of a session is sent once.
    ///
    /// # Errors
    /// The error of the first operation that was refused, with its index; nothing was changed
    /// then. Any other error concerns the transaction as a whole.
    ///
    /// # Cancel safety
    /// Dropped, it may have been carried out or not.
    pub async fn commit(self) -> Result<Vec<OperationResult>, TransactionError> {
        for (index, operation) in self.operations.iter().enumerate() {
            operation.validate().map_err(|error| TransactionError { index: Some(index), error })?;
        }
        let Self { carrier, operations, .. } = self;
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<String> = operations.iter().map(|one| one.path().to_owned()).collect();
        let outcome = match carrier {
            Carrier::Client(scope) => {
                run(&scope, Repeat::IfNotApplied, |session| session.transact(operations.clone()))
                    .await
            }
            Carrier::Session(session) => session.transact(operations).await,
        };
        match outcome {
            Ok(Ok(results)) => Ok(results),
            Ok(Err((error, index))) => {
                let error = match paths.get(index) {
                    Some(path) => error.with_path(path.as_str()),
                    None => error,
                };
                Err(TransactionError { index: Some(index), error })
            }
            Err(error) => Err(TransactionError { index: None, error }),
        }
    }
}

impl Operation {
    fn validate(&self) -> Result<()> {
        match self {
            Self::Create { path, new } => path::validate_new(path, new.mode),
            Self::Check { .. } | Self::SetData { .. } | Self::Delete { .. } => {
                path::validate(self.path())
            }
        }
    }
}

impl Session {
    /// Starts a transaction that is sent once, in this session.
    pub fn transaction(&self) -> Transaction {
        Transaction::of_session(self.clone())
    }
}

/// Why a transaction was not carried out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransactionError {
    /// The operation that was refused, counted from 0; `None` if the error concerns the
    /// transaction as a whole.
    pub index: Option<usize>,
    /// What went wrong.
    pub error: Error,
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "operation {index} of the transaction: {}", self.error),
            None => write!(f, "transaction: {}", self.error),
        }
    }
}

impl std::error::Error for TransactionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<TransactionError> for Error {
    fn from(error: TransactionError) -> Self {
        error.error
    }
}
