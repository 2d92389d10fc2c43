//! The clock by which the life of a session is judged; no other file reads it.
//!
//! It promises to run on while the machine is suspended, and never to be set. A server goes on
//! counting while this machine sleeps, so a clock that stops here would call a session alive that
//! ended long ago.
//!
//! On Linux this is `CLOCK_BOOTTIME`. Elsewhere it is the monotonic clock, which on some systems
//! stands still during a suspension: there a machine that wakes up learns of its loss only from
//! the server.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A moment: nanoseconds since the machine was started.
///
/// Arithmetic saturates at both ends, which lie at the start and 584 years after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootTime(u64);

impl BootTime {
    /// The start of the machine, before every moment a program can see.
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// How long ago `earlier` was; zero if it was not earlier.
    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The number of the stretch of time in which this moment lies, if time is cut into stretches
    /// of `width`, at least a nanosecond each.
    pub(crate) fn bucket(self, width: Duration) -> u64 {
        self.0 / nanos(width).max(1)
    }
}

/// The present moment.
pub(crate) fn now() -> BootTime {
    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    BootTime(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_clock_moves_on_with_the_monotonic_one() {
        let (began, monotonic) = (now(), Instant::now());
        while monotonic.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        let floor = Duration::from_millis(5);
        // The two clocks are read one after the other, and the second reading of ours comes last.
        assert!(now().saturating_duration_since(began) >= floor);
        assert!(began > BootTime::ZERO);
    }

    #[test]
    fn arithmetic_saturates() {
        let moment = BootTime::from_nanos(5);
        assert_eq!(moment.saturating_add(Duration::MAX).as_nanos(), u64::MAX);
        assert_eq!(BootTime::ZERO.saturating_duration_since(moment), Duration::ZERO);
        let later = moment.saturating_add(Duration::from_nanos(7));
        assert_eq!(later.saturating_duration_since(moment), Duration::from_nanos(7));
        assert_eq!((later.bucket(Duration::from_nanos(5)), later.bucket(Duration::ZERO)), (2, 12));
        assert_eq!(later.bucket(Duration::MAX), 0);
    }
}
