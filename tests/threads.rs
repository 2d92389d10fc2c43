//! The threads of clients and listeners: there as long as they are needed, and no longer.
//!
//! Each test counts the threads of its whole process, so they run one after the other.

use std::fs;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use integration_tests::{connect, proxy, server, until};
use tokio::sync::{Mutex, MutexGuard};
use zookeeper_framework::{Client, ConnectionStateListener, StateChange};
use zookeeper_testing::{Direction, Operation};

async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    let guard = ALONE.lock().await;
    threads(0, 0).await;
    guard
}

/// Linux keeps the first fifteen characters of a name.
fn threads_named(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|found| found.trim_end() == &name[..name.len().min(15)]).count()
}

fn client_threads() -> usize {
    threads_named("zookeeper-client")
}

fn listener_threads() -> usize {
    threads_named("zookeeper-listen")
}

struct Silent;

#[async_trait]
impl ConnectionStateListener for Silent {
    async fn state_changed(&self, _client: &Client, _change: StateChange) {}
}

/// Waits for these numbers of threads: one that begins or ends does so a moment after it was told.
async fn threads(clients: usize, listeners: usize) {
    let what = format!("{clients} threads of clients and {listeners} of listeners");
    until(&what, || (client_threads(), listener_threads()) == (clients, listeners)).await;
}

#[tokio::test]
async fn a_client_has_one_thread_until_it_is_closed() {
    let _alone = alone().await;
    let clients = [
        connect(&server().connect_string()).await,
        connect(&server().connect_string()).await,
        Client::builder(server().connect_string()).start().unwrap(),
    ];
    threads(3, 0).await;
    for (closed, client) in (1..).zip(&clients) {
        client.close().await;
        threads(3 - closed, 0).await;
    }
}

#[tokio::test]
async fn a_clients_thread_ends_after_its_last_handle() {
    let _alone = alone().await;
    let client = connect(&server().connect_string()).await;
    client.add_listener(Silent).unwrap();
    let (clone, session) = (client.clone(), client.session().unwrap());
    let (_, watch) = client.watch_exists("/never").await.unwrap();
    let call = session.sync("/");
    drop(client);
    clone.get_data("/").await.unwrap();
    threads(1, 1).await;
    drop(clone);
    threads(0, 0).await;
    drop((watch, call, session));
}

#[tokio::test]
async fn a_listeners_thread_ends_when_it_is_removed_and_with_the_client() {
    let _alone = alone().await;
    let client = connect(&server().connect_string()).await;
    let first = client.add_listener(Silent).unwrap();
    client.add_listener(Silent).unwrap();
    threads(1, 2).await;
    assert!(client.remove_listener(first));
    threads(1, 1).await;
    client.close().await;
    threads(0, 0).await;
}

#[tokio::test]
async fn a_listener_that_comes_after_the_end_leaves_no_thread() {
    let _alone = alone().await;
    let client = connect(&server().connect_string()).await;
    client.close().await;
    // Whether it is refused or told nothing is not the point here.
    let _ = client.add_listener(Silent);
    drop(client);
    threads(0, 0).await;
}

#[tokio::test]
async fn a_dropped_connect_leaves_no_thread() {
    let _alone = alone().await;
    let proxy = proxy();
    let _hold = proxy.hold_reply(Operation::Connect, 1);
    let mut connecting = Box::pin(Client::builder(proxy.connect_string()).connect());
    poll_fn(|cx| {
        assert!(Pin::new(&mut connecting).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    threads(1, 0).await;
    drop(connecting);
    threads(0, 0).await;
}

#[tokio::test]
async fn a_connect_that_fails_leaves_no_thread() {
    let _alone = alone().await;
    let proxy = proxy();
    proxy.refuse();
    let settings = [
        Client::builder("no port:"),
        Client::builder("127.0.0.1:1").session_timeout(Duration::ZERO),
        Client::builder(proxy.connect_string()).connection_timeout(Duration::from_millis(200)),
        Client::builder("nosuchhost.invalid").connection_timeout(Duration::from_millis(200)),
        Client::builder(server().connect_string()).auth("nosuchscheme", "x"),
    ];
    for builder in settings {
        builder.clone().connect().await.expect_err("it cannot work");
        threads(0, 0).await;
    }
}

#[tokio::test]
async fn a_thread_ends_though_the_server_is_silent() {
    let _alone = alone().await;
    let proxy = proxy();
    let builder = || {
        let timeout = Duration::from_millis(300);
        Client::builder(proxy.connect_string()).connection_timeout(timeout)
    };
    let (closed, dropped) =
        (builder().connect().await.unwrap(), builder().connect().await.unwrap());
    proxy.stall(Direction::Both);
    threads(2, 0).await;
    closed.close().await;
    threads(1, 0).await;
    drop(dropped);
    threads(0, 0).await;
}

/// A runtime that ends takes nothing of the client with it.
#[test]
fn a_client_outlives_the_runtime_it_was_made_in() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (alone, client) = first.block_on(async {
        let alone = alone().await;
        (alone, connect(&server().connect_string()).await)
    });
    drop(first);
    runtime().block_on(async {
        client.get_data("/").await.unwrap();
        assert_eq!(client.session().unwrap().epoch().get(), 1);
        threads(1, 0).await;
        drop(client);
        threads(0, 0).await;
    });
    drop(alone);
}
