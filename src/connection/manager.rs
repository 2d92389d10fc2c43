//! The manager: one session after the other, until the client is closed.
//!
//! It is the only owner of the link and the only writer of the state. It promises that
//!
//! * `Lost(e)` is published, and the session's own `lost()` resolved, before the link of `e` is
//!   given up and before a session `e + 1` is asked for;
//! * a session whose server cannot be shown to keep it is given up, even if it might still live;
//! * it never stops trying to connect before it is told to close.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::clock::{self, BootTime};
use super::core::Core;
use super::diagnosis;
use super::link::{CloseOutcome, Link, LinkState, Target};
use super::liveness::{Liveness, LostReason};
use super::nodelay;
use super::session::{Request, Session, Shared};
use super::state::{ConnectionState, Event, SessionEpoch, StateChange, next};
use super::validity::Validity;
use crate::error::{Error, ErrorKind, Result};
use crate::path::Root;

/// The shortest pause between two attempts to connect once the retry policy has given up.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// What the handles tell the manager.
pub(super) enum Order {
    /// Close, and answer how it went where somebody waits for it.
    Close(Option<oneshot::Sender<CloseOutcome>>),
}

type Orders = mpsc::UnboundedReceiver<Order>;
type Closing = Option<oneshot::Sender<CloseOutcome>>;

/// Runs until the client is closed.
pub(super) async fn run(core: Arc<Core>, mut orders: Orders) {
    let mut manager = Manager { state: ConnectionState::Connecting, core };
    let (closing, outcome) = loop {
        let opened = tokio::select! {
            biased;
            closing = closed(&mut orders) => {
                let outcome = match manager.state {
                    ConnectionState::Lost(_) => CloseOutcome::Unconfirmed,
                    ConnectionState::Connecting
                    | ConnectionState::Connected(_)
                    | ConnectionState::Suspended(_)
                    | ConnectionState::Closed => CloseOutcome::Confirmed,
                };
                manager.publish(Event::Close, None);
                break (closing, outcome);
            }
            opened = manager.open() => opened,
        };
        let (link, ended) = manager.serve(opened, &mut orders).await;
        if let Ended::Closed(closing) = ended {
            let limit = manager.core.config.connection_timeout;
            let outcome = timeout(limit, link.close()).await;
            break (closing, outcome.unwrap_or(CloseOutcome::Unconfirmed));
        }
        link.give_up();
    };
    let outcome = *manager.core.closed.get_or_init(|| outcome);
    if let Some(closing) = closing {
        let _ = closing.send(outcome);
    }
}

async fn closed(orders: &mut Orders) -> Closing {
    match orders.recv().await {
        Some(Order::Close(closing)) => closing,
        None => None,
    }
}

/// A session that was just opened.
struct Opened {
    link: Link,
    validity: Validity,
}

enum Ended {
    Lost,
    Closed(Closing),
}

struct Manager {
    core: Arc<Core>,
    state: ConnectionState,
}

impl Manager {
    /// Moves to the next state and tells everybody. An event that changes nothing is dropped.
    fn publish(&mut self, event: Event, session: Option<Session>) {
        let Ok(current) = next(self.state, event) else {
            tracing::debug!(state = ?self.state, ?event, "an event without effect");
            return;
        };
        let change = StateChange::new(self.state, current);
        self.state = current;
        self.log(change, session.as_ref());
        self.core.publish(change, session);
    }

    /// One line a change: a warning when things get worse, a note when they get better.
    fn log(&self, change: StateChange, session: Option<&Session>) {
        let servers = &self.core.config.connect_string;
        let session = session.map(|session| format!("{:#x}", session.id())).unwrap_or_default();
        match change.current {
            ConnectionState::Suspended(epoch) => {
                tracing::warn!(%servers, %epoch, session, "connection suspended");
            }
            ConnectionState::Lost(epoch) => tracing::warn!(%servers, %epoch, "session lost"),
            ConnectionState::Connected(epoch) => {
                tracing::info!(%servers, %epoch, session, "connected");
            }
            ConnectionState::Closed => tracing::info!(%servers, "closed"),
            ConnectionState::Connecting => {}
        }
    }

