//! Shows that the checks can fail: a process that errs is caught, and by the right check.

use super::search::search;
use super::{Setup, Tampering};

fn assert_caught(tampering: Tampering, setup: Setup, expected: &str) {
    let name = setup.name;
    search(&setup).unwrap_or_else(|broken| panic!("{name} is broken by itself: {broken}"));
    let caught = search(&Setup { tampering, ..setup }).expect_err("nothing was caught");
    assert!(caught.contains(expected), "{tampering:?} was caught for another reason: {caught}");
}

#[test]
fn a_data_change_taken_for_a_deletion_is_caught() {
    let setup = Setup { writes: 1, ..Setup::new("W/W") };
    assert_caught(Tampering::DataChangeIsDeletion, setup, "beside another hold");
}

#[test]
fn a_grant_without_proof_is_caught() {
    assert_caught(Tampering::EarlyGrant, Setup::new("W/W"), "beside another hold");
}

#[test]
fn a_lost_event_is_caught() {
    assert_caught(Tampering::LostEvents, Setup::new("W/W"), "a waiter is stuck");
}

#[test]
fn a_node_left_behind_is_caught() {
    assert_caught(Tampering::LostDeletes, Setup::new("W/"), "is left behind");
}

#[test]
fn a_search_that_was_cut_short_is_caught() {
    let cut_short = search(&Setup { bound_of_states: 10, ..Setup::new("WW/W") });
    assert_eq!(cut_short.unwrap_err(), "more than 10 states");
}
