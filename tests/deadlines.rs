//! Acquisitions whose time is up, or that are dropped, at every stage of their way.
//!
//! A stage is a frame that is held back: the request that has not reached the server, or the reply
//! that has not reached us. The acquisition ends in time though nothing is answered, whoever holds
//! or waits is not disturbed, and once the frame gets through the node is gone.
//!
//! Serves Q2, Q5, Q10, Q11.

use std::time::{Duration, Instant};

use integration_tests::{
    Directory, LONG_SESSION, SHORT_SESSION, connect, proxy, server, soon, unique, until,
};
use tokio::task::JoinHandle;
use zookeeper_recipes::{Client, Error, ErrorKind, InterProcessMutex, MutexGuard, Owner, Result};
use zookeeper_testing::{Direction, Hold, Operation, Proxy};

const TIMEOUT: Duration = Duration::from_millis(50);

/// A call that ends by its deadline and not by the network ends before this, on any machine.
const IN_TIME: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
enum Stage {
    Request(Operation),
    Reply(Operation),
}

impl Stage {
    fn hold(self, proxy: &Proxy) -> Hold {
        match self {
            Self::Request(operation) => proxy.hold_request(operation, 1),
            Self::Reply(operation) => proxy.hold_reply(operation, 1),
        }
    }

    fn node(self) -> Node {
        match self {
            Self::Request(Operation::Create) => Node::IsMissing,
            Self::Request(_) | Self::Reply(_) => Node::Exists,
        }
    }
}

/// Our node when the acquisition has come to a stage.
enum Node {
    IsMissing,
    Exists,
}

const FLIGHT: [Stage; 4] = [
    Stage::Request(Operation::Create),
    Stage::Reply(Operation::Create),
    Stage::Request(Operation::GetChildren),
    Stage::Reply(Operation::GetChildren),
];

const WATCH: [Stage; 2] = [Stage::Request(Operation::GetData), Stage::Reply(Operation::GetData)];

/// Who holds the lock meanwhile.
#[derive(Clone, Copy, Debug)]
enum Holder {
    Nobody,
    AnotherClient,
    AnotherOwner,
}

/// How our acquisition ends.
#[derive(Clone, Copy, Debug)]
enum End {
    TimesOut,
    IsDropped,
}

#[tokio::test]
async fn an_acquisition_of_a_free_lock_ends_at_any_stage() {
    end_at_each(Holder::Nobody, &FLIGHT).await;
}

#[tokio::test]
async fn a_waiter_behind_another_client_ends_at_any_stage() {
    end_at_each(Holder::AnotherClient, &[&FLIGHT[..], &WATCH].concat()).await;
}

#[tokio::test]
async fn a_waiter_behind_another_owner_ends_at_any_stage() {
    // What is known in this process makes the list needless.
    end_at_each(Holder::AnotherOwner, &FLIGHT[..2]).await;
}

/// The lock of one test: ours through the proxy, theirs from another client.
struct Scene {
    proxy: Proxy,
    directory: Directory,
    ours: InterProcessMutex,
    theirs: InterProcessMutex,
}

impl Scene {
    async fn new() -> Self {
        let proxy = proxy();
        let ours = connect(&proxy.connect_string()).await;
        let theirs = connect(&server().connect_string()).await;
        Self::of(proxy, &ours, &theirs).await
    }

    async fn of(proxy: Proxy, ours: &Client, theirs: &Client) -> Self {
        let directory = Directory::lasting(theirs, "deadlines").await;
        let mutex = |client| InterProcessMutex::new(client, directory.path()).unwrap();
        let (ours, theirs) = (mutex(ours), mutex(theirs));
        acquire(&ours).await.release().await.unwrap();
        Self { proxy, directory, ours, theirs }
    }

    async fn holder(&self, holder: Holder) -> Option<MutexGuard> {
        match holder {
            Holder::Nobody => None,
            Holder::AnotherClient => Some(acquire(&self.theirs).await),
            Holder::AnotherOwner => Some(acquire(&self.ours).await),
        }
    }

    /// Puts a contender of another client behind so many nodes.
    async fn put_behind(&self, ahead: usize) -> JoinHandle<Result<MutexGuard>> {
        self.directory.eventually_has(ahead).await;
        let behind = start(&self.theirs);
        self.directory.eventually_has(ahead + 1).await;
        behind
    }
}

async fn acquire(mutex: &InterProcessMutex) -> MutexGuard {
    soon("the lock is acquired", mutex.acquire(&Owner::new())).await.unwrap()
}

fn start(mutex: &InterProcessMutex) -> JoinHandle<Result<MutexGuard>> {
    let mutex = mutex.clone();
    tokio::spawn(async move { mutex.acquire(&Owner::new()).await })
}

async fn assert_times_out(mutex: &InterProcessMutex) {
    let (owner, start) = (Owner::new(), Instant::now());
    let acquired = soon("it times out", mutex.acquire_timeout(&owner, TIMEOUT)).await;
    assert!(matches!(acquired, Err(Error::TimedOut { .. })), "{acquired:?}");
    assert!(start.elapsed() < IN_TIME, "it took {:?}", start.elapsed());
}

