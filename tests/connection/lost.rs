//! Sessions that are lost: known in time, known for ever, and given up. Serves C1, C2, C3, C6.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use integration_tests::{SHORT_SESSION, at_once, connect, eventually, proxy, soon, unique, until};
use zookeeper_framework::{
    Client, ConnectionStateListener, CreateMode, ErrorKind, LostReason, Session, StateChange,
    WatchEvent,
};
use zookeeper_testing::{Direction, Operation, Proxy, ZooKeeperServer};

use crate::{next_session, observer, short_lived};

/// The length of a tick of the shared server.
const TICK: Duration = Duration::from_millis(200);

/// How late this test may see what has happened.
const OBSERVATION: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_lost_session_is_over_for_ever() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let session = client.session().unwrap();
    assert!(session.is_valid());
    assert_eq!((session.lost_reason(), at_once(session.lost())), (None, None));
    let early = session.lost();

    next_session(&proxy, &client).await;

    let reason = soon("the loss is told", early).await;
    assert_ne!(reason, LostReason::Closed);
    assert!(!session.is_valid());
    assert_eq!((session.lost_reason(), at_once(session.lost())), (Some(reason), Some(reason)));
    let errors = [
        at_once(session.sync("/")).expect("no network is asked").unwrap_err(),
        at_once(session.get_data("/")).expect("no network is asked").unwrap_err(),
        session.over(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::SessionLost);
        assert_eq!(error.epoch(), Some(session.epoch()));
    }
    client.get_data("/").await.unwrap();
    client.close().await;
    assert!(!session.is_valid());
    assert_eq!(session.lost_reason(), Some(reason), "the first reason stays");
}

/// Looks at the session the moment it is told that this is lost, and when the next one is there.
struct Witness {
    session: Session,
    seen: Arc<Mutex<Vec<(String, bool, bool)>>>,
}

#[async_trait]
impl ConnectionStateListener for Witness {
    async fn state_changed(&self, client: &Client, change: StateChange) {
        let is_lost = at_once(self.session.lost()).is_some();
        let is_current = client.session().is_some_and(|one| one.id() == self.session.id());
        let seen = (change.current.to_string(), self.session.is_valid() || !is_lost, is_current);
        self.seen.lock().unwrap().push(seen);
    }
}

/// Ends the first session of the client; the listener must find it over when it is told.
async fn assert_over_when_told(client: Client, end: impl AsyncFnOnce(&Client)) -> LostReason {
    let (session, seen) = (client.session().unwrap(), Arc::new(Mutex::default()));
    let lost = session.lost();
    client.add_listener(Witness { session, seen: Arc::clone(&seen) }).unwrap();
    end(&client).await;
    until("three changes are told", || seen.lock().unwrap().len() == 3).await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen[0].0, "Suspended(1)");
    assert_eq!(seen[1], ("Lost(1)".to_owned(), false, false));
    assert_eq!(seen[2], ("Connected(2)".to_owned(), false, false));
    soon("the loss is told", lost).await
}

#[tokio::test]
async fn a_session_is_over_by_the_clock_before_anybody_hears_of_it() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let lose = async |client: &Client| drop(next_session(&proxy, client).await);
    assert_eq!(assert_over_when_told(client, lose).await, LostReason::Unconfirmed);
}

/// A server that does not know the session ends it while it would be valid for long.
#[tokio::test]
async fn a_session_is_over_by_the_servers_word_before_anybody_hears_of_it() {
    let (proxy, other) = (proxy(), ZooKeeperServer::start().unwrap());
    let client = connect(&proxy.connect_string()).await;
    let lose = async |_: &Client| {
        proxy.retarget(other.address());
        proxy.cut();
    };
    assert_eq!(assert_over_when_told(client, lose).await, LostReason::Expired);
}

/// Nothing that was sent later than this moment can have been answered, so nothing proves the
/// session longer than from this moment on.
#[tokio::test]
async fn a_session_in_a_black_hole_is_valid_for_its_timeout_at_most() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let session = client.session().unwrap();
    let lost = tokio::spawn(session.lost());
    proxy.stall(Direction::Both);
    let stalled = Instant::now();
    std::thread::sleep(session.timeout());
    assert!(!session.is_valid());
    assert!(at_once(session.lost()).is_some());
    assert_eq!(soon("the loss is told", lost).await.unwrap(), LostReason::Unconfirmed);
    assert!(stalled.elapsed() >= session.timeout());
}

/// When the server takes the session's nodes away, its client has known for some time.
#[tokio::test]
async fn no_node_goes_while_its_session_is_valid() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = short_lived(&proxy).await;
    let (session, path) = (client.session().unwrap(), unique("valid"));
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    let (_, watch) = observer.watch_exists(&path).await.unwrap();
    proxy.stall(Direction::Both);
    // No runtime between the event and the look at the session.
    let fired = soon("the server expires the session", watch.fired()).await;
    assert!(!session.is_valid());
    assert_eq!(fired.unwrap(), WatchEvent::Deleted);
}

/// When the network is mended.
#[derive(Clone, Copy, PartialEq)]
enum Mended {
    AtTheLoss,
    Never,
}

/// Waits for the end of a pause between two signs of life: what proves the session is then oldest,
/// while the server has just been heard.
async fn becomes_idle(proxy: &Proxy) {
    for (operation, count) in [(Operation::Sync, 2), (Operation::Ping, 2)] {
        let before = proxy.counts().replies(operation);
        until("it is idle", || proxy.counts().replies(operation) >= before + count).await;
    }
}

/// Whoever holds what belongs to a lost session does not keep the session alive.
async fn assert_given_up(stall: Direction, mended: Mended) {
    let (proxy, observer) = (proxy(), observer().await);
    let client = short_lived(&proxy).await;
    let (session, path) = (client.session().unwrap(), unique("given-up"));
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    let (_, watch) = session.watch_exists(&unique("never")).await.unwrap();
    let held = (session.sync("/"), session.get_data("/"), session.lost(), session.clone());

    becomes_idle(&proxy).await;
    proxy.stall(stall);
    until("the session is lost", || client.state().to_string() == "Lost(1)").await;
    let given_up = Instant::now();
    if mended == Mended::AtTheLoss {
        proxy.resume();
    }
    eventually("the node is gone", async || observer.exists(&path).await.unwrap().is_none()).await;
    let outlived = given_up.elapsed();
    assert!(outlived <= SHORT_SESSION + 2 * TICK + OBSERVATION, "by {outlived:?}");
    drop(held);
    assert_eq!(watch.fired().await.unwrap_err().kind(), ErrorKind::SessionLost);
}

#[tokio::test]
async fn a_session_given_up_in_a_black_hole_does_not_come_back() {
    assert_given_up(Direction::Both, Mended::AtTheLoss).await;
}

/// The server hears all along from a client that it cannot answer.
#[tokio::test]
async fn a_session_whose_answers_came_too_late_does_not_come_back() {
    assert_given_up(Direction::Down, Mended::AtTheLoss).await;
}

#[tokio::test]
async fn a_session_whose_answers_never_arrive_is_left_to_expire() {
    assert_given_up(Direction::Down, Mended::Never).await;
}
