//! What has passed a proxy.

use std::collections::BTreeMap;
use std::ops::Sub;

use super::frames::{Label, Message};
use super::operation::Operation;

/// Requests, replies and bytes by operation, as they arrived at a proxy.
///
/// A frame counts when the proxy has received it whole, also where a fault loses it then. The
/// difference of two is what came in between:
///
/// ```no_run
/// # use zookeeper_testing::{Operation, Proxy};
/// # fn quiet(proxy: &Proxy) {
/// let before = proxy.counts();
/// // ... what must send nothing ...
/// let sent = proxy.counts() - before;
/// assert_eq!(sent.total_requests(), 0, "{sent:?}");
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    connections: u64,
    requests: BTreeMap<Operation, Tally>,
    replies: BTreeMap<Operation, Tally>,
    notifications: Tally,
    opaque: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    frames: u64,
    bytes: u64,
}

impl Counts {
    /// How many connections the proxy has accepted; refused ones do not count.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// How many requests of this operation clients have sent.
    pub fn requests(&self, operation: Operation) -> u64 {
        tally(&self.requests, operation).frames
    }

    /// How many bytes these requests had, their lengths included.
    pub fn request_bytes(&self, operation: Operation) -> u64 {
        tally(&self.requests, operation).bytes
    }

    /// How many replies to this operation servers have sent.
    pub fn replies(&self, operation: Operation) -> u64 {
        tally(&self.replies, operation).frames
    }

    /// How many bytes these replies had, their lengths included.
    pub fn reply_bytes(&self, operation: Operation) -> u64 {
        tally(&self.replies, operation).bytes
    }

    /// How many notifications of watches servers have sent.
    pub fn notifications(&self) -> u64 {
        self.notifications.frames
    }

    /// How many requests clients have sent, pings apart.
    pub fn total_requests(&self) -> u64 {
        self.total_requests_except(&[])
    }

    /// How many requests clients have sent, pings and these operations apart.
    pub fn total_requests_except(&self, operations: &[Operation]) -> u64 {
        let counted = self.requests.iter().filter(|(operation, _)| {
            **operation != Operation::Ping && !operations.contains(operation)
        });
        counted.map(|(_, tally)| tally.frames).sum()
    }

    /// How many bytes all requests had, pings included.
    pub fn total_request_bytes(&self) -> u64 {
        self.requests.values().map(|tally| tally.bytes).sum()
    }

    /// How many bytes all replies and notifications had, those to pings included.
    pub fn total_reply_bytes(&self) -> u64 {
        self.notifications.bytes + self.replies.values().map(|tally| tally.bytes).sum::<u64>()
    }

    pub(super) fn add_connection(&mut self) {
        self.connections += 1;
    }

    pub(super) fn add(&mut self, message: &Message) {
        let tally = match message.label {
            Label::Request(operation) => self.requests.entry(operation).or_default(),
            Label::Reply(operation) => self.replies.entry(operation).or_default(),
            Label::Notification => &mut self.notifications,
            Label::Opaque => &mut self.opaque,
        };
        tally.frames += 1;
        tally.bytes += message.bytes.len() as u64;
    }
}

impl Sub for Counts {
    type Output = Self;

    /// What was counted since `earlier`; nothing where the counters were reset in between.
    fn sub(self, earlier: Self) -> Self {
        Self {
            connections: self.connections.saturating_sub(earlier.connections),
            requests: difference(self.requests, &earlier.requests),
            replies: difference(self.replies, &earlier.replies),
            notifications: self.notifications - earlier.notifications,
            opaque: self.opaque - earlier.opaque,
        }
    }
}

impl Sub for Tally {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(earlier.frames),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// Only what differs stays: the debug output of a difference shows what happened and no more.
fn difference(
    later: BTreeMap<Operation, Tally>,
    earlier: &BTreeMap<Operation, Tally>,
) -> BTreeMap<Operation, Tally> {
    later
        .into_iter()
        .map(|(operation, tallied)| (operation, tallied - tally(earlier, operation)))
        .filter(|(_, tallied)| *tallied != Tally::default())
        .collect()
}

fn tally(tallies: &BTreeMap<Operation, Tally>, operation: Operation) -> Tally {
    tallies.get(&operation).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(labels: &[Label]) -> Counts {
        let mut counts = Counts::default();
        for label in labels {
            counts.add(&Message { label: *label, bytes: vec![0; 10] });
        }
        counts
    }

    #[test]
    fn totals_leave_out_pings_and_what_is_named() {
        let counts = counted(&[
            Label::Request(Operation::Ping),
            Label::Request(Operation::Sync),
            Label::Request(Operation::Create),
            Label::Reply(Operation::Create),
            Label::Notification,
        ]);
        assert_eq!(counts.total_requests(), 2);
        assert_eq!(counts.total_requests_except(&[Operation::Sync]), 1);
        assert_eq!(counts.total_request_bytes(), 30);
        assert_eq!(counts.total_reply_bytes(), 20);
        assert_eq!(counts.notifications(), 1);
    }

    #[test]
    fn a_difference_holds_what_came_in_between() {
        let before = counted(&[Label::Request(Operation::Create)]);
        let after = counted(&[
            Label::Request(Operation::Create),
            Label::Request(Operation::Delete),
            Label::Reply(Operation::Delete),
        ]);
        let between = after.clone() - before;
        assert_eq!(between.requests(Operation::Create), 0);
        assert_eq!(between.requests(Operation::Delete), 1);
        assert_eq!(between.reply_bytes(Operation::Delete), 10);
        assert_eq!(after.clone() - after, Counts::default());
    }
}
