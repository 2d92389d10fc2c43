//! Whether a hold was ended, told to whoever asks or waits.

use std::future::Future;

use tokio::sync::watch;

use crate::error::HoldEnd;

/// Whether a hold was ended by somebody, its holder included. The session's end is asked of the
/// session.
#[derive(Debug, Default)]
pub(crate) struct Life(watch::Sender<Option<HoldEnd>>);

impl Life {
    /// Ends the hold. The first end stays.
    pub(crate) fn end(&self, end: HoldEnd) {
        self.0.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(end);
            first
        });
    }

    /// What ended the hold, if somebody has.
    pub(super) fn ended(&self) -> Option<HoldEnd> {
        *self.0.borrow()
    }

    /// Resolves once the hold was ended. It is only a wake-up: in a task that has used up its turn
    /// it comes late, so ask [`ended`](Self::ended) first.
    pub(super) fn ending(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        let mut ended = self.0.subscribe();
        async move {
            let _ = ended.wait_for(Option::is_some).await;
        }
    }
}
