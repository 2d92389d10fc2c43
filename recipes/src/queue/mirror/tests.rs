//! Each rule of the mirror by itself. The model checks them together.

use super::*;

mod foreign;
mod hand_off;
mod lists;
mod tries;

static MUTEX: Family = Family { recipe: "mutex", markers: &[("lock-", Kind::Exclusive)] };

static READ_WRITE: Family = Family {
    recipe: "read-write lock",
    markers: &[("__READ__", Kind::Shared), ("__WRIT__", Kind::Exclusive)],
};

const A: NodeId = NodeId::from_u128(0xA);
const B: NodeId = NodeId::from_u128(0xB);
const C: NodeId = NodeId::from_u128(0xC);
const FOREIGN: NodeId = NodeId::from_u128(0xF);

const READ: &str = "__READ__";
const WRITE: &str = "__WRIT__";
const LOCK: &str = "lock-";

fn name(id: NodeId, marker: &str, number: Number) -> String {
    format!("_c_{id}-{marker}{number:010}")
}

fn wait(mirror: &mut Mirror, id: NodeId) -> Vec<Output> {
    mirror.enter(id, Kind::Exclusive, Mode::Wait)
}

/// The list that these commands ask for.
fn list_in(out: &[Output]) -> Stamp {
    let mut lists = out.iter().filter_map(|command| {
        if let Output::List(stamp) | Output::Create(_, Some(stamp)) = command {
            Some(*stamp)
        } else {
            None
        }
    });
    lists.next().unwrap_or_else(|| panic!("no list in {out:?}"))
}

/// The watch that these commands set on `name`.
fn watch_in(out: &[Output], name: &str) -> Stamp {
    let mut watches = out.iter().filter_map(|command| {
        if let Output::Watch(stamp, on) = command {
            (**on == *name).then_some(*stamp)
        } else {
            None
        }
    });
    watches.next().unwrap_or_else(|| panic!("no watch on {name} in {out:?}"))
}

/// Whether the mirror is as it was in the beginning.
fn is_blank(mirror: &Mirror) -> bool {
    let blank = Mirror::new(mirror.family, mirror.bound);
    *mirror == Mirror { next_stamp: mirror.next_stamp, ..blank }
}

/// A mutex that A holds with number 0.
fn held_by_a() -> Mirror {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 0);
    assert_eq!(mirror.listed(list, &[name(A, LOCK, 0)]), [Output::Grant(A)]);
    mirror
}

/// A mutex in which A, with number 1, waits for a foreign holder; the watch on that one.
fn blocked_by_foreign() -> (Mirror, Stamp) {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 1);
    let out = mirror.listed(list, &[name(FOREIGN, LOCK, 0), name(A, LOCK, 1)]);
    let watch = watch_in(&out, &name(FOREIGN, LOCK, 0));
    (mirror, watch)
}

/// A read-write lock in which a foreign writer stands ahead of A, which is of this kind.
fn behind_a_foreign_writer(kind: Kind, marker: &str) -> (Mirror, Stamp) {
    let mut mirror = Mirror::new(&READ_WRITE, 1_000);
    let list = list_in(&mirror.enter(A, kind, Mode::Wait));
    mirror.created(A, 1);
    let out = mirror.listed(list, &[name(FOREIGN, WRITE, 0), name(A, marker, 1)]);
    let watch = watch_in(&out, &name(FOREIGN, WRITE, 0));
    (mirror, watch)
}
