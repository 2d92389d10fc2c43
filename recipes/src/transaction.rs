//! Transactions that the server carries out only while a lock is held.

use std::fmt;
use std::sync::Arc;

use zookeeper_framework::{CreateMode, ErrorKind, OperationResult, Transaction, TransactionError};

use crate::error::{Error, HoldEnd, Result};
use crate::queue::Hold;

/// Collects operations that the server carries out all together or not at all, and only while the
/// lock's node exists; made by `transaction()` of a guard.
///
/// # Examples
///
/// ```no_run
/// # async fn example(guard: zookeeper_recipes::MutexGuard) -> zookeeper_recipes::Result<()> {
/// guard.transaction().set_data("/config", "new", None).commit().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing happens before `commit`"]
pub struct HeldTransaction {
    hold: Arc<Hold>,
    transaction: Transaction,
    /// It would delete the lock's own node.
    gives_up: bool,
}

impl HeldTransaction {
    pub(crate) fn new(hold: Arc<Hold>) -> Self {
        let transaction = hold.session().transaction().check(hold.node(), None);
        Self { hold, transaction, gives_up: false }
    }

    /// Requires that the node exists, where `version` is given in that version.
    pub fn check(mut self, path: &str, version: Option<i32>) -> Self {
        self.transaction = self.transaction.check(path, version);
        self
    }

    /// Creates a node. Its parent must exist, or be created before it in this transaction.
    pub fn create(mut self, path: &str, data: impl Into<Vec<u8>>, mode: CreateMode) -> Self {
        self.transaction = self.transaction.create(path, data, mode);
        self
    }

    /// Sets a node's data, where `version` is given only in that version.
    pub fn set_data(mut self, path: &str, data: impl Into<Vec<u8>>, version: Option<i32>) -> Self {
        self.transaction = self.transaction.set_data(path, data, version);
        self
    }

    /// Deletes a node, where `version` is given only in that version.
    ///
    /// The lock's own [node](crate::MutexGuard::node) is refused: a hold ends here before it ends
    /// on the server, and that is what [`release`](crate::MutexGuard::release) is for.
    pub fn delete(mut self, path: &str, version: Option<i32>) -> Self {
        self.gives_up |= **self.hold.node() == *path;
        self.transaction = self.transaction.delete(path, version);
        self
    }

    /// Sends the transaction, once, and gives the result of each operation, in order; the check of
    /// the lock's node is not among them.
    ///
    /// # Errors
    /// `Lost` if the lock is held no more; `Transaction` with the first operation that was refused.
    /// In both cases nothing was changed. A lost connection leaves the outcome `Unknown`.
    ///
    /// # Cancel safety
    /// Dropped, it may have been carried out or not.
    pub async fn commit(self) -> Result<Vec<OperationResult>> {
        let Self { hold, transaction, gives_up } = self;
        let path = hold.queue().path();
        let lost = |reason| Error::Lost { path: Arc::clone(path), reason };
        if let Some(reason) = hold.ended() {
            return Err(lost(reason));
        }
        if gives_up {
            let reason = "a transaction cannot delete the lock's own node: release the guard";
            return Err(Error::Refused { path: Arc::clone(path), reason: reason.into() });
        }
        match transaction.commit().await {
            // The first one is the check of the lock's node.
            Ok(results) => Ok(results.into_iter().skip(1).collect()),
            Err(TransactionError { index: Some(0), error, .. })
                if error.kind() == ErrorKind::NoNode =>
            {
                hold.node_deleted();
                Err(lost(hold.ended().unwrap_or(HoldEnd::NodeDeleted)))
            }
            Err(TransactionError { index, error, .. }) => {
                match index.and_then(|i| i.checked_sub(1)) {
                    Some(index) => Err(Error::Transaction { index, error }),
                    None => Err(Error::at(path, error)),
                }
            }
        }
    }
}

impl fmt::Debug for HeldTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldTransaction").field("lock", &self.hold.node()).finish_non_exhaustive()
    }
}
