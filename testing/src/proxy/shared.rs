//! What the proxy's thread and the test's threads both touch.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::counts::Counts;
use super::rules::Rules;

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) rules: Mutex<Rules>,
    pub(super) counts: Mutex<Counts>,
    open: Mutex<Open>,
    closed: Condvar,
}

/// The connections that carry something, by number in the order of their begin.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    numbers: BTreeSet<u64>,
}

impl Shared {
    /// The number of a connection that begins.
    pub(super) fn begin(&self) -> u64 {
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.numbers.insert(number);
        number
    }

    pub(super) fn end(&self, number: u64) {
        self.open.lock().numbers.remove(&number);
        self.closed.notify_all();
    }

    pub(super) fn open_connections(&self) -> usize {
        self.open.lock().numbers.len()
    }

    /// The number that the next connection will have.
    pub(super) fn next(&self) -> u64 {
        self.open.lock().next
    }

    /// Waits until no connection with a number below `next` is open, for `timeout` at most, and
    /// says whether it came to that.
    pub(super) fn wait_until_ended(&self, next: u64, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut open = self.open.lock();
        while open.numbers.first().is_some_and(|first| *first < next) {
            if self.closed.wait_until(&mut open, deadline).timed_out() {
                return false;
            }
        }
        true
    }
}
