//! The retries of one public call, shared by all that is done for it.

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use zookeeper_framework::Client;

/// The shortest pause between attempts that nobody waits for any more.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

type Delays = Box<dyn Iterator<Item = Duration> + Send>;

/// One row of pauses, as the client's retry policy gives it for one call.
pub(crate) struct Budget {
    delays: Mutex<(Delays, Duration)>,
}

impl Budget {
    pub(crate) fn new(client: &Client) -> Self {
        Self { delays: Mutex::new((client.retry_policy().delays(), SHORTEST_PAUSE)) }
    }

    /// The pause before the next attempt; `None` when the policy gives up.
    pub(crate) fn next(&self) -> Option<Duration> {
        let (delays, last) = &mut *self.delays.lock();
        let next = delays.next();
        *last = next.unwrap_or(*last).max(SHORTEST_PAUSE);
        next
    }

    /// The pause to go on with when the policy has given up but the work must be done.
    pub(crate) fn last(&self) -> Duration {
        self.delays.lock().1
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").finish_non_exhaustive()
    }
}
