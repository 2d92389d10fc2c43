//! Names and numbers of the nodes in a lock directory.
//!
//! Promises that every child of a lock directory is read in one way only: as a contender of the
//! recipe at hand, as a contender of another recipe (which is a mistake worth an error), or as a
//! node that has nothing to do with locks.
//!
//! ```text
//!   _c_6f1c2a34-0d5e-4b77-9a40-5c1f0e8d2b11-__WRIT__0000000042
//!      '------------- uuid ---------------' 'marker''-number-'
//! ```
//!
//! Pure: no I/O, no clock. The names are those of Apache Curator, so that processes in Java and
//! in Rust exclude each other on one path.

use std::sync::Arc;

use uuid::Uuid;

/// What a sequential node's name ends in: the count of children ever created in its directory.
pub(crate) type Number = i32;

/// Numbers above this one are refused: behind `i32::MAX` the server counts on from `i32::MIN`,
/// and the order of the queue breaks. The distance leaves time for the creates under way.
const LAST_NUMBER: Number = Number::MAX - 1_000;

const PROTECTION: &str = "_c_";
const UUID_LENGTH: usize = 36;

/// What the recipes of Apache Curator put before the number, and their names.
const MARKERS: [(&str, &str); 5] = [
    ("lock-", "mutex"),
    ("__READ__", "read-write lock"),
    ("__WRIT__", "read-write lock"),
    ("latch-", "leader latch"),
    ("lease-", "semaphore"),
];

/// Whether a contender shares the lock with others of its kind.
///
/// `Shared` is the lesser: a writer that turns reader keeps its number, and then the reader's
/// node stands before the writer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Holds together with other `Shared` contenders, as a reader does.
    Shared,
    /// Holds alone, as a mutex or a writer does.
    Exclusive,
}

impl Kind {
    /// Whether contenders of these two kinds keep each other out.
    pub(crate) fn conflicts(self, other: Kind) -> bool {
        self == Kind::Exclusive || other == Kind::Exclusive
    }
}

/// The recipes whose nodes compete with each other in one directory.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Family {
    /// The recipe's name, for errors.
    pub(crate) recipe: &'static str,
    /// What stands before the number in a node's name, and what it means.
    pub(crate) markers: &'static [(&'static str, Kind)],
}

impl Family {
    /// Whether a contender may turn from `Exclusive` to `Shared` and keep its number.
    pub(crate) fn has_downgrades(&self) -> bool {
        self.markers.iter().any(|(_, kind)| *kind == Kind::Shared)
    }

    /// Reads the name of a child of the lock directory.
    pub(crate) fn parse(&self, name: &str) -> Child {
        if let Some(contender) = self.contender(name) {
            return Child::Contender(contender);
        }
        let bare = unprotected(name);
        MARKERS
            .iter()
            .find(|(marker, _)| bare.strip_prefix(marker).and_then(parse_number).is_some())
            .map_or(Child::Other, |(_, recipe)| Child::OtherRecipe(recipe))
    }

    /// The contenders among the children of the lock directory, in the order of the queue.
    pub(crate) fn in_order(&self, names: &[String]) -> Vec<Contender> {
        let mut contenders: Vec<_> = names.iter().filter_map(|name| self.contender(name)).collect();
        contenders.sort_unstable();
        contenders
    }

    fn contender(&self, name: &str) -> Option<Contender> {
        // Curator looks for the last marker wherever it stands, so what comes before it does not
        // matter.
        self.markers.iter().find_map(|(marker, kind)| {
            let (_, digits) = name.rsplit_once(marker)?;
            let number = parse_number(digits)?;
            Some(Contender { number, kind: *kind, name: Arc::from(name) })
        })
    }
}

/// What a child of a lock directory is to a family of recipes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// It stands in this family's queue.
    Contender(Contender),
    /// It stands in the queue of the recipe of this name, which does not belong here.
    OtherRecipe(&'static str),
    /// It stands in no queue.
    Other,
}

/// A node in the queue. The order is the queue's: by number, then kind, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Contender {
    pub(crate) number: Number,
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
}

impl Contender {
    /// The uuid its creator protected it with, if it did.
    pub(crate) fn uuid(&self) -> Option<Uuid> {
        protection(&self.name).map(|(uuid, _)| uuid)
    }
}

/// Whether a number is too near the end of the counter, or past it, to be queued with.
pub(crate) fn is_exhausted(number: Number) -> bool {
    !(0..=LAST_NUMBER).contains(&number)
}

fn unprotected(name: &str) -> &str {
    protection(name).map_or(name, |(_, bare)| bare)
}

/// Splits `_c_<uuid>-<rest>` into its uuid and the rest.
fn protection(name: &str) -> Option<(Uuid, &str)> {
    let name = name.strip_prefix(PROTECTION)?;
    let uuid = Uuid::try_parse(name.get(..UUID_LENGTH)?).ok()?;
    Some((uuid, name[UUID_LENGTH..].strip_prefix('-')?))
}

