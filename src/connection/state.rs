//! The states of a connection, and what leads from one to the next. Pure.
//!
//! It promises that a session that was lost never comes back: every state of a session carries the
//! session's [`SessionEpoch`], and only a new session, with the next epoch, leads out of
//! [`Lost`](ConnectionState::Lost). An observer that was too slow to see `Lost(3)` sees
//! `Connected(4)` and knows all the same.
//!
//! ```text
//!                              LinkDown
//!   Connecting ──▶ Connected(e) ─────▶ Suspended(e)
//!     Established   ▲  │     ◀─────────   │
//!                   │  │      LinkUp      │
//!                   │  └───────┬──────────┘
//!                   │          ▼ SessionOver          any of them but Closed
//!                   └─────── Lost(e)                        │ Close
//!      Established: e + 1                                   ▼
//!                                                         Closed
//! ```
//!
//! What may report each event, and so where a state has its authority from, is written in
//! `docs/states.md` together with the whole table; a test holds the two together. An event that
//! makes no sense in a state is refused as a value, [`InvalidTransition`], and changes nothing:
//! reports about one link can cross each other, and a late one must not do harm.

use std::fmt;

/// The number of a session among the sessions of its client: 1, 2, 3 and so on.
///
/// # Examples
///
/// ```
/// use zookeeper_framework::SessionEpoch;
///
/// fn is_newer(seen: SessionEpoch, last: SessionEpoch) -> bool {
///     seen > last
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SessionEpoch(u64);

impl SessionEpoch {
    /// The epoch of a client's first session.
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number itself, for logs and measurements; the first is 1.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SessionEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a client knows of its connection and of its session.
///
/// Its `Display` is the name with the epoch, such as `Connected(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectionState {
    /// There was no session yet.
    Connecting,
    /// A server has answered in this session, and the link to it stands.
    Connected(SessionEpoch),
    /// The link is gone; the session may live or be over, nobody here can tell.
    Suspended(SessionEpoch),
    /// The session is over, and its ephemeral nodes are gone or will be.
    Lost(SessionEpoch),
    /// The client was closed; nothing follows.
    Closed,
}

impl ConnectionState {
    /// Whether requests can be sent and answered at present.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match self {
            Self::Connected(_) => true,
            Self::Connecting | Self::Suspended(_) | Self::Lost(_) | Self::Closed => false,
        }
    }

    /// The session this state speaks of; none before the first one and after the last.
    #[must_use]
    pub fn epoch(&self) -> Option<SessionEpoch> {
        match *self {
            Self::Connected(epoch) | Self::Suspended(epoch) | Self::Lost(epoch) => Some(epoch),
            Self::Connecting | Self::Closed => None,
        }
    }
}

impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("Connecting"),
            Self::Connected(epoch) => write!(f, "Connected({epoch})"),
            Self::Suspended(epoch) => write!(f, "Suspended({epoch})"),
            Self::Lost(epoch) => write!(f, "Lost({epoch})"),
            Self::Closed => f.write_str("Closed"),
        }
    }
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A server created a session for us.
    Established,
    /// The link went.
    LinkDown,
    /// The link is back, and the server took the same session.
    LinkUp,
    /// The session is over: the server said so, or its validity ran out.
    SessionOver,
    /// The client is being closed.
    Close,
}

/// An event that makes no sense in the state it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidTransition {
    pub(crate) state: ConnectionState,
    pub(crate) event: Event,
}

impl fmt::Display for InvalidTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} makes no sense in the state {}", self.event, self.state)
    }
}

/// The state that follows when `event` happens in `state`.
pub(crate) fn next(
    state: ConnectionState,
    event: Event,
) -> Result<ConnectionState, InvalidTransition> {
    use ConnectionState::{Closed, Connected, Connecting, Lost, Suspended};
    use Event::{Close, Established, LinkDown, LinkUp, SessionOver};

    Ok(match (state, event) {
        (Connecting, Established) => Connected(SessionEpoch::FIRST),
        (Connected(epoch), LinkDown) => Suspended(epoch),
        (Suspended(epoch), LinkUp) => Connected(epoch),
        (Connected(epoch) | Suspended(epoch), SessionOver) => Lost(epoch),
        (Lost(epoch), Established) => Connected(epoch.next()),
        (Connecting | Connected(_) | Suspended(_) | Lost(_), Close) => Closed,

        (Connecting, LinkDown | LinkUp | SessionOver)
        | (Connected(_), Established | LinkUp)
        | (Suspended(_), Established | LinkDown)
        | (Lost(_), LinkDown | LinkUp | SessionOver)
        | (Closed, Established | LinkDown | LinkUp | SessionOver | Close) => {
            return Err(InvalidTransition { state, event });
        }
    })
}

