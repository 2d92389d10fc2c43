//! What a node is: how it is created, who may use it, and what the server says of it.
//!
//! The names and numbers are ZooKeeper's own; see its Programmer's Guide, "ZooKeeper Stat
//! Structure" and "ZooKeeper access control using ACLs".

use std::fmt;
use std::ops::BitOr;

use uuid::Uuid;

/// How long a node lives and whether the server adds a number to its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CreateMode {
    /// Lives until it is deleted.
    #[default]
    Persistent,
    /// As [`Persistent`](Self::Persistent), with a ten-digit number added to the name.
    PersistentSequential,
    /// Lives as long as the session that created it.
    Ephemeral,
    /// As [`Ephemeral`](Self::Ephemeral), with a ten-digit number added to the name.
    EphemeralSequential,
    /// Deleted by the server some time after its last child has gone.
    Container,
}

impl CreateMode {
    /// Whether the server adds a number to the name.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential)
    }

    /// Whether the node goes with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }
}

/// What the server knows of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stat {
    /// The transaction that created the node; grows with every transaction of the ensemble.
    pub czxid: i64,
    /// The transaction that last changed its data.
    pub mzxid: i64,
    /// The transaction that last changed its children.
    pub pzxid: i64,
    /// When it was created, in milliseconds since the Unix epoch, by the server's clock.
    pub ctime: i64,
    /// When its data was last changed, in milliseconds since the Unix epoch.
    pub mtime: i64,
    /// How often its data was changed.
    pub version: i32,
    /// How often its children were changed.
    pub cversion: i32,
    /// How often its access control list was changed.
    pub aversion: i32,
    /// The id of the session that owns an ephemeral node, else 0.
    pub ephemeral_owner: i64,
    /// The length of its data in bytes.
    pub data_length: i32,
    /// The number of its children.
    pub num_children: i32,
}

/// What an entry of an access control list permits; combine them with `|`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(u8);

impl Permissions {
    /// Read the data and list the children.
    pub const READ: Self = Self(1);
    /// Set the data.
    pub const WRITE: Self = Self(2);
    /// Create children.
    pub const CREATE: Self = Self(4);
    /// Delete children.
    pub const DELETE: Self = Self(8);
    /// Set the access control list.
    pub const ADMIN: Self = Self(16);
    /// All of them.
    pub const ALL: Self = Self(31);

    /// The bits as they are on the wire.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `other` is in `self`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [
            (Self::CREATE, 'c'),
            (Self::DELETE, 'd'),
            (Self::READ, 'r'),
            (Self::WRITE, 'w'),
            (Self::ADMIN, 'a'),
        ];
        let text = letters.iter().filter(|(one, _)| self.contains(*one)).map(|(_, letter)| letter);
        f.write_str(&text.collect::<String>())
    }
}

/// One entry of an access control list: who may do what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Acl {
    /// What is permitted.
    pub permissions: Permissions,
    /// The scheme that says what [`id`](Self::id) means: `world`, `auth`, `digest`, `ip`, …
    pub scheme: String,
    /// Who, in terms of the scheme.
    pub id: String,
}

impl Acl {
    /// An entry of any scheme.
    pub fn new(permissions: Permissions, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self { permissions, scheme: scheme.into(), id: id.into() }
    }

    /// Everybody may do everything (`world:anyone:cdrwa`).
    pub fn anyone_all() -> Vec<Self> {
        vec![Self::new(Permissions::ALL, "world", "anyone")]
    }

    /// Everybody may read (`world:anyone:r`).
    pub fn anyone_read() -> Vec<Self> {
        vec![Self::new(Permissions::READ, "world", "anyone")]
    }

    /// Whoever creates the node, by the credentials of its client, may do everything
    /// (`auth::cdrwa`).
    pub fn creator_all() -> Vec<Self> {
        vec![Self::new(Permissions::ALL, "auth", "")]
    }
}

/// A node that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// Its path, with the number that the server added.
    pub path: String,
    /// The number that the server added to a sequential node's name.
    ///
    /// The server counts in 32 signed bits for each parent, from 0, and begins anew when the
    /// parent was deleted.
    pub sequence: Option<i64>,
    /// What the server knows of it.
    pub stat: Stat,
}

/// The name of this host and the number of this process: the answer to an operator's first question
/// about a node, whose it is.
pub fn describe_process() -> String {
    let system = rustix::system::uname();
    format!("{} pid {}", system.nodename().to_string_lossy(), std::process::id())
}

/// The name of a node that can be found again after a lost reply: `_c_<uuid>-<name>`.
///
/// This is Apache Curator's protection, letter for letter.
pub fn protected_name(id: Uuid, name: &str) -> String {
    format!("_c_{id}-{name}")
}

/// The uuid in a name made by [`protected_name`].
pub fn protection_of(name: &str) -> Option<Uuid> {
    let (id, _) = name.strip_prefix("_c_")?.split_at_checked(36)?;
    if name.as_bytes().get(39) != Some(&b'-') || name.len() <= 40 {
        return None;
    }
    Uuid::try_parse(id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_name_gives_its_uuid_back() {
        let id = Uuid::from_u128(0x1234_5678);
        assert_eq!(protection_of(&protected_name(id, "lock-0000000001")), Some(id));
    }

    #[test]
    fn names_that_are_not_protected_have_no_uuid() {
        let id = Uuid::from_u128(7);
        let empty = format!("_c_{id}-");
        let wrong = format!("_c_{id}xlock-");
        for name in ["", "lock-0000000001", "_c_", "_c_short-lock-", "_c_é", &empty, &wrong] {
            assert_eq!(protection_of(name), None, "{name:?}");
        }
    }

    #[test]
    fn permissions_print_as_the_letters_of_the_command_line_tool() {
        assert_eq!(format!("{:?}", Permissions::ALL), "cdrwa");
        assert_eq!(format!("{:?}", Permissions::READ | Permissions::CREATE), "cr");
    }
}
