//! A connection manager for Apache ZooKeeper: sessions one can trust, retry policies and
//! session-expiry listeners.
//!
//! This is the framework under the locks of the crate `zookeeper-recipes`; whoever wants a lock
//! needs only that one, which exports this one as `framework`.
//!
//! * A [`Client`] stays connected through reconnects and lost sessions. Each session has an
//!   [epoch](SessionEpoch); each [state](ConnectionState) carries it.
//! * A [`Session`] knows, without asking anybody, whether the server surely still keeps it, and
//!   says so before anybody else can take what was held by it.
//! * [`RetryPolicy`] decides how often an operation is tried again; an [`Error`] knows whether the
//!   operation [may have happened](Outcome) all the same.
//!
//! # Examples
//!
//! ```no_run
//! use zookeeper_framework::{Client, CreateMode};
//!
//! # async fn example() -> zookeeper_framework::Result<()> {
//! let client = Client::builder("localhost:2181").connect().await?;
//! let node = client.create("/jobs/job-").mode(CreateMode::EphemeralSequential).with_parents();
//! println!("{}", node.await?.path);
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod builder;
mod client;
mod connect_string;
mod connection;
mod create;
mod delete;
mod error;
mod node;
mod operation;
mod path;
mod protection;
mod retry;
mod transaction;

/// The macro that implementations of [`ConnectionStateListener`] need.
pub use async_trait::async_trait;

pub use crate::builder::ClientBuilder;
pub use crate::client::{Client, ConnectionStateListener, WeakClient};
pub use crate::connection::{
    Call, CleanupPlace, CloseOutcome, ConnectionState, ListenerId, LostReason, Pause, Session,
    SessionEpoch, SessionLost, StateChange, StateWatch, Watch, WatchEvent,
};
pub use crate::create::Create;
pub use crate::delete::Delete;
pub use crate::error::{Error, ErrorKind, Outcome, Result};
pub use crate::node::{
    Acl, CreateMode, Created, Permissions, Stat, describe_process, protected_name, protection_of,
};
pub use crate::operation::OperationResult;
pub use crate::path::validate as validate_path;
pub use crate::retry::{
    ExponentialBackoff, NoRetry, RetryForever, RetryNTimes, RetryOneTime, RetryPolicy,
    RetryUntilElapsed,
};
pub use crate::transaction::{Transaction, TransactionError};
