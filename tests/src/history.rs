//! The record of who held a lock and when, and what must be true of any such record.
//!
//! A hold is recorded as wide as its holder can vouch for it and no wider: it begins when the guard
//! has been returned, and ends before the delete of its node is sent. Then two records that
//! overlap prove two holders at one time. Moments are nanoseconds of the one monotonic clock that
//! all processes of a machine share.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use zookeeper_recipes::MutexGuard;

use crate::{PATIENCE, number};

/// How often a hold that may end is looked at.
const SAMPLING: Duration = Duration::from_millis(1);

/// The present moment.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |part: i64| u64::try_from(part).expect("the clock does not run before its start");
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// One hold. Its text is one line of four numbers, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// A moment after the grant.
    pub granted: u64,
    /// A moment before the release.
    pub released: u64,
    /// The number of the lock node.
    pub sequence: i32,
    /// The fencing token.
    pub token: i64,
}

impl Hold {
    /// The hold of a guard that was just returned; it is taken to end at once.
    pub fn begin(guard: &MutexGuard) -> Self {
        let granted = now();
        let (sequence, token) = (number(guard.node()), guard.fencing_token());
        Self { granted, released: granted, sequence, token }
    }

    /// The hold goes on until now; to be called before the guard is released.
    pub fn extend(&mut self) {
        self.released = now();
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { granted, released, sequence, token } = self;
        write!(f, "{granted} {released} {sequence} {token}")
    }
}

impl FromStr for Hold {
    type Err = ParseIntError;

    fn from_str(line: &str) -> Result<Self, ParseIntError> {
        let mut fields = line.split(' ');
        let mut field = || fields.next().unwrap_or_default();
        Ok(Self {
            granted: field().parse()?,
            released: field().parse()?,
            sequence: field().parse()?,
            token: field().parse()?,
        })
    }
}

/// Looks at a hold until it is over, on a thread of its own, and gives the last moment at which it
/// was held: one read before the question was asked.
///
/// It fails where the hold does not end in [`PATIENCE`].
pub fn held_until(is_held: impl Fn() -> bool + Send + 'static) -> thread::JoinHandle<u64> {
    let start = now();
    thread::spawn(move || {
        let mut last = start;
        loop {
            let asked = now();
            if !is_held() {
                return last;
            }
            last = asked;
            assert!(Duration::from_nanos(last - start) < PATIENCE, "held for {PATIENCE:?}");
            thread::sleep(SAMPLING);
        }
    })
}

/// No two holds overlap.
///
/// # Errors
/// The first two that do.
pub fn never_two_holders(holds: &[Hold]) -> Result<(), String> {
    // In the order of the grants an overlap of any two shows in two that follow each other.
    follows(holds, "held at once", |one, next| one.released <= next.granted)
}

/// The lock was granted in the order of the nodes' numbers, within one life of the directory.
///
/// # Errors
/// The first two that were not.
pub fn granted_in_order(holds: &[Hold]) -> Result<(), String> {
    follows(holds, "out of order", |one, next| one.sequence < next.sequence)
}

/// Each grant has a greater token than the one before.
///
/// # Errors
/// The first two that have not.
pub fn tokens_increase(holds: &[Hold]) -> Result<(), String> {
    follows(holds, "not fenced", |one, next| one.token < next.token)
}

/// All three.
///
/// # Panics
/// With what is wrong.
pub fn assert_exclusive_and_in_order(holds: &[Hold]) {
    let checks = [never_two_holders(holds), granted_in_order(holds), tokens_increase(holds)];
    let wrong: Vec<_> = checks.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn follows(
    holds: &[Hold],
    wrong: &str,
    may_follow: fn(&Hold, &Hold) -> bool,
) -> Result<(), String> {
    let mut holds = holds.to_vec();
    holds.sort_by_key(|hold| hold.granted);
    match holds.windows(2).find(|pair| !may_follow(&pair[0], &pair[1])) {
        Some(pair) => Err(format!("{wrong}: {:?} and {:?}", pair[0], pair[1])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [Hold; 3] = [
        Hold { granted: 10, released: 20, sequence: 1, token: 100 },
        Hold { granted: 20, released: 35, sequence: 2, token: 107 },
        Hold { granted: 40, released: 41, sequence: 9, token: 108 },
    ];

    #[test]
    fn a_good_history_passes_in_whatever_order_it_was_collected() {
        assert_exclusive_and_in_order(&GOOD);
        let [one, two, three] = GOOD;
        assert_exclusive_and_in_order(&[three, one, two]);
        assert_exclusive_and_in_order(&[]);
    }

    #[test]
    fn two_holders_at_one_time_are_found() {
        let [one, two, three] = GOOD;
        let long = Hold { released: 41, ..one };
        assert!(never_two_holders(&[long, two, three]).is_err());
        assert!(never_two_holders(&[long, three]).is_err());
        assert!(never_two_holders(&[Hold { released: 21, ..one }, two]).is_err());
    }

    #[test]
    fn a_grant_out_of_order_is_found() {
        let [one, two, three] = GOOD;
        assert!(granted_in_order(&[one, Hold { sequence: 10, ..two }, three]).is_err());
        assert!(granted_in_order(&[one, Hold { sequence: 1, ..two }]).is_err());
    }

    #[test]
    fn a_token_that_does_not_grow_is_found() {
        let [one, two, three] = GOOD;
        assert!(tokens_increase(&[one, Hold { token: 100, ..two }, three]).is_err());
        assert!(tokens_increase(&[one, two, Hold { token: 99, ..three }]).is_err());
    }

    #[test]
    #[should_panic(expected = "held at once")]
    fn a_bad_history_fails_its_test() {
        assert_exclusive_and_in_order(&[Hold { released: 30, ..GOOD[0] }, GOOD[1]]);
    }

    #[test]
    fn a_line_is_read_back_and_a_broken_one_is_refused() {
        assert_eq!(GOOD[1].to_string().parse(), Ok(GOOD[1]));
        assert!("10 20 1".parse::<Hold>().is_err());
        assert!("10 20 one 100".parse::<Hold>().is_err());
    }

    #[test]
    fn a_hold_is_looked_at_until_it_ends() {
        let end = now() + 20_000_000;
        let last = held_until(move || now() < end).join().expect("it ends");
        assert!(last < end);
    }
}
