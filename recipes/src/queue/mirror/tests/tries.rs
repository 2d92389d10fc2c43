//! Tries: granted or blocked, never left waiting.

use super::*;

#[test]
fn a_try_is_blocked_at_once_by_a_node_of_ours() {
    let mut mirror = held_by_a();
    assert_eq!(mirror.enter(B, Kind::Exclusive, Mode::Try), [Output::Blocked(B)]);
    assert_eq!(mirror.leave(B), []);
}

#[test]
fn a_try_is_granted_where_nothing_is_in_its_way() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&mirror.enter(A, Kind::Exclusive, Mode::Try));
    mirror.created(A, 7);
    assert_eq!(mirror.listed(list, &[name(A, LOCK, 7)]), [Output::Grant(A)]);
}

#[test]
fn a_try_is_blocked_by_a_foreign_node_and_leaves_no_node() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&mirror.enter(A, Kind::Exclusive, Mode::Try));
    mirror.created(A, 1);
    let names = [name(FOREIGN, LOCK, 0), name(A, LOCK, 1)];
    assert_eq!(mirror.listed(list, &names), [Output::Delete(A), Output::Blocked(A)]);
}

#[test]
fn a_try_is_judged_by_a_list_that_shows_it_and_not_by_an_older_one() {
    let mut mirror = Mirror::new(&READ_WRITE, 1_000);
    let list = list_in(&mirror.enter(A, Kind::Shared, Mode::Wait));
    mirror.created(A, 0);
    mirror.listed(list, &[name(A, READ, 0), name(FOREIGN, WRITE, 1)]);
    // The foreign writer has given up since, unseen: nobody had to watch it.
    let list = list_in(&mirror.enter(B, Kind::Shared, Mode::Try));
    assert_eq!(mirror.created(B, 2), []);
    let names = [name(A, READ, 0), name(B, READ, 2)];
    assert_eq!(mirror.listed(list, &names), [Output::Grant(B)]);
}

#[test]
fn a_try_that_would_have_to_park_is_blocked() {
    let mut mirror = Mirror::new(&READ_WRITE, 1);
    mirror.enter(A, Kind::Shared, Mode::Wait);
    assert_eq!(mirror.enter(B, Kind::Shared, Mode::Try), [Output::Blocked(B)]);
}
