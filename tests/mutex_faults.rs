//! A mutex whose requests and replies are lost, one by one.
//!
//! Every case names a situation and the faults in it. Our acquisition and release succeed; each
//! contender has had one node in all, which the directory's counter of creations proves; whoever
//! stands behind us is granted in order; nothing is left. A case fails where its fault did not
//! happen.
//!
//! Serves C4, C5, Q1, Q2, Q3, Q5, Q11.

use std::time::Duration;

use integration_tests::{Directory, LONG_SESSION, connect, proxy, server, soon, until};
use tokio::task::JoinHandle;
use zookeeper_framework::RetryNTimes;
use zookeeper_recipes::{Client, InterProcessMutex, MutexGuard, Owner, Result};
use zookeeper_testing::{Fault, Operation, Proxy};

/// Where our acquisition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Situation {
    /// Nobody else is there, and the directory is.
    Free,
    /// Nobody else is there, nor is the directory or the one above it.
    FirstUse,
    /// Another client, as another process would be, holds the lock.
    BehindAnotherClient,
    /// Another owner of the same client holds the lock.
    BehindAnotherOwner,
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    LoseRequest(Operation, u32),
    LoseReply(Operation, u32),
    ResetAfter(Operation, u32),
    CutBetween(Operation, Operation),
}

impl Harm {
    fn arm(self, proxy: &Proxy) -> Fault {
        match self {
            Self::LoseRequest(operation, nth) => proxy.lose_request(operation, nth),
            Self::LoseReply(operation, nth) => proxy.lose_reply(operation, nth),
            Self::ResetAfter(operation, nth) => proxy.reset_after(operation, nth),
            Self::CutBetween(first, second) => proxy.cut_between(first, second),
        }
    }

    /// Whether it meets the release and not the acquisition.
    fn meets_release(self) -> bool {
        matches!(
            self,
            Self::LoseRequest(Operation::Delete, _)
                | Self::LoseReply(Operation::Delete, _)
                | Self::ResetAfter(Operation::Delete, _)
        )
    }
}

/// The three faults of the nth request of an operation.
fn each_fault(operation: Operation, nth: u32) -> Vec<Vec<Harm>> {
    vec![
        vec![Harm::LoseRequest(operation, nth)],
        vec![Harm::LoseReply(operation, nth)],
        vec![Harm::ResetAfter(operation, nth)],
    ]
}

