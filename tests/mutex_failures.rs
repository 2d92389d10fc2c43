//! Acquisitions that fail, or are close to it: nothing is left of them.
//!
//! Serves C4, C5, Q5, Q10, Q11.

use integration_tests::{Directory, LONG_SESSION, connect, eventually, proxy, server, soon, until};
use zookeeper_framework::{Acl, ErrorKind, NoRetry, Permissions};
use zookeeper_recipes::{Client, Error, InterProcessMutex, MutexGuard, Owner, Result};
use zookeeper_testing::{Fault, Operation, Proxy};

/// A client that never tries again.
async fn connect_without_retries(connect_string: &str) -> Client {
    let builder = Client::builder(connect_string).session_timeout(LONG_SESSION);
    builder.retry_policy(NoRetry).connect().await.expect("the server is up")
}

async fn acquire(mutex: &InterProcessMutex) -> Result<MutexGuard> {
    soon("the acquisition ends", mutex.acquire(&Owner::new())).await
}

fn kind(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Framework(error) => Some(error.kind()),
        _ => None,
    }
}

/// What may become of an acquisition that is not tried again.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Granted,
    Failed,
}

type Case = (&'static str, Expected, fn(&Proxy) -> Vec<Fault>);

const CASES: [Case; 8] = [
    ("the create is lost", Expected::Failed, |proxy| {
        vec![proxy.lose_request(Operation::Create, 1)]
    }),
    ("the reply to the create is lost", Expected::Granted, |proxy| {
        vec![proxy.lose_reply(Operation::Create, 1)]
    }),
    ("a reset follows the create", Expected::Granted, |proxy| {
        vec![proxy.reset_after(Operation::Create, 1)]
    }),
    ("the flight is torn", Expected::Granted, |proxy| {
        vec![proxy.cut_between(Operation::Create, Operation::GetChildren)]
    }),
    ("the list is lost", Expected::Granted, |proxy| {
        vec![proxy.lose_request(Operation::GetChildren, 1)]
    }),
    ("the reply to the list is lost", Expected::Granted, |proxy| {
        vec![proxy.lose_reply(Operation::GetChildren, 1)]
    }),
    ("the search for the node fails too", Expected::Failed, |proxy| {
        let search = proxy.lose_reply(Operation::GetChildren, 1);
        vec![proxy.lose_reply(Operation::Create, 1), search]
    }),
    ("the node is found and not seen", Expected::Failed, |proxy| {
        let search = proxy.lose_reply(Operation::Exists, 1);
        vec![proxy.lose_reply(Operation::Create, 1), search]
    }),
];

#[tokio::test]
async fn without_retries_an_acquisition_succeeds_or_leaves_nothing() {
    let proxy = proxy();
    let client = connect_without_retries(&proxy.connect_string()).await;
    let observer = connect(&server().connect_string()).await;
    for (name, expected, arm) in CASES {
        let directory = Directory::lasting(&observer, "no-retry").await;
        let mutex = InterProcessMutex::new(&client, directory.path()).unwrap();
        acquire(&mutex).await.unwrap().release().await.unwrap();

        let faults = arm(&proxy);
        match (acquire(&mutex).await, expected) {
            (Ok(guard), Expected::Granted) => {
                directory.assert_held_by(&guard).await;
                guard.release().await.unwrap();
            }
            (Err(error), Expected::Failed) => {
                assert_eq!(kind(&error), Some(ErrorKind::ConnectionLost), "{name}: {error}");
            }
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
        assert!(faults.iter().all(Fault::happened), "{name}");

        directory.eventually_holds(&[]).await;
        let guard = acquire(&mutex).await.unwrap();
        directory.eventually_holds(&[&guard]).await;
        let others = directory.created().await - 1;
        assert!((1..=2).contains(&others), "{name}: {others} nodes for two acquisitions");
        guard.release().await.unwrap();
    }
}

/// A directory in which everybody may do this, and its maker everything.
async fn restricted(admin: &Client, everybody: Permissions) -> Directory {
    let directory = Directory::missing(admin, "refused");
    let acl = [Acl::creator_all(), vec![Acl::new(everybody, "world", "anyone")]].concat();
    admin.create(directory.path()).acl(acl).with_parents().await.unwrap();
    directory
}

async fn connect_as_admin() -> Client {
    let builder = Client::builder(server().connect_string()).auth_digest("admin", "secret");
    builder.session_timeout(LONG_SESSION).connect().await.expect("the server is up")
}

async fn assert_refused(mutex: &InterProcessMutex) {
    let error = acquire(mutex).await.unwrap_err();
    assert_eq!(kind(&error), Some(ErrorKind::NoAuth), "{error}");
    assert!(error.path().is_some_and(|path| path.starts_with(mutex.path())), "{error}");
}

#[tokio::test]
async fn an_acquisition_whose_create_is_refused_fails() {
    let admin = connect_as_admin().await;
    let directory = restricted(&admin, Permissions::READ).await;
    let client = connect(&server().connect_string()).await;
    assert_refused(&InterProcessMutex::new(&client, directory.path()).unwrap()).await;
    assert_eq!(directory.created().await, 0, "nodes");
}

#[tokio::test]
async fn an_acquisition_whose_list_is_refused_leaves_no_node() {
    let admin = connect_as_admin().await;
    let directory = restricted(&admin, Permissions::CREATE | Permissions::DELETE).await;
    let client = connect(&server().connect_string()).await;
    assert_refused(&InterProcessMutex::new(&client, directory.path()).unwrap()).await;
    assert_eq!(directory.created().await, 1, "nodes");
    directory.eventually_holds(&[]).await;
}

#[tokio::test]
async fn a_waiter_that_may_not_read_its_predecessor_fails_and_disturbs_nobody() {
    let admin = connect_as_admin().await;
    let builder = Client::builder(server().connect_string()).auth_digest("admin", "secret");
    let secretive = builder.default_acl(Acl::creator_all()).connect().await.unwrap();
    let directory = restricted(&admin, Permissions::ALL).await;
    let theirs = InterProcessMutex::new(&secretive, directory.path()).unwrap();
    let holder = acquire(&theirs).await.unwrap();

    let client = connect(&server().connect_string()).await;
    let ours = InterProcessMutex::new(&client, directory.path()).unwrap();
    assert_refused(&ours).await;
    directory.eventually_holds(&[&holder]).await;
    directory.assert_held_by(&holder).await;

    holder.release().await.unwrap();
    let guard = acquire(&ours).await.unwrap();
    directory.eventually_holds(&[&guard]).await;
    guard.release().await.unwrap();
}

/// Acquires while the directory is deleted `times` times between its creation and that of the node.
async fn acquire_while_reaped(directory: &Directory, admin: &Client, times: usize) -> Result<()> {
    let proxy = proxy();
    let client = connect_without_retries(&proxy.connect_string()).await;
    let mutex = InterProcessMutex::new(&client, directory.path()).unwrap();
    let mut hold = proxy.hold_request(Operation::Create, 1);
    let acquisition = tokio::spawn(async move { mutex.acquire(&Owner::new()).await });
    for _ in 0..times {
        until("the create is held", || hold.happened()).await;
        // What went before the create is on its way, and may be slower than a request of ours.
        let is_made = async || admin.exists(directory.path()).await.unwrap().is_some();
        eventually("the directory is made", is_made).await;
        admin.delete(directory.path()).await.unwrap();
        let next = proxy.hold_request(Operation::Create, 1);
        std::mem::replace(&mut hold, next).release();
    }
    hold.release();
    let guard = soon("the acquisition ends", acquisition).await.unwrap()?;
    directory.eventually_holds(&[&guard]).await;
    guard.release().await
}

#[tokio::test]
async fn a_directory_that_is_reaped_is_made_again_three_times_whatever_the_policy() {
    let admin = connect(&server().connect_string()).await;
    for times in 1..=3 {
        let directory = Directory::missing(&admin, "reaped");
        acquire_while_reaped(&directory, &admin, times).await.unwrap();
        directory.eventually_holds(&[]).await;
    }
}

#[tokio::test]
async fn a_directory_that_is_reaped_for_ever_fails_the_acquisition() {
    let admin = connect(&server().connect_string()).await;
    let directory = Directory::missing(&admin, "reaped");
    let error = acquire_while_reaped(&directory, &admin, 4).await.unwrap_err();
    assert_eq!(kind(&error), Some(ErrorKind::NoNode), "{error}");
    directory.eventually_holds(&[]).await;
}
