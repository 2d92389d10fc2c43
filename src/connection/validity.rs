//! Until when a session is certainly alive, judged from what the servers answered.
//!
//! The promise: before [`Validity::valid_until`] no server has expired the session. It is pure:
//! every moment is an argument.
//!
//! "Last answer + timeout" does not hold that promise on an ensemble. A follower answers reads and
//! pings by itself, and tells the leader, which alone expires sessions, of a client's requests only
//! with the leader's next ping. So a request *confirms* only if it needs the leader (a write or a
//! `sync`), and even then its answer proves that the leader is reached, not yet that the leader has
//! heard of the session. The next confirming answer does, if it was sent long enough after that
//! answer came: a follower reports at least once in a quarter of the timeout.
//!
//! ```text
//!        answered
//!   A┄┄┄┄┄┄┄┄▶├───── S/4 ─────┤
//!   │         │               B┄┄┄┄┄▶ answered
//!   │         the newest confirming request answered before this line is A
//!   └──────────── S ────────────────────────▶ valid until A + S
//! ```
//!
//! That A was *sent* a quarter before B would not do: two requests that were held up on their way
//! reach the follower together, and nothing is reported in between.
//!
//! Two things are known to the leader at once and count as an A by themselves: the creation of the
//! session, and a re-attach. A re-attach also vouches for everything sent before it, so requests
//! need not remember the connection on which they were answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::BootTime;

/// The rule, for one session.
#[derive(Debug)]
pub(crate) struct Validity {
    timeout: Duration,
    /// A: the newest moment of which the leader certainly knows.
    heard: BootTime,
    /// B: when the newest answered confirming request was sent.
    newest: BootTime,
    /// Answers too young to be A, in the order in which they came; those of one short span of time
    /// are one.
    young: VecDeque<Answered>,
}

/// Confirming requests that were answered in one span of time.
#[derive(Clone, Copy, Debug)]
struct Answered {
    /// When the newest of them was sent.
    sent: BootTime,
    /// When the last of them was answered.
    at: BootTime,
}

impl Validity {
    /// A follower tells the leader of its clients at least once in this part of the timeout.
    const REPORTS: u32 = 4;

    /// Spans in a timeout: this bounds the memory, and what the result loses by it.
    const SPANS: u32 = 64;

    /// A session created by a request sent at `created_sent`; `timeout` is the negotiated one.
    pub(crate) fn new(timeout: Duration, created_sent: BootTime) -> Self {
        Self { timeout, heard: created_sent, newest: created_sent, young: VecDeque::new() }
    }

    /// A request that needs the leader was sent at `sent`, and its answer came at `at`. Answers are
    /// reported in the order in which they come; their requests may be of any order.
    pub(crate) fn confirmed(&mut self, sent: BootTime, at: BootTime) {
        let span = |moment: BootTime| moment.bucket(self.timeout / Self::SPANS);
        match self.young.back_mut() {
            Some(last) if span(last.at) == span(at) => {
                *last = Answered { sent: last.sent.max(sent), at: last.at.max(at) };
            }
            Some(_) | None => self.young.push_back(Answered { sent, at }),
        }
        self.newest = self.newest.max(sent);
        let reports = self.timeout / Self::REPORTS;
        let is_old = |answered: &Answered| answered.at.saturating_add(reports) <= self.newest;
        while let Some(old) = self.young.front().copied().filter(is_old) {
            self.heard = self.heard.max(old.sent);
            self.young.pop_front();
        }
    }

    /// The session was attached to a server again; `at` is a moment known to lie before that.
    pub(crate) fn reattached(&mut self, at: BootTime) {
        self.heard = self.heard.max(at);
    }

    /// When the newest confirming request that was answered was sent, or the creation if none was.
    pub(crate) fn newest_confirmed(&self) -> BootTime {
        self.newest
    }

    /// The moment from which on the session may have ended; it never goes back.
    pub(crate) fn valid_until(&self) -> BootTime {
        self.heard.saturating_add(self.timeout)
    }
}

/// The validity of a session as many threads see it: read without a lock, over once and for all.
///
/// Whoever finds the session over makes it so for everybody. An answer that arrives in the same
/// instant then comes too late, and no two readers can contradict each other.
#[derive(Debug)]
pub(crate) struct ValidityCell {
    /// The moment from which on the session is over; [`OVER`] once somebody said so.
    until: AtomicU64,
}

/// No moment lies before the start of the machine: whatever the time is, this is over.
const OVER: u64 = BootTime::ZERO.as_nanos();