    /// Tries until there is a session.
    async fn open(&self) -> Opened {
        let mut delays = self.core.config.retry_policy.delays();
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.open_once().await {
                Ok(opened) => return opened,
                Err(failure) => {
                    let servers = &self.core.config.connect_string;
                    tracing::debug!(%servers, %failure, "no session");
                    self.core.status.send_modify(|status| status.failure = Some(failure));
                }
            }
            pause = delays.next().unwrap_or(pause.max(SHORTEST_PAUSE));
            sleep(pause).await;
        }
    }

    async fn open_once(&self) -> Result<Opened> {
        let config = &self.core.config;
        let servers = config.connect_string.to_servers();
        let sent = clock::now();
        let target = Target {
            servers: &servers,
            session_timeout: config.session_timeout,
            auth: &config.auth,
        };
        let link = match Link::connect(target).await {
            Ok(link) => link,
            Err(failure) => return Err(self.explain(failure).await),
        };
        self.set_nodelay();
        let mut validity = Validity::new(link.session_timeout(), sent);
        match confirm_slow_start(&link, &mut validity).await {
            Ok(()) => Ok(Opened { link, validity }),
            Err(failure) => {
                link.give_up();
                Err(failure)
            }
        }
    }

    /// Says more than the wire crate does of why there is no session.
    async fn explain(&self, failure: Error) -> Error {
        let config = &self.core.config;
        if failure.kind() == ErrorKind::AuthFailed {
            let schemes: Vec<_> = config.auth.iter().map(|(scheme, _)| scheme.as_str()).collect();
            return failure.with_detail(format!("credentials of scheme {}", schemes.join(", ")));
        }
        match self.state {
            ConnectionState::Connecting | ConnectionState::Lost(_) => {
                failure.with_detail(diagnosis::of(config.connect_string.hosts()).await)
            }
            ConnectionState::Connected(_)
            | ConnectionState::Suspended(_)
            | ConnectionState::Closed => failure,
        }
    }

    /// Without TCP_NODELAY the second of two requests sent back to back waits a round trip for the
    /// acknowledgement of the first. Each connection is a new socket (fact 0.5).
    fn set_nodelay(&self) {
        if let Err(error) = nodelay::set_nodelay(self.core.config.connect_string.hosts()) {
            static TOLD: std::sync::Once = std::sync::Once::new();
            TOLD.call_once(|| {
                tracing::warn!(%error, "TCP_NODELAY could not be set: requests may wait longer");
            });
        }
    }

    /// Serves one session to its end.
    async fn serve(&mut self, opened: Opened, orders: &mut Orders) -> (Link, Ended) {
        let Opened { mut link, validity } = opened;
        let (sender, mut requests) = mpsc::unbounded_channel();
        let session = self.session(&link, validity, sender);
        let liveness = Arc::clone(session.liveness());
        let pulse = Pulse::new(link.session_timeout());
        let mut flights = JoinSet::new();
        // What the link's last reply before it went down proves, until it is up again.
        let mut before_down = None;
        self.publish(Event::Established, Some(session.clone()));
        let mut probed = probe(&link, &liveness, &mut flights);
        let ended = loop {
            // Here and not when the pause below ends: under a flood of requests it never does.
            if !liveness.is_valid() {
                liveness.end(LostReason::Unconfirmed);
                break Ended::Lost;
            }
            if pulse.is_due(&liveness, probed) && link.state() == LinkState::Up {
                probed = probe(&link, &liveness, &mut flights);
            }
            tokio::select! {
                biased;
                closing = closed(orders) => break Ended::Closed(closing),
                state = link.changed() => match state {
                    LinkState::Over => {
                        liveness.end(LostReason::Expired);
                        break Ended::Lost;
                    }
                    LinkState::Down => {
                        before_down = Some(liveness.newest_confirmed());
                        self.publish(Event::LinkDown, Some(session.clone()));
                    }
                    LinkState::Up => {
                        self.set_nodelay();
                        // `Up` without a `Down` hides one.
                        self.publish(Event::LinkDown, Some(session.clone()));
                        if let Some(at) = before_down.take() {
                            liveness.reattached(at);
                        }
                        self.publish(Event::LinkUp, Some(session.clone()));
                        probed = probe(&link, &liveness, &mut flights);
                    }
                },
                Some(_) = flights.join_next(), if !flights.is_empty() => {}
                Some(request) = requests.recv() => start(request, &link, &mut flights),
                () = sleep(pulse.next(&liveness, probed)) => {}
            }
        };
        // First here, for everybody who holds anything by this session; only then on the server.
        match &ended {
            Ended::Lost => self.publish(Event::SessionOver, None),
            Ended::Closed(_) => {
                liveness.end(LostReason::Closed);
                self.publish(Event::Close, None);
                // What was called before is sent before the session is closed.
                while let Ok(request) = requests.try_recv() {
                    start(request, &link, &mut flights);
                }
            }
        }
        (link, ended)
    }

    fn session(
        &self,
        link: &Link,
        validity: Validity,
        requests: mpsc::UnboundedSender<Request>,
    ) -> Session {
        let epoch = match self.state.epoch() {
            Some(epoch) => epoch.next(),
            None => SessionEpoch::FIRST,
        };
        let liveness = Liveness::new(epoch, validity);
        let shared = Shared {
            id: link.session_id(),
            timeout: link.session_timeout(),
            liveness,
            requests,
            watches: Arc::default(),
            default_acl: Arc::clone(&self.core.config.default_acl),
        };
        Session::new(shared, Root::server())
    }
}