/// A step from one state to another, as a listener hears of it.
///
/// A listener that is slow may hear of several steps as one, so `previous` is the state it heard of
/// last, and the states in between are left out. The end of a session is never left out.
///
/// # Examples
///
/// ```
/// use zookeeper_framework::StateChange;
///
/// fn describe(change: StateChange) -> &'static str {
///     match change {
///         change if change.is_new_session() => "a new session: register anew",
///         change if change.is_reconnect() => "back in the same session: read again",
///         _ => "nothing to do",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateChange {
    /// The state before.
    pub previous: ConnectionState,
    /// The state now.
    pub current: ConnectionState,
}

impl StateChange {
    pub(crate) fn new(previous: ConnectionState, current: ConnectionState) -> Self {
        Self { previous, current }
    }

    /// Whether the client is connected again after it had been connected before.
    #[doc(alias = "RECONNECTED")]
    #[must_use]
    pub fn is_reconnect(&self) -> bool {
        self.current.is_connected() && self.previous.epoch().is_some()
    }

    /// Whether the client is connected in another session than before, or in its first.
    ///
    /// The ephemeral nodes of the session before, and all watches, are gone then.
    #[must_use]
    pub fn is_new_session(&self) -> bool {
        self.current.is_connected() && self.previous.epoch() != self.current.epoch()
    }
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.previous, self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionState::{Closed, Connected, Connecting, Lost, Suspended};
    use super::*;

    const DOCUMENT: &str = include_str!("../../docs/states.md");

    const EVENTS: [Event; 5] =
        [Event::Established, Event::LinkDown, Event::LinkUp, Event::SessionOver, Event::Close];

    /// The whole table in the form of the document, with `e` for the epoch 7.
    fn table() -> String {
        let epoch = SessionEpoch(7);
        let states = [Connecting, Connected(epoch), Suspended(epoch), Lost(epoch), Closed];
        let mut lines = vec![
            format!("| state | {} |", EVENTS.map(|event| format!("{event:?}")).join(" | ")),
            "| --- | --- | --- | --- | --- | --- |".to_owned(),
        ];
        for state in states {
            let cells = EVENTS.map(|event| match next(state, event) {
                Ok(next) => next.to_string(),
                Err(InvalidTransition { .. }) => "—".to_owned(),
            });
            lines.push(format!("| {state} | {} |", cells.join(" | ")));
        }
        lines.join("\n").replace("(7)", "(e)").replace("(8)", "(e+1)")
    }

    #[test]
    fn the_document_holds_exactly_this_table() {
        let table = table();
        let of_states = |line: &&str| line.starts_with('|');
        let mut lines = DOCUMENT.lines().skip_while(|line| *line != "## Table").skip(1);
        let documented: Vec<_> =
            lines.by_ref().take_while(|line| !line.starts_with('#')).filter(of_states).collect();
        assert_eq!(documented.join("\n"), table, "docs/states.md should say:\n{table}\n");
    }

    #[test]
    fn epochs_grow_by_one_and_a_lost_one_never_comes_back() {
        fn walk(state: ConnectionState, newest: u64, lost: u64, steps: u32) {
            for event in EVENTS {
                let Ok(next) = next(state, event) else { continue };
                let epoch = next.epoch().map_or(newest, SessionEpoch::get);
                assert!(epoch == newest || epoch == newest + 1, "{state} to {next}");
                assert!(matches!(next, Lost(_) | Closed) || epoch > lost, "{state} to {next}");
                let lost = if let Lost(_) = next { epoch } else { lost };
                if steps > 0 {
                    walk(next, epoch, lost, steps - 1);
                }
            }
        }
        walk(Connecting, 0, 0, 12);
    }

    #[test]
    fn a_refused_event_is_named_with_its_state() {
        let refusal = next(Lost(SessionEpoch::FIRST), Event::LinkUp).unwrap_err();
        assert_eq!(refusal.to_string(), "LinkUp makes no sense in the state Lost(1)");
    }

    #[test]
    fn a_state_says_whether_it_is_connected_and_in_which_session() {
        let epoch = SessionEpoch::FIRST;
        let connected = [Connected(epoch)];
        let others = [Connecting, Suspended(epoch), Lost(epoch), Closed];
        assert!(connected.iter().all(ConnectionState::is_connected));
        assert!(!others.iter().any(ConnectionState::is_connected));
        let epochs = others.map(|state| state.epoch());
        assert_eq!(epochs, [None, Some(epoch), Some(epoch), None]);
    }

    #[test]
    fn a_change_tells_a_reconnect_from_a_new_session() {
        let (one, two) = (SessionEpoch::FIRST, SessionEpoch::FIRST.next());
        let cases = [
            (Connecting, Connected(one), false, true),
            (Connected(one), Suspended(one), false, false),
            (Suspended(one), Connected(one), true, false),
            (Connected(one), Connected(one), true, false),
            (Suspended(one), Lost(one), false, false),
            (Lost(one), Connected(two), true, true),
            (Connected(two), Closed, false, false),
        ];
        for (previous, current, is_reconnect, is_new_session) in cases {
            let change = StateChange::new(previous, current);
            assert_eq!(change.is_reconnect(), is_reconnect, "{change:?}");
            assert_eq!(change.is_new_session(), is_new_session, "{change:?}");
        }
    }
}
