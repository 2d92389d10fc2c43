//! Checks the mirror against a model of everything around it.
//!
//! The real mirror is run in a process that shares one lock directory with foreign contenders.
//! Every order in which requests are served and answers handled is tried, together with cancels,
//! downgrades, reaped directories, cut connections and ended sessions. In every state it must
//! hold that
//!
//! * no two holds that conflict exist at once, and tokens rise from grant to grant;
//! * the first waiter is cared for, and no watch is set on a node whose end was handled;
//! * a try fails only if something was in its way.
//!
//! And whatever happened, once nothing new happens every waiter is served, no node is left
//! behind, and no circle of steps keeps this from coming.
//!
//! Small queues are searched exhaustively; larger ones are run along random schedules. The largest
//! ones are searched by `scripts/model`, in many minutes.

use super::Mode;
use crate::queue::node::{Family, Kind};

mod exhaustive;
mod process;
mod random;
mod search;
mod server;
mod step;
mod tampered;
mod world;

static MUTEX: Family = Family { recipe: "mutex", markers: &[("lock-", Kind::Exclusive)] };

static READ_WRITE: Family = Family {
    recipe: "read-write lock",
    markers: &[("__READ__", Kind::Shared), ("__WRIT__", Kind::Exclusive)],
};

/// An acquisition of the process under test. Each acquires once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Acquisition {
    kind: Kind,
    mode: Mode,
}

/// A contender in another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    Reader,
    Writer,
    /// A writer that may turn reader while it holds.
    Downgrader,
}

impl Contestant {
    fn kind(self) -> Kind {
        match self {
            Contestant::Reader => Kind::Shared,
            Contestant::Writer | Contestant::Downgrader => Kind::Exclusive,
        }
    }
}

/// What the process does wrong, to see that the checks can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tampering {
    Nothing,
    /// It takes the change of a watched node's data for its deletion.
    DataChangeIsDeletion,
    /// It grants an acquisition as soon as it has its node.
    EarlyGrant,
    /// It loses the events of its watches.
    LostEvents,
    /// It sends no deletes.
    LostDeletes,
}

/// Who takes part, and what may happen.
#[derive(Clone, Debug)]
struct Setup {
    name: &'static str,
    family: &'static Family,
    locals: Vec<Acquisition>,
    foreign: Vec<Contestant>,
    /// How many nodes the process may have.
    bound: usize,
    cancels: bool,
    foreign_cancels: bool,
    reaps: bool,
    /// Whether answers are handled in the order of the wire, or in any order.
    in_wire_order: bool,
    /// How often each of these may happen, and how many of the first three in all.
    cuts: u8,
    expiries: u8,
    foreign_expiries: u8,
    faults: u8,
    writes: u8,
    /// How many of our nodes are removed by hand. With reaped directories this is not safe.
    removals: u8,
    /// More states than this are a failure of the search.
    bound_of_states: usize,
    tampering: Tampering,
}

impl Setup {
    /// Reads `"WR/DW"`: here a writer and a reader, elsewhere a downgrading writer and a writer.
    /// A small letter is a try. Without a reader or downgrader the recipe is the mutex.
    fn new(name: &'static str) -> Self {
        let (locals, foreign) = name.split_once('/').expect("both sides are named");
        let has_readers = name.contains(['R', 'r', 'D']);
        Self {
            name,
            family: if has_readers { &READ_WRITE } else { &MUTEX },
            locals: locals.chars().map(local).collect(),
            foreign: foreign.chars().map(contestant).collect(),
            bound: 1_000,
            cancels: false,
            foreign_cancels: false,
            reaps: false,
            in_wire_order: false,
            cuts: 0,
            expiries: 0,
            foreign_expiries: 0,
            faults: 0,
            writes: 0,
            removals: 0,
            bound_of_states: 30_000_000,
            tampering: Tampering::Nothing,
        }
    }
}

fn local(letter: char) -> Acquisition {
    let kind = if letter.eq_ignore_ascii_case(&'R') { Kind::Shared } else { Kind::Exclusive };
    let mode = if letter.is_ascii_lowercase() { Mode::Try } else { Mode::Wait };
    Acquisition { kind, mode }
}

fn contestant(letter: char) -> Contestant {
    match letter {
        'R' => Contestant::Reader,
        'W' => Contestant::Writer,
        'D' => Contestant::Downgrader,
        other => panic!("{other} is no contestant"),
    }
}
