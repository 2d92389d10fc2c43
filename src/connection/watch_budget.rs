//! How much may be watched in one session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// The most bytes that the paths watched in one session may take.
///
/// At a reconnect all of them are sent to the new server. Beyond 128 KiB the wire client sends them
/// in a way that costs the session (fact 0.2).
const WATCHED_BYTES_MAX: usize = 100 * 1024;

/// How many bytes of paths are watched in one session.
#[derive(Debug, Default)]
pub(super) struct WatchBudget(AtomicUsize);

impl WatchBudget {
    /// # Errors
    /// `WatchesFull`.
    pub(super) fn reserve(self: &Arc<Self>, path: &str) -> Result<WatchPlace> {
        // Each path is sent with its length before it.
        let bytes = path.len() + size_of::<u32>();
        let taken = self.0.fetch_add(bytes, Ordering::Relaxed);
        let place = WatchPlace { budget: Arc::clone(self), bytes };
        if taken + bytes > WATCHED_BYTES_MAX {
            let limit = format!("the limit is {WATCHED_BYTES_MAX} bytes of paths a session");
            return Err(Error::new(ErrorKind::WatchesFull).with_detail(limit));
        }
        Ok(place)
    }
}

/// The share of one watch in its session's budget; given back when dropped.
#[derive(Debug)]
pub(super) struct WatchPlace {
    budget: Arc<WatchBudget>,
    bytes: usize,
}

impl Drop for WatchPlace {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_budget_refuses_until_a_watch_is_dropped() {
        let budget = Arc::new(WatchBudget::default());
        let path = "/".repeat(1020);
        let places: Vec<_> = (0..100).map(|_| budget.reserve(&path).unwrap()).collect();
        let full = budget.reserve("/").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::WatchesFull);
        drop(places);
        assert!(budget.reserve("/").is_ok());
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }
}
