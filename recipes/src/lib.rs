//! Distributed locks on Apache ZooKeeper, in the manner of Apache Curator.
//!
//! * [`InterProcessMutex`]: one owner at a time, in all processes; reentrant.
//!
//! A lock between tasks of *one* process needs no server: take `tokio::sync::Mutex`.
//!
//! # Examples
//!
//! ```no_run
//! use zookeeper_recipes::{Client, InterProcessMutex, Owner};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("zk1:2181,zk2:2181,zk3:2181").connect().await?;
//! let mutex = InterProcessMutex::new(&client, "/locks/nightly-billing")?;
//!
//! let guard = mutex.acquire(&Owner::new()).await?;
//! guard.while_held(async { /* never polled again once the lock is lost */ }).await?;
//! guard.release().await?;
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod contender;
mod error;
mod mutex;
mod owner;
mod queue;
mod transaction;

pub use zookeeper_framework as framework;
pub use zookeeper_framework::{
    Client, ClientBuilder, CloseOutcome, ConnectionState, ConnectionStateListener, CreateMode,
    ErrorKind, ExponentialBackoff, LostReason, NoRetry, OperationResult, Outcome, RetryForever,
    RetryNTimes, RetryOneTime, RetryPolicy, RetryUntilElapsed, Session, SessionEpoch, StateChange,
    async_trait,
};

pub use crate::contender::Contender;
pub use crate::error::{Error, HoldEnd, Result};
pub use crate::mutex::{InterProcessMutex, MutexGuard};
pub use crate::owner::{Owner, OwnerScope};
pub use crate::queue::Lost;
pub use crate::transaction::HeldTransaction;
