//! What numbers and lists prove, and what they do not.

use super::*;

#[test]
fn a_lone_acquire_sends_create_and_list_in_one_flight() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let out = wait(&mut mirror, A);
    let list = list_in(&out);
    assert_eq!(out, [Output::Create(A, Some(list))]);
    assert_eq!(mirror.created(A, 0), [], "its own create proves nothing");
    assert_eq!(mirror.listed(list, &[name(A, LOCK, 0)]), [Output::Grant(A)]);
    assert_eq!(mirror.leave(A), [Output::Delete(A)]);
    assert_eq!(mirror.deleted(A), []);
    assert!(is_blank(&mirror));
}

#[test]
fn a_number_right_behind_our_own_is_handed_the_lock_without_a_request() {
    let mut mirror = held_by_a();
    assert_eq!(wait(&mut mirror, B), [Output::Create(B, None)]);
    assert_eq!(mirror.created(B, 1), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
}

#[test]
fn numbers_of_our_own_prove_each_other_in_whatever_order_they_are_answered() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    wait(&mut mirror, C);
    let list = list_in(&mirror.created(C, 2));
    assert_eq!(mirror.created(B, 1), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
    assert_eq!(mirror.leave(B), [Output::Delete(B), Output::Grant(C)]);
    let names = [name(A, LOCK, 0), name(B, LOCK, 1), name(C, LOCK, 2)];
    assert_eq!(mirror.listed(list, &names), []);
}

#[test]
fn a_gap_in_the_numbers_costs_one_list_for_all_waiters() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    wait(&mut mirror, C);
    let list = list_in(&mirror.created(B, 2));
    assert_eq!(mirror.created(C, 4), [], "one list is under way");
    let foreign = name(FOREIGN, LOCK, 1);
    let names = [name(A, LOCK, 0), foreign.clone(), name(B, LOCK, 2), name(C, LOCK, 4)];
    let watch = watch_in(&mirror.listed(list, &names), &foreign);
    assert_eq!(mirror.leave(A), [Output::Delete(A)], "a foreign node stands between");
    assert_eq!(mirror.watch_gone(watch), [Output::Grant(B)]);
    assert_eq!(mirror.leave(B), [Output::Delete(B), Output::Grant(C)], "number 3 is accounted for");
}

#[test]
fn a_predecessor_of_ours_whose_delete_is_late_lost_or_refused_holds_up_nobody() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    mirror.created(B, 1);
    wait(&mut mirror, C);
    // The end of A is never reported, and lists go on showing its node.
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
    let list = list_in(&mirror.created(C, 3));
    let names = [name(A, LOCK, 0), name(B, LOCK, 1), name(C, LOCK, 3)];
    assert_eq!(mirror.listed(list, &names), []);
    assert_eq!(mirror.leave(B), [Output::Delete(B), Output::Grant(C)]);
}

#[test]
fn a_node_that_is_gone_is_still_ours_to_the_list_under_way() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    let list = list_in(&mirror.created(B, 2));
    mirror.leave(A);
    mirror.deleted(A);
    let names = [name(A, LOCK, 0), name(B, LOCK, 2)];
    assert_eq!(mirror.listed(list, &names), [Output::Grant(B)]);
}

#[test]
fn a_node_that_began_to_live_after_the_list_was_sent_need_not_be_shown() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    let list = list_in(&mirror.created(B, 2));
    wait(&mut mirror, C);
    mirror.created(C, 3);
    assert_eq!(mirror.listed(list, &[name(A, LOCK, 0), name(B, LOCK, 2)]), []);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
    assert_eq!(mirror.leave(B), [Output::Delete(B), Output::Grant(C)]);
}

#[test]
fn answers_to_the_questions_of_an_ended_session_are_ignored() {
    let (mut mirror, watch) = blocked_by_foreign();
    mirror.epoch_over();
    let list = list_in(&wait(&mut mirror, B));
    assert_eq!(mirror.watch_gone(watch), []);
    mirror.created(B, 3);
    let names = [name(FOREIGN, LOCK, 2), name(B, LOCK, 3)];
    let next = watch_in(&mirror.listed(list, &names), &names[0]);
    assert_eq!(mirror.listed(list, &[name(B, LOCK, 3)]), [], "a list is answered once");
    assert_eq!(mirror.watch_gone(watch), []);
    assert_eq!(mirror.watch_gone(next), [Output::Grant(B)]);
}

#[test]
fn a_list_of_an_earlier_tenure_proves_nothing() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let old = list_in(&wait(&mut mirror, A));
    mirror.created(A, 0);
    mirror.leave(A);
    mirror.deleted(A);
    // The directory is reaped here, and a foreign contender has number 0 in the new one.
    assert_eq!(wait(&mut mirror, B), [Output::Create(B, None)], "a list is under way");
    mirror.created(B, 1);
    let list = list_in(&mirror.listed(old, &[name(A, LOCK, 0)]));
    let names = [name(FOREIGN, LOCK, 0), name(B, LOCK, 1)];
    watch_in(&mirror.listed(list, &names), &names[0]);
}

