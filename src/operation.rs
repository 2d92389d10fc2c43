//! The changes that can stand in one transaction, and what became of them.

use std::sync::Arc;

use crate::node::{Acl, CreateMode, Stat};

/// A node to be created.
#[derive(Clone, Debug)]
pub(crate) struct NewNode {
    pub(crate) data: Vec<u8>,
    pub(crate) mode: CreateMode,
    pub(crate) acl: Arc<[Acl]>,
}

/// One operation of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Check { path: String, version: Option<i32> },
    Create { path: String, new: NewNode },
    SetData { path: String, data: Vec<u8>, version: Option<i32> },
    Delete { path: String, version: Option<i32> },
}

impl Operation {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Check { path, .. }
            | Self::Create { path, .. }
            | Self::SetData { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }

    pub(crate) fn path_mut(&mut self) -> &mut String {
        match self {
            Self::Check { path, .. }
            | Self::Create { path, .. }
            | Self::SetData { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }
}

/// What became of one operation of a transaction that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationResult {
    /// The node existed, in the version asked for.
    Checked,
    /// The node was created.
    #[non_exhaustive]
    Created {
        /// Its path, with the number that the server added to a sequential node's name.
        path: String,
        /// What the server knows of it; servers before 3.9 do not say.
        stat: Option<Stat>,
    },
    /// The data was set.
    DataSet(Stat),
    /// The node was deleted.
    Deleted,
}