impl ValidityCell {
    /// Valid before `until`.
    pub(crate) fn new(until: BootTime) -> Self {
        Self { until: AtomicU64::new(until.as_nanos()) }
    }

    /// Whether the session is certainly alive at `now`; once false, false for ever.
    ///
    /// `now` is to be read for this call: an older reading gets an older answer.
    pub(crate) fn is_valid(&self, now: BootTime) -> bool {
        self.settle(now, |until| until)
    }

    /// The moment from which on the session may have ended, or has; it lies in the past once
    /// somebody found it over.
    pub(crate) fn valid_until(&self) -> BootTime {
        BootTime::from_nanos(self.until.load(Ordering::SeqCst))
    }

    /// Makes the session valid until `until`, or longer if it was; false if it was over at `now`.
    pub(crate) fn extend(&self, until: BootTime, now: BootTime) -> bool {
        self.settle(now, |current| current.max(until.as_nanos()))
    }

    /// Ends the validity for good, whatever the time is.
    pub(crate) fn end(&self) {
        self.until.store(OVER, Ordering::SeqCst);
    }

    /// Looks at the cell at `now` and leaves in it what was found: over, or what `valid` makes of
    /// it, in one step, so that finding it over and extending it cannot both succeed.
    fn settle(&self, now: BootTime, valid: impl Fn(u64) -> u64) -> bool {
        let now = now.as_nanos();
        let next = |until| if now < until { valid(until) } else { OVER };
        // Nothing to write is the common case, and must not make readers contend for the cell.
        let changed = |until| Some(next(until)).filter(|&next| next != until);
        match self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed) {
            Ok(until) | Err(until) => now < until,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    const S: u64 = 6_400;

    fn at(nanos: u64) -> BootTime {
        BootTime::from_nanos(nanos)
    }

    fn created(sent: u64) -> Validity {
        Validity::new(Duration::from_nanos(S), at(sent))
    }

    /// The rule, word for word: all that was ever answered, looked through each time.
    struct Reference {
        timeout: u64,
        known: u64,
        /// When each was sent, and answered.
        answered: Vec<(u64, u64)>,
    }

    impl Reference {
        /// What the rule gives if a report takes `slack` longer.
        fn valid_until(&self, slack: u64) -> u64 {
            let newest = self.answered.iter().map(|(sent, _)| *sent).max().unwrap_or(0);
            let old = |(_, at): &&(u64, u64)| at + self.timeout / 4 + slack <= newest;
            let heard = self.answered.iter().filter(old).map(|(sent, _)| *sent).max();
            heard.unwrap_or(0).max(self.known) + self.timeout
        }
    }

    /// A generator of numbers (xorshift), so that a failure can be repeated from its seed.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit
        }
    }

    #[test]
    fn creation_alone_is_good_for_one_timeout() {
        assert_eq!(created(100).valid_until(), at(100 + S));
    }

    #[test]
    fn one_confirming_answer_proves_nothing_yet() {
        let mut validity = created(0);
        validity.confirmed(at(1_000), at(1_050));
        assert_eq!(validity.valid_until(), at(S));
        validity.confirmed(at(1_050 + S / 4 - 1), at(1_050 + S / 4));
        assert_eq!(validity.valid_until(), at(S));
        validity.confirmed(at(1_050 + S / 4), at(1_060 + S / 4));
        assert_eq!(validity.valid_until(), at(1_000 + S));
    }

    #[test]
    fn two_requests_that_are_held_up_together_prove_nothing() {
        let mut validity = created(0);
        validity.confirmed(at(1_000), at(1_000 + S / 3));
        validity.confirmed(at(1_000 + S / 3 - 1), at(1_001 + S / 3));
        assert_eq!(validity.valid_until(), at(S));
    }

    #[test]
    fn the_newest_confirmed_request_is_told_by_when_it_was_sent() {
        let mut validity = created(10);
        assert_eq!(validity.newest_confirmed(), at(10));
        validity.confirmed(at(30), at(40));
        validity.confirmed(at(20), at(41));
        assert_eq!(validity.newest_confirmed(), at(30));
    }

    #[test]
    fn a_reattach_counts_at_once_and_never_takes_away() {
        let mut validity = created(0);
        validity.reattached(at(3_000));
        assert_eq!(validity.valid_until(), at(3_000 + S));
        validity.reattached(at(2_000));
        assert_eq!(validity.valid_until(), at(3_000 + S));
    }

    #[test]
    fn the_result_is_never_above_the_rule_and_at_most_a_span_behind_it() {
        for seed in 1..=300 {
            let mut numbers = Numbers(seed);
            let timeout = 1 + numbers.below(20_000);
            let mut reference = Reference { timeout, known: 50_000, answered: Vec::new() };
            let mut validity = Validity::new(Duration::from_nanos(timeout), at(50_000));
            let (mut now, mut last) = (50_000, 0);
            // Sparse, dense and mixed schedules; answers come up to a whole timeout late.
            let step = 1 + numbers.below(1 + timeout);
            for _ in 0..500 {
                now += numbers.below(step);
                let sent = now - numbers.below(1 + timeout.min(now));
                if numbers.below(50) == 0 {
                    reference.known = reference.known.max(sent);
                    validity.reattached(at(sent));
                } else {
                    reference.answered.push((sent, now));
                    validity.confirmed(at(sent), at(now));
                }
                let result = validity.valid_until().as_nanos();
                let (rule, late) =
                    (reference.valid_until(0), reference.valid_until(timeout / 64 + 1));
                assert!(result <= rule, "seed {seed}: {result} > {rule}");
                assert!(result >= late, "seed {seed}: {result} < {late}");
                assert!(result >= last, "seed {seed}: went back from {last} to {result}");
                assert!(validity.young.len() <= 3 * 64, "seed {seed}: {}", validity.young.len());
                last = result;
            }
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let durations = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];
        let moments = [0, 1, u64::MAX - 1, u64::MAX];
        for (timeout, first) in durations.into_iter().flat_map(|d| moments.map(|m| (d, m))) {
            let mut validity = Validity::new(timeout, at(first));
            for moment in moments {
                validity.confirmed(at(moment), at(moment));
                validity.reattached(at(first));
                assert!(validity.valid_until() >= at(first).saturating_add(timeout));
            }
        }
    }

    #[test]
    fn a_cell_found_over_stays_over() {
        let cell = ValidityCell::new(at(100));
        assert!(cell.is_valid(at(99)));
        assert!(cell.extend(at(200), at(99)));
        assert!(!cell.is_valid(at(200)));
        assert!(!cell.is_valid(at(0)), "not even for a reader with an older reading of the clock");
        assert!(!cell.extend(at(300), at(150)));
        assert_eq!(cell.valid_until(), BootTime::ZERO);
    }

    #[test]
    fn an_extension_that_comes_too_late_ends_the_cell() {
        let cell = ValidityCell::new(at(100));
        assert!(!cell.extend(at(200), at(100)));
        assert!(!cell.is_valid(at(99)));
    }

    #[test]
    fn an_extension_never_shortens() {
        let cell = ValidityCell::new(at(100));
        assert!(cell.extend(at(50), at(10)));
        assert_eq!(cell.valid_until(), at(100));
    }

    #[test]
    fn an_ended_cell_is_over_at_once_and_for_ever() {
        let cell = ValidityCell::new(at(u64::MAX));
        assert!(cell.is_valid(at(1)));
        cell.end();
        assert!(!cell.is_valid(at(1)));
        assert!(!cell.extend(at(u64::MAX), at(0)));
    }

    #[test]
    fn a_reader_and_an_extension_that_race_agree_on_the_winner() {
        for _ in 0..2_000 {
            let cell = ValidityCell::new(at(100));
            let start = Barrier::new(3);
            let race = |act: &dyn Fn() -> bool| {
                start.wait();
                act()
            };
            let (late, still_valid, extended) = thread::scope(|scope| {
                // This reader's clock says 100: without the extension it finds the cell over.
                let late = scope.spawn(|| race(&|| cell.is_valid(at(100))));
                let early = scope.spawn(|| race(&|| cell.is_valid(at(99))));
                let extended = race(&|| cell.extend(at(200), at(99)));
                (late.join().unwrap(), early.join().unwrap(), extended)
            });
            assert_eq!(late, extended, "either the extension came first or the reader did");
            assert_eq!(cell.is_valid(at(101)), extended);
            assert!(still_valid || !extended);
        }
    }

    #[test]
    fn readers_never_see_an_ended_cell_come_back() {
        let cell = ValidityCell::new(at(1));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while cell.is_valid(at(0)) {}
                    assert!((0..10_000).all(|_| !cell.is_valid(at(0))));
                });
            }
            for until in 2..5_000 {
                assert!(cell.extend(at(until), at(until - 2)));
            }
            cell.end();
            assert!(!cell.extend(at(u64::MAX), at(0)));
        });
    }
}