#[test]
fn numbers_in_clean_up_prove_nothing_in_a_new_directory() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 1);
    mirror.listed(list, &[name(A, LOCK, 1)]);
    assert_eq!(mirror.leave(A), [Output::Delete(A)]);
    let list = list_in(&wait(&mut mirror, B));
    mirror.created(B, 0);
    assert_eq!(mirror.listed(list, &[name(B, LOCK, 0)]), [Output::Grant(B)]);
    wait(&mut mirror, C);
    list_in(&mirror.created(C, 2));
    assert_eq!(mirror.leave(B), [Output::Delete(B)], "number 1 was foreign this time");
}

#[test]
fn a_number_that_went_back_makes_everything_unknown() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 5);
    mirror.listed(list, &[name(A, LOCK, 5)]);
    wait(&mut mirror, B);
    let list = list_in(&mirror.created(B, 1));
    let names = [name(FOREIGN, LOCK, 0), name(B, LOCK, 1)];
    let out = mirror.listed(list, &names);
    assert_eq!(out[0], Output::Vanished(A));
    watch_in(&out, &names[0]);
}

#[test]
fn a_node_of_ours_that_a_list_shows_blocks_before_its_create_is_answered() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    wait(&mut mirror, B);
    mirror.created(B, 1);
    let names = [name(A, LOCK, 0), name(B, LOCK, 1)];
    assert_eq!(mirror.listed(list, &names), []);
    assert_eq!(mirror.created(A, 0), [Output::Grant(A)]);
}

#[test]
fn a_create_without_effect_is_sent_again_unless_it_was_given_up() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    assert_eq!(mirror.list_failed(list), []);
    let again = list_in(&mirror.not_created(A));
    assert_ne!(again, list);
    mirror.leave(A);
    assert_eq!(mirror.not_created(A), []);
    mirror.list_failed(again);
    assert!(is_blank(&mirror));
}

#[test]
fn a_list_that_fails_is_sent_again_while_it_is_needed() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    let list = list_in(&mirror.created(B, 2));
    let again = list_in(&mirror.list_failed(list));
    mirror.leave(B);
    assert_eq!(mirror.list_failed(again), []);
}

#[test]
fn a_number_near_the_end_of_the_counter_is_deleted_and_refused() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    wait(&mut mirror, A);
    let refused = Output::Refuse(A, Refusal::Exhausted(Number::MAX));
    assert_eq!(mirror.created(A, Number::MAX), [Output::Delete(A), refused]);
}

#[test]
fn waiters_are_refused_where_another_recipe_stands_in_the_queue_and_holders_are_not() {
    let mut mirror = held_by_a();
    wait(&mut mirror, B);
    let list = list_in(&mirror.created(B, 2));
    let names = [name(A, LOCK, 0), name(FOREIGN, WRITE, 1), name(B, LOCK, 2)];
    let refused = Output::Refuse(B, Refusal::OtherRecipe("read-write lock"));
    assert_eq!(mirror.listed(list, &names), [Output::Delete(B), refused]);
}

#[test]
fn children_that_stand_in_no_queue_are_ignored() {
    let mut mirror = Mirror::new(&MUTEX, 1_000);
    let list = list_in(&wait(&mut mirror, A));
    mirror.created(A, 1);
    let names = ["config".to_owned(), name(A, LOCK, 1)];
    assert_eq!(mirror.listed(list, &names), [Output::Grant(A)]);
}

#[test]
fn a_list_takes_back_nothing_that_is_known_already() {
    let mut mirror = held_by_a();
    let [d, e] = [NodeId::from_u128(0xD), NodeId::from_u128(0xE)];
    for id in [B, C, d, e] {
        wait(&mut mirror, id);
    }
    let list = list_in(&mirror.created(C, 2));
    mirror.created(B, 1);
    mirror.created(d, 3);
    assert_eq!(mirror.leave(d), [Output::Delete(d)]);
    // The list was served before number 3 was given.
    let names = [name(A, LOCK, 0), name(B, LOCK, 1), name(C, LOCK, 2)];
    assert_eq!(mirror.listed(list, &names), []);
    mirror.created(e, 4);
    assert_eq!(mirror.leave(A), [Output::Delete(A), Output::Grant(B)]);
    assert_eq!(mirror.leave(B), [Output::Delete(B), Output::Grant(C)]);
    assert_eq!(mirror.leave(C), [Output::Delete(C), Output::Grant(e)]);
}
