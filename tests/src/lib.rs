//! Support shared by the integration tests.
//!
//! The code in the README files is compiled as documentation tests of this package.

#![cfg_attr(doctest, doc = include_str!("../../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../../docs/framework.md"))]
#![cfg_attr(doctest, doc = include_str!("../../recipes/README.md"))]

mod directory;
pub mod history;
pub mod line;
pub mod worker;

use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use zookeeper_framework::{Client, ErrorKind, Session};
use zookeeper_testing::{Operation, Proxy, ZooKeeperServer};

pub use self::directory::{Directory, number};

/// How long a test waits for a state that must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The session timeout of tests in which sessions are not to end.
pub const LONG_SESSION: Duration = Duration::from_secs(30);

/// The session timeout of tests that end a session.
pub const SHORT_SESSION: Duration = Duration::from_secs(2);

/// The server that the tests of one binary share. It ends with the process.
pub fn server() -> &'static ZooKeeperServer {
    static SERVER: OnceLock<ZooKeeperServer> = OnceLock::new();
    SERVER.get_or_init(|| match ZooKeeperServer::start() {
        Ok(server) => server,
        Err(error) => panic!("{error}\nrun scripts/test, which installs what is missing"),
    })
}

/// A proxy in front of the shared server.
pub fn proxy() -> Proxy {
    Proxy::start(server().address()).expect("a loopback port is free")
}

/// A path that no other test uses.
pub fn unique(name: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("/{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A connected client with a session that outlives the test.
pub async fn connect(connect_string: &str) -> Client {
    Client::builder(connect_string)
        .session_timeout(LONG_SESSION)
        .connect()
        .await
        .expect("the server is up")
}

/// Waits until `condition` holds; panics with `what` if it does not within [`PATIENCE`].
pub async fn eventually<F, Fut>(what: &str, mut condition: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// As [`eventually`], for a condition that is read without awaiting anything.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    eventually(what, || std::future::ready(condition())).await;
}

/// Awaits a future that must end; panics with `what` if it does not within [`PATIENCE`].
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// Polls a future once and gives its output, if it needed to wait for nothing.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    // The runtime lets a task poll only so often in one turn, and answers Pending beyond.
    let future = pin!(tokio::task::unconstrained(future));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// The names of a node's children; none where the node does not exist, as a container that has
/// become empty does not for long.
pub async fn children(client: &Client, path: &str) -> Vec<String> {
    match client.get_children(path).await {
        Ok((names, _)) => names,
        Err(error) if error.kind() == ErrorKind::NoNode => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// Waits until a node has this many children.
pub async fn child_count(client: &Client, path: &str, count: usize) {
    let what = format!("{path} has {count} children");
    eventually(&what, async || children(client, path).await.len() == count).await;
}

/// How many nodes are watched on the shared server, `path` itself and those below it.
pub fn watched(path: &str) -> usize {
    let watches = server().four_letter_word("wchp").expect("the server is up");
    let nodes = watches.lines().filter_map(|line| line.strip_prefix(path));
    nodes.filter(|rest| rest.is_empty() || rest.starts_with('/')).count()
}

/// Runs `work` and counts what `client` sends through `proxy` meanwhile, apart from what keeps its
/// session alive.
pub async fn requests<T>(
    proxy: &Proxy,
    client: &Client,
    work: impl Future<Output = T>,
) -> (u64, T) {
    // Requests keep their order: once this one is answered, all before it have been counted.
    let settle = async || client.exists("/").await.expect("the server is up");
    settle().await;
    let before = proxy.counts();
    let output = work.await;
    settle().await;
    let sent = proxy.counts() - before;
    (sent.total_requests_except(&[Operation::Sync]) - 1, output)
}

/// Cuts a session off, waits until it is over for its client, and lets the client connect again.
pub async fn end_session(proxy: &Proxy, session: &Session) {
    proxy.refuse();
    proxy.cut();
    soon("a session that was cut off ends", session.lost()).await;
    proxy.accept();
}
