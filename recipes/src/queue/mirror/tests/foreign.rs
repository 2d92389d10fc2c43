//! Waiting for foreign nodes: the watch, the mark, readers and writers.

use super::*;

#[test]
fn a_first_waiter_that_gives_up_leaves_its_watch_to_the_next() {
    let (mut mirror, watch) = blocked_by_foreign();
    wait(&mut mirror, B);
    assert_eq!(mirror.created(B, 2), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A)]);
    assert_eq!(mirror.watch_gone(watch), [Output::Grant(B)]);
}

#[test]
fn a_watch_that_nobody_needs_is_dropped() {
    let (mut mirror, watch) = blocked_by_foreign();
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Unwatch(watch)]);
}

#[test]
fn a_node_of_our_older_session_is_waited_for_like_a_foreign_one() {
    let mut mirror = held_by_a();
    assert_eq!(mirror.epoch_over(), [Output::Lost(A)]);
    let list = list_in(&wait(&mut mirror, B));
    mirror.created(B, 1);
    let old = name(A, LOCK, 0);
    let out = mirror.listed(list, &[old.clone(), name(B, LOCK, 1)]);
    assert_eq!(mirror.watch_gone(watch_in(&out, &old)), [Output::Grant(B)]);
}

#[test]
fn a_change_of_data_renews_the_watch_and_grants_nothing() {
    let (mut mirror, watch) = blocked_by_foreign();
    let out = mirror.watch_spent(watch);
    let again = watch_in(&out, &name(FOREIGN, LOCK, 0));
    assert_eq!(mirror.watch_gone(watch), [], "the old watch is no longer heard");
    assert_eq!(mirror.watch_gone(again), [Output::Grant(A)]);
}

#[test]
fn a_writer_waits_for_a_list_after_a_foreign_writer_went() {
    let (mut mirror, watch) = behind_a_foreign_writer(Kind::Exclusive, WRITE);
    let list = list_in(&mirror.watch_gone(watch));
    let names = [name(FOREIGN, READ, 0), name(A, WRITE, 1)];
    let reader = watch_in(&mirror.listed(list, &names), &names[0]);
    assert_eq!(mirror.watch_gone(reader), [Output::Grant(A)], "a reader leaves no doubt");
}

#[test]
fn a_reader_is_granted_at_once_after_a_foreign_writer_went_and_a_writer_behind_it_is_not() {
    let (mut mirror, watch) = behind_a_foreign_writer(Kind::Shared, READ);
    wait(&mut mirror, B);
    assert_eq!(mirror.created(B, 2), []);
    assert_eq!(mirror.watch_gone(watch), [Output::Grant(A)]);
    let out = mirror.leave(A);
    assert_eq!(out[0], Output::Delete(A));
    let names = [name(FOREIGN, READ, 0), name(B, WRITE, 2)];
    watch_in(&mirror.listed(list_in(&out), &names), &names[0]);
}

#[test]
fn an_end_waits_for_the_list_under_way_and_a_later_list_lifts_its_mark() {
    let (mut mirror, watch) = behind_a_foreign_writer(Kind::Exclusive, WRITE);
    wait(&mut mirror, B);
    assert_eq!(mirror.created(B, 3), []);
    let early = list_in(&mirror.leave(A));
    assert_eq!(mirror.watch_gone(watch), [], "the list may still show the writer");
    let names = [name(FOREIGN, WRITE, 0), name(B, WRITE, 3)];
    let late = list_in(&mirror.listed(early, &names));
    let names = [name(FOREIGN, READ, 0), name(B, WRITE, 3)];
    watch_in(&mirror.listed(late, &names), &names[0]);
}

#[test]
fn readers_share_and_a_writer_behind_them_waits_for_the_last() {
    let mut mirror = Mirror::new(&READ_WRITE, 1_000);
    let list = list_in(&mirror.enter(A, Kind::Shared, Mode::Wait));
    mirror.created(A, 0);
    mirror.listed(list, &[name(A, READ, 0)]);
    mirror.enter(B, Kind::Shared, Mode::Wait);
    assert_eq!(mirror.created(B, 1), [Output::Grant(B)]);
    wait(&mut mirror, C);
    assert_eq!(mirror.created(C, 2), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A)]);
    assert_eq!(mirror.leave(B), [Output::Delete(B), Output::Grant(C)]);
}

#[test]
fn readers_behind_a_writer_of_ours_are_granted_together() {
    let mut mirror = Mirror::new(&READ_WRITE, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 0);
    mirror.listed(list, &[name(A, WRITE, 0)]);
    for (id, number) in [(B, 1), (C, 2)] {
        mirror.enter(id, Kind::Shared, Mode::Wait);
        assert_eq!(mirror.created(id, number), []);
    }
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B), Output::Grant(C)]);
}

#[test]
fn a_reader_watches_the_nearest_writer_and_not_the_readers_between() {
    let mut mirror = Mirror::new(&READ_WRITE, 1_000);
    let list = list_in(&mirror.enter(A, Kind::Shared, Mode::Wait));
    mirror.created(A, 3);
    let names = [
        name(NodeId::from_u128(0xF0), WRITE, 0),
        name(NodeId::from_u128(0xF1), WRITE, 1),
        name(NodeId::from_u128(0xF2), READ, 2),
        name(A, READ, 3),
    ];
    watch_in(&mirror.listed(list, &names), &names[1]);
}

#[test]
fn of_two_foreign_writers_that_went_the_foremost_leaves_the_mark() {
    let mut mirror = Mirror::new(&READ_WRITE, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    wait(&mut mirror, B);
    mirror.created(A, 3);
    let [first, second] = [0, 2].map(|number| name(FOREIGN, WRITE, number));
    let names = [first.clone(), name(B, WRITE, 1), second.clone(), name(A, WRITE, 3)];
    let watch = watch_in(&mirror.listed(list, &names), &second);
    let watch = watch_in(&mirror.watch_gone(watch), &first);
    assert_eq!(mirror.watch_gone(watch), []);
    // B stands between the two, and the first of them may be a reader by now.
    let list = list_in(&mirror.created(B, 1));
    let names = [name(FOREIGN, READ, 0), name(B, WRITE, 1), name(A, WRITE, 3)];
    watch_in(&mirror.listed(list, &names), &names[0]);
}

#[test]
fn one_list_tells_of_all_foreign_nodes_that_went_with_the_nearest() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 3);
    let foreign: Vec<_> =
        (0..3).map(|n| name(NodeId::from_u128(0xF0 + n), LOCK, n as Number)).collect();
    let mut names = foreign.clone();
    names.push(name(A, LOCK, 3));
    let watch = watch_in(&mirror.listed(list, &names), &foreign[2]);
    let list = list_in(&mirror.watch_gone(watch));
    assert_eq!(mirror.listed(list, &names[3..]), [Output::Grant(A)]);
}