/// Reads what the server prints with `%010d`: ten digits, or a minus sign and nine or ten.
fn parse_number(suffix: &str) -> Option<Number> {
    let digits = suffix.strip_prefix('-').unwrap_or(suffix);
    let is_printed = suffix.len() == 10 || (suffix.len() == 11 && digits.len() == 10);
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_printed && is_decimal { suffix.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: Family = Family { recipe: "mutex", markers: &[("lock-", Kind::Exclusive)] };
    const READ_WRITE: Family = Family {
        recipe: "read-write lock",
        markers: &[("__READ__", Kind::Shared), ("__WRIT__", Kind::Exclusive)],
    };
    const UUID: Uuid = Uuid::from_u128(0x6f1c2a34_0d5e_4b77_9a40_5c1f0e8d2b11);

    fn contender(family: &Family, name: &str) -> Contender {
        match family.parse(name) {
            Child::Contender(contender) => contender,
            other @ (Child::OtherRecipe(_) | Child::Other) => panic!("{name} is read as {other:?}"),
        }
    }

    #[test]
    fn a_protected_name_is_read_back_with_its_uuid() {
        let name = "_c_6f1c2a34-0d5e-4b77-9a40-5c1f0e8d2b11-__WRIT__0000000042";
        let writer = contender(&READ_WRITE, name);
        assert_eq!((writer.number, writer.kind), (42, Kind::Exclusive));
        assert_eq!(writer.uuid(), Some(UUID));
    }

    #[test]
    fn a_bare_name_is_a_contender_without_uuid() {
        let bare = contender(&MUTEX, "lock-0000000007");
        assert_eq!((bare.number, bare.uuid()), (7, None));
        assert_eq!(contender(&MUTEX, "anything-lock-0000000008").number, 8);
        assert_eq!(contender(&READ_WRITE, "__READ__0000000009").kind, Kind::Shared);
    }

    #[test]
    fn a_broken_protection_is_no_uuid() {
        for name in [
            "_c_6f1c2a34-0d5e-4b77-9a40-5c1f0e8d2b1x-lock-0000000001",
            "_c_6f1c2a34-0d5e-4b77-9a40-5c1f0e8d2b11_lock-0000000001",
            "_c_short-lock-0000000001",
            "_c_äöüäöüäöüäöüäöüäöüäöüäöü-lock-0000000001",
        ] {
            assert_eq!(contender(&MUTEX, name).uuid(), None, "{name}");
        }
    }

    #[test]
    fn a_number_is_what_the_server_prints_and_nothing_else() {
        assert_eq!(contender(&MUTEX, "lock-2147483647").number, Number::MAX);
        assert_eq!(contender(&MUTEX, "lock--2147483648").number, Number::MIN);
        assert_eq!(contender(&MUTEX, "lock--000000001").number, -1);
        for suffix in [
            "",
            "1",
            "000000001",
            "00000000001",
            "+000000001",
            "0x00000001",
            "2147483648",
            "9999999999",
            "--00000001",
            "0000000001x",
            " 000000001",
        ] {
            let name = format!("lock-{suffix}");
            assert_eq!(MUTEX.parse(&name), Child::Other, "{name}");
        }
    }

    #[test]
    fn a_contender_of_another_recipe_is_named() {
        let protected = "_c_6f1c2a34-0d5e-4b77-9a40-5c1f0e8d2b11-lease-0000000001";
        assert_eq!(MUTEX.parse(protected), Child::OtherRecipe("semaphore"));
        assert_eq!(MUTEX.parse("latch-0000000001"), Child::OtherRecipe("leader latch"));
        assert_eq!(MUTEX.parse("__READ__0000000001"), Child::OtherRecipe("read-write lock"));
        assert_eq!(READ_WRITE.parse("lock-0000000001"), Child::OtherRecipe("mutex"));
    }

    #[test]
    fn other_children_are_no_contenders() {
        for name in ["", "config", "lock-", "lock", "leases", "_c_", "my-latch-0000000001"] {
            assert_eq!(MUTEX.parse(name), Child::Other, "{name}");
        }
    }

    #[test]
    fn the_order_is_numeric_then_shared_first_then_by_name() {
        let names = [
            "__WRIT__-000000001",
            "__WRIT__0000000002",
            "b-__READ__0000000010",
            "a-__WRIT__0000000010",
            "b-__WRIT__0000000010",
            "__READ__1000000000",
        ];
        let queue: Vec<_> = names.iter().map(|name| contender(&READ_WRITE, name)).collect();
        assert!(queue.is_sorted(), "{queue:?}");
    }

    #[test]
    fn numbers_near_the_end_of_the_counter_are_exhausted() {
        assert!(!is_exhausted(0) && !is_exhausted(Number::MAX - 1_000));
        assert!(is_exhausted(Number::MAX - 999) && is_exhausted(-1) && is_exhausted(Number::MIN));
    }
}
