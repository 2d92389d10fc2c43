//! The operations of ZooKeeper's client protocol.

/// What a request asks for, and a reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// The first frame of a connection: opens a session or takes one up again.
    Connect,
    /// Creates a node, with or without asking for its Stat.
    Create,
    /// Creates a container.
    CreateContainer,
    /// Creates a node with a time to live.
    CreateTtl,
    /// Deletes a node.
    Delete,
    /// Reads the Stat of a node.
    Exists,
    /// Reads the data of a node.
    GetData,
    /// Writes the data of a node.
    SetData,
    /// Reads the access control list of a node.
    GetAcl,
    /// Writes the access control list of a node.
    SetAcl,
    /// Lists the children of a node, with or without its Stat.
    GetChildren,
    /// Waits until the server has seen what the leader had committed.
    Sync,
    /// Keeps the session alive.
    Ping,
    /// Writes several nodes, all or none.
    Multi,
    /// Reads several nodes.
    MultiRead,
    /// Checks the version of a node.
    Check,
    /// Sets the watches of a session again after a new connection.
    SetWatches,
    /// Adds a persistent watch.
    AddWatch,
    /// Asks whether there is a watch.
    CheckWatches,
    /// Removes a watch.
    RemoveWatches,
    /// Adds credentials.
    Auth,
    /// Takes a step of a SASL dialogue.
    Sasl,
    /// Closes the session.
    CloseSession,
    /// An operation this crate has no name for, by its number in the protocol.
    Other(i32),
}

impl Operation {
    /// The operation with this number in a request's header.
    pub(super) fn from_code(code: i32) -> Self {
        match code {
            1 | 15 => Self::Create,
            2 => Self::Delete,
            3 => Self::Exists,
            4 => Self::GetData,
            5 => Self::SetData,
            6 => Self::GetAcl,
            7 => Self::SetAcl,
            8 | 12 => Self::GetChildren,
            9 => Self::Sync,
            11 => Self::Ping,
            13 => Self::Check,
            14 => Self::Multi,
            17 => Self::CheckWatches,
            18 => Self::RemoveWatches,
            19 => Self::CreateContainer,
            21 => Self::CreateTtl,
            22 => Self::MultiRead,
            100 => Self::Auth,
            101 | 105 => Self::SetWatches,
            102 => Self::Sasl,
            106 => Self::AddWatch,
            -11 => Self::CloseSession,
            other => Self::Other(other),
        }
    }
}
