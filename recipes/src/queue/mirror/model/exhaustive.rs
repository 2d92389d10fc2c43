//! Small queues, searched to the last state.

use super::Setup;
use super::search::search;

/// Searches the whole queue, prints what was covered, and fails on the first violation.
fn check(setup: &Setup) {
    let coverage = search(setup).unwrap_or_else(|broken| panic!("{}: {broken}", setup.name));
    println!("{}: {coverage}", setup.name);
    assert!(coverage.states > 1_000, "{} covers next to nothing: {coverage}", setup.name);
}

#[test]
fn a_mutex_without_faults_keeps_its_promises() {
    check(&Setup { reaps: true, writes: 1, ..Setup::new("WWW/WW") });
    let cancels = Setup { cancels: true, foreign_cancels: true, ..Setup::new("WW/WW") };
    check(&Setup { reaps: true, writes: 1, ..cancels });
}

#[test]
fn a_mutex_whose_connection_is_cut_keeps_its_promises() {
    let cut = |name| Setup { cuts: 1, faults: 1, reaps: true, ..Setup::new(name) };
    check(&cut("WW/W"));
    check(&Setup { in_wire_order: true, cancels: true, ..cut("WW/W") });
    check(&Setup { in_wire_order: true, ..cut("WWW/W") });
}

#[test]
fn a_mutex_whose_sessions_end_keeps_its_promises() {
    let end = |name| Setup { expiries: 1, faults: 1, reaps: true, ..Setup::new(name) };
    check(&end("WW/W"));
    check(&Setup { cuts: 1, foreign_expiries: 1, faults: 3, writes: 1, ..end("W/W") });
    check(&Setup { foreign_expiries: 1, ..end("WW/W") });
}

#[test]
fn a_read_write_lock_without_faults_keeps_its_promises() {
    check(&Setup { reaps: true, ..Setup::new("WR/DR") });
    check(&Setup { reaps: true, ..Setup::new("WRW/D") });
    check(&Setup { reaps: true, cancels: true, ..Setup::new("WR/D") });
}

#[test]
fn a_read_write_lock_with_a_fault_keeps_its_promises() {
    let cut = |name| Setup { cuts: 1, faults: 1, ..Setup::new(name) };
    check(&Setup { in_wire_order: true, ..cut("WR/D") });
    check(&Setup { cuts: 2, expiries: 1, faults: 2, reaps: true, ..cut("W/D") });
}

#[test]
fn tries_keep_the_promises_too() {
    check(&Setup { reaps: true, cancels: true, ..Setup::new("Ww/W") });
    check(&Setup { reaps: true, ..Setup::new("Wr/D") });
    check(&Setup { cuts: 1, faults: 1, ..Setup::new("Rr/D") });
}

#[test]
fn a_bound_of_nodes_keeps_the_promises_too() {
    check(&Setup { bound: 1, reaps: true, cancels: true, ..Setup::new("WWW/W") });
    check(&Setup { bound: 2, cuts: 1, faults: 1, ..Setup::new("WWW/W") });
}

#[test]
fn a_queue_whose_nodes_are_removed_by_hand_keeps_the_promises_to_all_others() {
    check(&Setup { removals: 1, cancels: true, ..Setup::new("WW/W") });
    check(&Setup { removals: 2, ..Setup::new("WW/W") });
    check(&Setup { removals: 1, cuts: 1, faults: 1, ..Setup::new("WW/") });
    check(&Setup { removals: 1, ..Setup::new("WR/D") });
    check(&Setup { removals: 1, ..Setup::new("Wr/D") });
}

#[test]
fn larger_queues_keep_their_promises() {
    let reaped = |name| Setup { reaps: true, ..Setup::new(name) };
    let cancelled = |name| Setup { cancels: true, ..reaped(name) };
    check(&Setup { in_wire_order: true, ..cancelled("WWW/W") });
    if std::env::var("MIRROR_MODEL").as_deref() != Ok("long") {
        println!("the largest queues are searched by scripts/model only");
        return;
    }
    let all_cancel = |name| Setup { foreign_cancels: true, writes: 1, ..cancelled(name) };
    check(&all_cancel("WWW/W"));
    check(&Setup { removals: 2, cancels: true, ..Setup::new("WW/W") });
    check(&Setup { in_wire_order: true, ..all_cancel("WWW/WW") });
    check(&Setup { in_wire_order: true, cuts: 1, faults: 1, ..reaped("WWW/WW") });
    check(&Setup { in_wire_order: true, cuts: 1, faults: 1, ..cancelled("WWW/W") });
    let faults = |setup| Setup { cuts: 2, expiries: 1, foreign_expiries: 1, faults: 2, ..setup };
    check(&faults(reaped("WW/W")));
    check(&faults(all_cancel("W/WW")));
    check(&Setup { in_wire_order: true, ..faults(reaped("WW/D")) });
    check(&Setup { cuts: 1, expiries: 1, faults: 1, ..cancelled("WR/D") });
    check(&Setup { foreign_cancels: true, ..cancelled("WR/DR") });
    check(&Setup { foreign_cancels: true, ..Setup::new("WWW/DW") });
    check(&Setup { cancels: true, ..Setup::new("WWW/D") });
    check(&cancelled("Wwr/D"));
    check(&reaped("Wrw/DR"));
    check(&Setup { cancels: true, cuts: 1, faults: 1, ..Setup::new("wwW/W") });
    let cut = Setup { cancels: true, cuts: 1, faults: 1, ..Setup::new("RRW/D") };
    check(&Setup { in_wire_order: true, ..cut });
    check(&Setup { removals: 2, cuts: 1, faults: 1, ..Setup::new("WW/W") });
    check(&Setup { removals: 1, cancels: true, ..Setup::new("WWW/W") });
}