/// Runs the cases one after the other and names those that failed.
async fn survive(situation: Situation, cases: impl IntoIterator<Item = Vec<Harm>>) {
    let mut failed = Vec::new();
    for harms in cases {
        let name = format!("{situation:?}: {harms:?}");
        if tokio::spawn(case(situation, harms)).await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test]
async fn a_free_lock_is_acquired_and_released_through_each_fault() {
    let operations = [Operation::Create, Operation::GetChildren, Operation::Delete];
    let cases = operations.into_iter().flat_map(|operation| each_fault(operation, 1));
    survive(Situation::Free, cases).await;
}

#[tokio::test]
async fn a_flight_may_be_torn_between_any_two_of_its_frames() {
    let create_and_list = Harm::CutBetween(Operation::Create, Operation::GetChildren);
    survive(Situation::Free, [vec![create_and_list]]).await;
    let containers = Harm::CutBetween(Operation::CreateContainer, Operation::CreateContainer);
    let create = Harm::CutBetween(Operation::CreateContainer, Operation::Create);
    survive(Situation::FirstUse, [vec![containers], vec![create], vec![create_and_list]]).await;
}

#[tokio::test]
async fn a_lock_is_used_for_the_first_time_through_each_fault() {
    let containers = (1..=2).flat_map(|nth| each_fault(Operation::CreateContainer, nth));
    let cases = containers.chain(each_fault(Operation::Create, 1));
    survive(Situation::FirstUse, cases).await;
}

#[tokio::test]
async fn a_waiter_behind_another_client_survives_each_fault() {
    let operations =
        [Operation::Create, Operation::GetChildren, Operation::GetData, Operation::Delete];
    let cases = operations.into_iter().flat_map(|operation| each_fault(operation, 1));
    let torn = Harm::CutBetween(Operation::Create, Operation::GetChildren);
    survive(Situation::BehindAnotherClient, cases.chain([vec![torn]])).await;
}

#[tokio::test]
async fn a_waiter_behind_another_owner_survives_each_fault() {
    // The first delete is the holder's, the second one ours.
    let faults = [(Operation::Create, 1), (Operation::Delete, 1), (Operation::Delete, 2)];
    let cases = faults.into_iter().flat_map(|(operation, nth)| each_fault(operation, nth));
    survive(Situation::BehindAnotherOwner, cases).await;
}

#[tokio::test]
async fn the_search_for_a_node_in_doubt_survives_each_fault() {
    // A sync of the session's own follows each new connection beside that of the search. The list
    // of the flight is delivered before the reply to its create is lost, and is not answered.
    let faults = [(Operation::Sync, 1), (Operation::Sync, 2), (Operation::Exists, 1)];
    let faults = faults.into_iter().flat_map(|(operation, nth)| each_fault(operation, nth));
    let lists = [
        vec![Harm::LoseRequest(Operation::GetChildren, 2)],
        vec![Harm::LoseReply(Operation::GetChildren, 1)],
        vec![Harm::ResetAfter(Operation::GetChildren, 2)],
    ];
    let cases: Vec<_> = faults
        .chain(lists)
        .map(|second| [vec![Harm::LoseReply(Operation::Create, 1)], second].concat())
        .collect();
    survive(Situation::Free, cases.clone()).await;
    survive(Situation::BehindAnotherClient, cases).await;
}

#[tokio::test]
async fn an_acquisition_survives_two_faults() {
    let lost_create = Harm::LoseRequest(Operation::Create, 1);
    let cases = [
        vec![lost_create, Harm::LoseRequest(Operation::Create, 2)],
        vec![lost_create, Harm::LoseReply(Operation::Create, 1)],
        vec![lost_create, Harm::ResetAfter(Operation::Create, 2)],
        vec![lost_create, Harm::LoseReply(Operation::Sync, 1)],
        vec![lost_create, Harm::LoseReply(Operation::GetChildren, 1)],
        vec![
            Harm::LoseReply(Operation::GetChildren, 1),
            Harm::LoseReply(Operation::GetChildren, 2),
        ],
        vec![Harm::LoseReply(Operation::Create, 1), Harm::LoseReply(Operation::Delete, 1)],
        vec![Harm::LoseRequest(Operation::Delete, 1), Harm::LoseReply(Operation::Delete, 1)],
        vec![Harm::LoseReply(Operation::Delete, 1), Harm::LoseReply(Operation::Delete, 2)],
    ];
    survive(Situation::Free, cases.clone()).await;
    let watched = [
        vec![Harm::LoseReply(Operation::Create, 1), Harm::LoseReply(Operation::GetData, 1)],
        vec![Harm::LoseRequest(Operation::GetData, 1), Harm::LoseReply(Operation::GetData, 1)],
        vec![Harm::LoseReply(Operation::GetData, 1), Harm::ResetAfter(Operation::GetData, 2)],
    ];
    survive(Situation::BehindAnotherClient, cases.into_iter().chain(watched)).await;
}

#[tokio::test]
async fn a_predecessor_that_leaves_while_we_are_cut_off_is_noticed() {
    let scene = Scene::new(Situation::BehindAnotherClient).await;
    let holder = acquire(&scene.theirs).await;
    let ours = start(&scene.ours);
    let watches = || scene.proxy.counts().replies(Operation::GetData);
    until("the holder is watched, and our own node", || watches() == 2).await;

    scene.proxy.refuse();
    scene.proxy.cut();
    holder.release().await.unwrap();
    scene.directory.eventually_has(1).await;
    assert!(!ours.is_finished(), "granted without a connection");
    scene.proxy.accept();

    let guard = granted(ours).await;
    scene.directory.eventually_holds(&[&guard]).await;
    guard.release().await.unwrap();
    scene.directory.eventually_holds(&[]).await;
}

/// The lock of one case: ours through the proxy, theirs from another client.
struct Scene {
    proxy: Proxy,
    directory: Directory,
    ours: InterProcessMutex,
    theirs: InterProcessMutex,
}

impl Scene {
    async fn new(situation: Situation) -> Self {
        let proxy = proxy();
        let ours = Client::builder(proxy.connect_string())
            .session_timeout(LONG_SESSION)
            .retry_policy(RetryNTimes::new(8, Duration::from_millis(20)))
            .connect()
            .await
            .expect("the server is up");
        let theirs = connect(&server().connect_string()).await;
        let directory = match situation {
            Situation::FirstUse => Directory::missing(&theirs, "faults"),
            Situation::Free | Situation::BehindAnotherClient | Situation::BehindAnotherOwner => {
                Directory::lasting(&theirs, "faults").await
            }
        };
        let mutex = |client| InterProcessMutex::new(client, directory.path()).unwrap();
        let (ours, theirs) = (mutex(&ours), mutex(&theirs));
        let scene = Self { proxy, directory, ours, theirs };
        if situation != Situation::FirstUse {
            // The framework looks for the directory once and remembers it.
            acquire(&scene.ours).await.release().await.unwrap();
        }
        scene
    }

    async fn holder(&self, situation: Situation) -> Option<MutexGuard> {
        match situation {
            Situation::Free | Situation::FirstUse => None,
            Situation::BehindAnotherClient => Some(acquire(&self.theirs).await),
            Situation::BehindAnotherOwner => Some(acquire(&self.ours).await),
        }
    }
}

async fn acquire(mutex: &InterProcessMutex) -> MutexGuard {
    soon("the lock is acquired", mutex.acquire(&Owner::new())).await.unwrap()
}

fn start(mutex: &InterProcessMutex) -> JoinHandle<Result<MutexGuard>> {
    let mutex = mutex.clone();
    tokio::spawn(async move { mutex.acquire(&Owner::new()).await })
}

/// Awaits an acquisition that was started.
async fn granted(acquisition: JoinHandle<Result<MutexGuard>>) -> MutexGuard {
    soon("a waiter is granted", acquisition).await.unwrap().unwrap()
}

async fn happened(harms: &[Harm], faults: &[Fault], of: impl Fn(Harm) -> bool) {
    for (harm, fault) in harms.iter().zip(faults).filter(|(harm, _)| of(**harm)) {
        until(&format!("{harm:?}"), || fault.happened()).await;
    }
}

async fn case(situation: Situation, harms: Vec<Harm>) {
    let scene = Scene::new(situation).await;
    let directory = &scene.directory;
    let holder = scene.holder(situation).await;
    let ahead = usize::from(holder.is_some());
    let faults: Vec<_> = harms.iter().map(|harm| harm.arm(&scene.proxy)).collect();

    let ours = start(&scene.ours);
    directory.eventually_has(ahead + 1).await;
    let behind = start(&scene.theirs);
    directory.eventually_has(ahead + 2).await;
    happened(&harms, &faults, |harm| !harm.meets_release()).await;
    if let Some(holder) = holder {
        directory.assert_held_by(&holder).await;
        assert!(!ours.is_finished(), "granted while another held the lock");
        soon("the holder releases", holder.release()).await.unwrap();
    }

    let guard = granted(ours).await;
    directory.assert_held_by(&guard).await;
    assert!(!behind.is_finished(), "granted while we held the lock");
    soon("we release", guard.release()).await.unwrap();
    let next = granted(behind).await;
    directory.eventually_holds(&[&next]).await;
    happened(&harms, &faults, Harm::meets_release).await;

    assert_eq!(directory.created().await, acquisitions(situation), "nodes were made");
    next.release().await.unwrap();
    directory.eventually_holds(&[]).await;
}

/// How many acquisitions a case has in all, the one that warms up included.
fn acquisitions(situation: Situation) -> i32 {
    match situation {
        Situation::FirstUse => 2,
        Situation::Free => 3,
        Situation::BehindAnotherClient | Situation::BehindAnotherOwner => 4,
    }
}
