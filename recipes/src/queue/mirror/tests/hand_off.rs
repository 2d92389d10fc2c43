//! What happens among our own nodes: hand-off, giving up, the bound, the end of the session.

use super::*;

#[test]
fn a_waiter_that_gives_up_lets_those_behind_it_pass() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    mirror.created(B, 1);
    wait(&mut mirror, C);
    mirror.created(C, 2);
    assert_eq!(mirror.leave(B), [Output::Delete(B)]);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(C)]);
}

#[test]
fn a_waiter_whose_node_was_removed_vanishes_and_those_behind_it_are_decided_anew() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    mirror.created(B, 1);
    wait(&mut mirror, C);
    mirror.created(C, 3);
    // The gap before C is listed once C is the first waiter. Until then nobody looks at B's node.
    let list = list_in(&mirror.leave(A));
    assert_eq!(mirror.listed(list, &[name(C, LOCK, 3)]), [Output::Vanished(B), Output::Grant(C)]);
    assert_eq!(mirror.leave(B), [], "it is forgotten");
}

#[test]
fn a_holder_whose_node_was_removed_vanishes() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    let list = list_in(&mirror.created(B, 2));
    assert_eq!(mirror.listed(list, &[name(B, LOCK, 2)]), [Output::Vanished(A), Output::Grant(B)]);
}

#[test]
fn a_session_that_ends_at_the_hand_off_takes_the_new_hold_with_it() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    mirror.created(B, 1);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
    assert_eq!(mirror.epoch_over(), [Output::Lost(B)]);
    assert_eq!(mirror.deleted(A), []);
    assert!(is_blank(&mirror));
}

#[test]
fn an_ended_session_loses_every_acquisition_in_queue_order() {
    let mut mirror = Mirror::new(&MUTEX, 2);
    let list = list_in(&wait(&mut mirror, B));
    wait(&mut mirror, C);
    wait(&mut mirror, A);
    mirror.created(C, 0);
    assert_eq!(mirror.epoch_over(), [Output::Lost(C), Output::Lost(B), Output::Lost(A)]);
    assert_eq!(mirror.created(B, 2), []);
    assert_eq!(mirror.list_failed(list), []);
    assert!(is_blank(&mirror));
}

#[test]
fn a_create_given_up_before_its_answer_is_deleted_then_and_blocks_nobody() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    wait(&mut mirror, B);
    assert_eq!(mirror.leave(A), []);
    mirror.created(B, 1);
    let names = [name(A, LOCK, 0), name(B, LOCK, 1)];
    assert_eq!(mirror.listed(list, &names), [Output::Grant(B)]);
    assert_eq!(mirror.created(A, 0), [Output::Delete(A)]);
}

#[test]
fn acquisitions_above_the_bound_wait_their_turn_without_a_node() {
    let mut mirror = Mirror::new(&MUTEX, 1);
    let list = list_in(&wait(&mut mirror, A));
    assert_eq!(wait(&mut mirror, B), []);
    assert_eq!(wait(&mut mirror, C), []);
    mirror.created(A, 0);
    mirror.listed(list, &[name(A, LOCK, 0)]);
    assert_eq!(mirror.leave(B), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A)], "its node may still be there");
    let out = mirror.deleted(A);
    assert_eq!(out, [Output::Create(C, Some(list_in(&out)))]);
}

#[test]
fn a_create_that_fails_makes_room_for_the_next() {
    let mut mirror = Mirror::new(&MUTEX, 1);
    wait(&mut mirror, A);
    wait(&mut mirror, B);
    assert_eq!(mirror.create_failed(A), [Output::Create(B, None)], "a list is under way");
}

#[test]
fn a_node_removed_before_its_create_was_proved_holds_up_nobody() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    wait(&mut mirror, B);
    mirror.created(B, 1);
    assert_eq!(mirror.listed(list, &[name(A, LOCK, 0), name(B, LOCK, 1)]), []);
    assert_eq!(mirror.not_created(A), [Output::Grant(B), Output::Create(A, None)]);
}

#[test]
fn after_a_removal_nobody_is_granted_before_a_list_has_shown_who_is_left() {
    let mut mirror = held_by_a();
    for (id, number) in [(B, 1), (C, 2)] {
        wait(&mut mirror, id);
        assert_eq!(mirror.created(id, number), []);
    }
    let out = mirror.removed(B);
    assert_eq!(out[0], Output::Vanished(B));
    let list = list_in(&out);
    assert_eq!(mirror.leave(A), [Output::Delete(A)]);
    assert_eq!(mirror.listed(list, &[name(C, LOCK, 2)]), [Output::Grant(C)]);
}

#[test]
fn a_delete_that_finds_nothing_has_the_others_looked_for() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    assert_eq!(mirror.created(B, 1), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
    let list = list_in(&mirror.removed(A));
    let none: [&str; 0] = [];
    assert_eq!(mirror.listed(list, &none), [Output::Vanished(B)]);
    assert!(is_blank(&mirror));
}

#[test]
fn a_list_that_was_sent_before_a_removal_was_found_does_not_verify() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    let early = list_in(&mirror.created(B, 2));
    assert_eq!(mirror.removed(A), [Output::Vanished(A)]);
    let names = [name(B, LOCK, 2)];
    let late = list_in(&mirror.listed(early, &names));
    assert_eq!(mirror.listed(late, &names), [Output::Grant(B)]);
}
