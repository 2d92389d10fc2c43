//! Releases that are dropped, lost or in doubt: the lock is given up in any case.
//!
//! A contender of another client waits behind each of them, and must be granted.
//!
//! Serves C4, Q3, Q5, Q6, Q10.

use integration_tests::{
    Directory, LONG_SESSION, SHORT_SESSION, at_once, connect, proxy, server, soon, until,
};
use std::time::Duration;

use tokio::task::JoinHandle;
use zookeeper_framework::{NoRetry, Outcome, RetryForever};
use zookeeper_recipes::{
    Client, ClientBuilder, Error, InterProcessMutex, MutexGuard, Owner, Result,
};
use zookeeper_testing::{Direction, Operation, Proxy};

/// A lock that we hold through the proxy, while another client waits for it.
struct Scene {
    proxy: Proxy,
    client: Client,
    directory: Directory,
    guard: MutexGuard,
    behind: JoinHandle<Result<MutexGuard>>,
}

impl Scene {
    async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    async fn with(settings: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let proxy = proxy();
        let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
        let client = settings(builder).connect().await.expect("the server is up");
        let observer = connect(&server().connect_string()).await;
        let directory = Directory::lasting(&observer, "release").await;
        let mutex = |client| InterProcessMutex::new(client, directory.path()).unwrap();
        let (ours, theirs) = (mutex(&client), mutex(&observer));
        let guard = soon("we acquire", ours.acquire(&Owner::new())).await.unwrap();
        let behind = tokio::spawn(async move { theirs.acquire(&Owner::new()).await });
        directory.eventually_has(2).await;
        directory.assert_held_by(&guard).await;
        assert!(!behind.is_finished(), "granted while we held the lock");
        Self { proxy, client, directory, guard, behind }
    }

    async fn disconnect(&self) {
        self.proxy.refuse();
        self.proxy.cut();
        until("we are cut off", || !self.client.state().is_connected()).await;
    }
}

async fn assert_passed_on(directory: &Directory, behind: JoinHandle<Result<MutexGuard>>) {
    let next = soon("the one behind is granted", behind).await.unwrap().unwrap();
    directory.eventually_holds(&[&next]).await;
    next.release().await.unwrap();
    directory.eventually_holds(&[]).await;
}

/// What is dropped to give a lock up without awaiting the end of it.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    Guard,
    ReleaseUnpolled,
    ReleasePolled,
}

impl Dropped {
    const ALL: [Self; 3] = [Self::Guard, Self::ReleaseUnpolled, Self::ReleasePolled];

    fn drop(self, guard: MutexGuard) {
        match self {
            Self::Guard => drop(guard),
            Self::ReleaseUnpolled => drop(guard.release()),
            Self::ReleasePolled => {
                let released = at_once(guard.release());
                assert!(released.is_none(), "{released:?} without an answer");
            }
        }
    }
}

#[tokio::test]
async fn a_guard_or_release_that_is_dropped_gives_the_lock_up() {
    for dropped in Dropped::ALL {
        println!("{dropped:?}");
        let Scene { proxy, directory, guard, behind, .. } = Scene::new().await;
        dropped.drop(guard);
        assert_passed_on(&directory, behind).await;
        assert_eq!(proxy.counts().requests(Operation::Delete), 1, "{dropped:?}");
    }
}

#[tokio::test]
async fn a_guard_or_release_that_is_dropped_while_cut_off_gives_the_lock_up() {
    for dropped in Dropped::ALL {
        println!("{dropped:?}");
        let scene = Scene::new().await;
        scene.disconnect().await;
        let Scene { proxy, directory, guard, behind, .. } = scene;
        let node = guard.node().to_owned();
        dropped.drop(guard);
        assert_eq!(directory.nodes().await.first(), Some(&node), "{dropped:?}");
        proxy.accept();
        assert_passed_on(&directory, behind).await;
    }
}

#[tokio::test]
async fn a_release_while_cut_off_is_confirmed_after_the_reconnect() {
    let scene = Scene::new().await;
    scene.disconnect().await;
    let Scene { proxy, directory, guard, behind, .. } = scene;
    let release = tokio::spawn(guard.release());
    tokio::task::yield_now().await;
    assert!(!release.is_finished(), "confirmed without a connection");
    proxy.accept();
    soon("it is confirmed", release).await.unwrap().unwrap();
    assert_passed_on(&directory, behind).await;
}

#[tokio::test]
async fn without_retries_a_release_in_doubt_says_so_and_goes_on() {
    let faults = [Proxy::lose_request, Proxy::lose_reply, Proxy::reset_after]
        .map(|arm| move |proxy: &Proxy| arm(proxy, Operation::Delete, 1));
    for arm in faults {
        let scene = Scene::with(|builder| builder.retry_policy(NoRetry)).await;
        let Scene { proxy, directory, guard, behind, .. } = scene;
        let fault = arm(&proxy);
        let error = soon("the release ends", guard.release()).await.unwrap_err();
        assert!(fault.happened(), "{error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        assert_passed_on(&directory, behind).await;
    }
}

#[tokio::test]
async fn a_release_that_outlives_its_session_ends_with_it() {
    let short = |builder: ClientBuilder| builder.session_timeout(SHORT_SESSION);
    let Scene { proxy, client, directory, guard, behind } = Scene::with(short).await;
    let session = client.session().unwrap();
    proxy.stall(Direction::Both);
    let error = soon("the release ends", guard.release()).await.unwrap_err();
    assert!(!session.is_valid(), "{error} while the session lives");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert_passed_on(&directory, behind).await;
    proxy.resume();
}

#[tokio::test]
async fn a_guard_dropped_while_its_session_expires_gives_the_lock_up() {
    let short = |builder: ClientBuilder| builder.session_timeout(SHORT_SESSION);
    for dropped in Dropped::ALL {
        println!("{dropped:?}");
        let Scene { proxy, client, directory, guard, behind } = Scene::with(short).await;
        let session = client.session().unwrap();
        proxy.stall(Direction::Both);
        dropped.drop(guard);
        soon("the session expires", session.lost()).await;
        proxy.resume();
        assert_passed_on(&directory, behind).await;
    }
}

#[tokio::test]
async fn a_release_waits_for_a_reply_that_is_late() {
    let Scene { proxy, directory, guard, behind, .. } = Scene::new().await;
    let hold = proxy.hold_reply(Operation::Delete, 1);
    let release = tokio::spawn(guard.release());
    assert_passed_on(&directory, behind).await;
    until("the reply is held", || hold.happened()).await;
    assert!(!release.is_finished(), "confirmed without a reply");
    hold.release();
    soon("it is confirmed", release).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_release_between_two_attempts_ends_when_the_client_is_closed() {
    let patient =
        |builder: ClientBuilder| builder.retry_policy(RetryForever::new(Duration::from_secs(3600)));
    let Scene { proxy, client, guard, .. } = Scene::with(patient).await;
    let fault = proxy.lose_reply(Operation::Delete, 1);
    let release = tokio::spawn(guard.release());
    until("its reply is lost", || fault.happened()).await;
    until("the link is up again", || client.state().is_connected()).await;
    assert!(!release.is_finished());
    soon("the client is closed", client.close()).await;
    let error = soon("the release ends", release).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error}");
}