/// Runs the stages one after the other and names those that failed.
async fn end_at_each(holder: Holder, stages: &[Stage]) {
    let mut failed = Vec::new();
    for stage in stages.iter().copied() {
        for end in [End::TimesOut, End::IsDropped] {
            if tokio::spawn(end_at(holder, stage, end)).await.is_err() {
                failed.push(format!("{holder:?}, {stage:?}, {end:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn end_at(holder: Holder, stage: Stage, end: End) {
    let scene = Scene::new().await;
    let holder = scene.holder(holder).await;
    let ahead = usize::from(holder.is_some());
    let hold = stage.hold(&scene.proxy);

    let behind = match end {
        End::TimesOut => {
            assert_times_out(&scene.ours).await;
            until("the frame is held", || hold.happened()).await;
            None
        }
        End::IsDropped => {
            let ours = start(&scene.ours);
            until("the frame is held", || hold.happened()).await;
            let behind = match stage.node() {
                Node::Exists => Some(scene.put_behind(ahead + 1).await),
                Node::IsMissing => None,
            };
            ours.abort();
            assert!(ours.await.unwrap_err().is_cancelled(), "it ended though the frame was held");
            behind
        }
    };
    hold.release();
    leave_in_order(&scene, holder, behind).await;
}

/// Our node goes; then the holder releases, the one behind is granted, and the next one to come.
async fn leave_in_order(
    scene: &Scene,
    holder: Option<MutexGuard>,
    behind: Option<JoinHandle<Result<MutexGuard>>>,
) {
    let directory = &scene.directory;
    if let Some(holder) = holder {
        let left = 1 + usize::from(behind.is_some());
        directory.eventually_shrinks_to(left).await;
        directory.assert_held_by(&holder).await;
        soon("the holder releases", holder.release()).await.unwrap();
    }
    if let Some(behind) = behind {
        let guard = soon("the one behind is granted", behind).await.unwrap().unwrap();
        directory.eventually_holds(&[&guard]).await;
        guard.release().await.unwrap();
    }
    directory.eventually_holds(&[]).await;
    let guard = acquire(&scene.ours).await;
    directory.eventually_holds(&[&guard]).await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_acquisition_times_out_in_time_without_a_connection() {
    let scene = Scene::new().await;
    scene.proxy.refuse();
    scene.proxy.cut();
    assert_times_out(&scene.ours).await;
    scene.proxy.accept();
    leave_in_order(&scene, None, None).await;
}

#[tokio::test]
async fn a_try_that_is_not_answered_ends_with_the_connection_timeout() {
    let proxy = proxy();
    let ours = Client::builder(proxy.connect_string())
        .session_timeout(LONG_SESSION)
        .connection_timeout(Duration::from_millis(500))
        .connect()
        .await
        .unwrap();
    let theirs = connect(&server().connect_string()).await;
    let scene = Scene::of(proxy, &ours, &theirs).await;
    for stage in FLIGHT {
        let hold = stage.hold(&scene.proxy);
        let start = Instant::now();
        let tried = soon("it times out", scene.ours.try_acquire(&Owner::new())).await;
        assert!(matches!(tried, Err(Error::TimedOut { .. })), "{stage:?}: {tried:?}");
        assert!(start.elapsed() < IN_TIME, "{stage:?}: it took {:?}", start.elapsed());
        assert!(hold.happened(), "{stage:?}");
        hold.release();
        scene.directory.eventually_holds(&[]).await;
    }
    leave_in_order(&scene, None, None).await;
}

#[tokio::test]
async fn a_try_whose_session_is_lost_meanwhile_ends_with_the_same_connection_timeout() {
    let (proxy, patience) = (proxy(), SHORT_SESSION * 2);
    let client = Client::builder(proxy.connect_string())
        .session_timeout(SHORT_SESSION)
        .connection_timeout(patience)
        .connect()
        .await
        .unwrap();
    let mutex = InterProcessMutex::new(&client, &unique("silent")).unwrap();
    let session = client.session().unwrap();
    proxy.stall(Direction::Both);
    let start = Instant::now();
    let tried = soon("it times out", mutex.try_acquire(&Owner::new())).await;
    let Err(Error::TimedOut { cause: Some(cause), .. }) = &tried else { panic!("{tried:?}") };
    assert_eq!(cause.kind(), ErrorKind::NotConnected, "{cause}");
    assert!(!session.is_valid(), "the session outlived the try");
    // A second wait for a connection would have begun when the session was lost.
    assert!(start.elapsed() < patience + SHORT_SESSION / 4, "it took {:?}", start.elapsed());
}

/// How often each of the two ends of an acquisition came.
#[derive(Debug, Default)]
struct Ends {
    granted: usize,
    timed_out: usize,
}

/// Acquires with deadlines from nothing to far more than an acquisition takes.
async fn sweep(scene: &Scene) -> Ends {
    let mut ends = Ends::default();
    for tenths in 0..=150 {
        let timeout = Duration::from_micros(100 * tenths);
        match scene.ours.acquire_timeout(&Owner::new(), timeout).await {
            Ok(guard) => {
                assert!(guard.is_held(), "{timeout:?}: {guard:?}");
                guard.release().await.unwrap();
                ends.granted += 1;
            }
            Err(Error::TimedOut { .. }) => ends.timed_out += 1,
            Err(error) => panic!("{timeout:?}: {error}"),
        }
    }
    ends
}

#[tokio::test]
async fn a_deadline_may_fall_at_any_moment_of_an_acquisition() {
    let scene = Scene::new().await;
    scene.proxy.delay(Duration::from_millis(2));
    let ends = sweep(&scene).await;
    assert!(ends.granted > 0 && ends.timed_out > 0, "{ends:?}");
    leave_in_order(&scene, None, None).await;
}

#[tokio::test]
async fn a_deadline_may_fall_at_any_moment_of_waiting() {
    let scene = Scene::new().await;
    let holder = acquire(&scene.theirs).await;
    scene.proxy.delay(Duration::from_millis(2));
    let ends = sweep(&scene).await;
    assert_eq!(ends.granted, 0, "{ends:?}");
    leave_in_order(&scene, Some(holder), None).await;
}
