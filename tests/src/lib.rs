//! Support shared by the integration tests.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zookeeper_framework::Client;
use zookeeper_testing::{Proxy, ZooKeeperServer};

/// How long a test waits for a state that must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The session timeout of tests in which sessions are not to end.
pub const LONG_SESSION: Duration = Duration::from_secs(30);

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

/// Awaits a future that must end; panics with `what` if it does not within [`PATIENCE`].
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}