/// Starts a request. It is polled here once, which sends it: the order on the wire is the order of
/// the calls, whatever order the runtime runs its tasks in.
fn start(request: Request, link: &Link, flights: &mut JoinSet<()>) {
    let mut flight = request(link.wire());
    let mut unheard = Context::from_waker(Waker::noop());
    if flight.as_mut().poll(&mut unheard).is_pending() {
        flights.spawn(flight);
    }
}

/// Asks the leader for a sign of life, and gives the time of it.
fn probe(link: &Link, liveness: &Arc<Liveness>, flights: &mut JoinSet<()>) -> BootTime {
    let (wire, liveness, sent) = (link.wire(), Arc::clone(liveness), clock::now());
    flights.spawn(async move {
        if wire.sync("/".to_owned()).await.is_ok() {
            liveness.confirmed(sent);
        }
    });
    sent
}

/// When the manager looks after a session by itself.
struct Pulse {
    probe: Duration,
    longest: Duration,
}

impl Pulse {
    fn new(timeout: Duration) -> Self {
        // A sixth: two probes a report of the follower apart stay within the timeout even where an
        // answer takes a quarter of it. And timers stand still while the machine is suspended;
        // looking more often than needed finds an end that came meanwhile soon after it goes on.
        Self { probe: timeout / 6, longest: timeout / 8 }
    }

    fn is_due(&self, liveness: &Liveness, probed: BootTime) -> bool {
        clock::now() >= self.due(liveness, probed)
    }

    /// What the session's own requests confirm need not be asked again. Those that are refused
    /// confirm nothing, however many there are.
    fn due(&self, liveness: &Liveness, probed: BootTime) -> BootTime {
        probed.max(liveness.newest_confirmed()).saturating_add(self.probe)
    }

    fn next(&self, liveness: &Liveness, probed: BootTime) -> Duration {
        let now = clock::now();
        let until_lapse = liveness.valid_until().saturating_duration_since(now);
        let until_probe = match self.due(liveness, probed).saturating_duration_since(now) {
            // Due already, but the link is down: it is probed when it is up again.
            Duration::ZERO => self.longest,
            wait => wait,
        };
        until_lapse.min(until_probe).min(self.longest).max(Duration::from_millis(1))
    }
}

/// A session whose opening took so long that little of its proven life may be left is confirmed
/// before anybody gets it: the time it was asked for is all that its opening proves.
async fn confirm_slow_start(link: &Link, validity: &mut Validity) -> Result<()> {
    let timeout = link.session_timeout();
    if validity.valid_until().saturating_duration_since(clock::now()) >= timeout / 2 {
        return Ok(());
    }
    for pause in [timeout / 4, Duration::ZERO] {
        let sent = clock::now();
        link.wire().sync("/".to_owned()).await?;
        validity.confirmed(sent, clock::now());
        sleep(pause).await;
    }
    Ok(())
}
