//! The operations of a client on a real server: what they do, and what becomes of them where
//! requests, replies and connections are lost.

mod auth;
mod chroot;
mod create;
mod delete;
mod operations;
mod protection;
mod retry;
mod transaction;
mod watch;

use integration_tests::{LONG_SESSION, PATIENCE, SHORT_SESSION, end_session, server};
use zookeeper_framework::{Client, NoRetry, Session};
use zookeeper_testing::Proxy;

/// A client that is connected to the shared server without a proxy.
async fn observer() -> Client {
    integration_tests::connect(&server().connect_string()).await
}

/// A client that makes one attempt a call.
async fn impatient(proxy: &Proxy) -> Client {
    Client::builder(proxy.connect_string())
        .session_timeout(LONG_SESSION)
        .retry_policy(NoRetry)
        .connect()
        .await
        .expect("the server is up")
}

/// A client that makes one attempt a call and whose session is soon lost without a connection.
async fn short_lived(proxy: &Proxy) -> Client {
    Client::builder(proxy.connect_string())
        .session_timeout(SHORT_SESSION)
        .retry_policy(NoRetry)
        .connect()
        .await
        .expect("the server is up")
}

/// Ends the client's session and gives its next one.
async fn next_session(proxy: &Proxy, client: &Client) -> Session {
    let ending = client.session().expect("the client has a session");
    end_session(proxy, &ending).await;
    let next = client.wait_connected(PATIENCE).await.expect("the server is up");
    assert_eq!(next.epoch().get(), ending.epoch().get() + 1);
    next
}

/// How often children of a node were created or deleted.
async fn changes_below(observer: &Client, path: &str) -> i32 {
    let stat = observer.exists(path).await.expect("the server is up");
    stat.expect("the node exists").cversion
}
