//! The connection of a client to a real server: its states, what listeners hear of them, how it
//! ends, and what it refuses to begin with.

mod close;
mod confirming;
mod listener;
mod lost;
mod paths;
mod recorder;
mod session;
mod settings;
mod sockets;
mod states;

use integration_tests::{LONG_SESSION, PATIENCE, SHORT_SESSION, end_session, server};
use zookeeper_framework::{Client, Session};
use zookeeper_testing::Proxy;

/// A client that is connected to the shared server without a proxy.
async fn observer() -> Client {
    integration_tests::connect(&server().connect_string()).await
}

/// A client whose session ends soon without a connection.
async fn short_lived(proxy: &Proxy) -> Client {
    let builder = Client::builder(proxy.connect_string());
    builder.session_timeout(SHORT_SESSION).connect().await.expect("the server is up")
}

/// A client that was started and cannot connect before the proxy is told to accept.
fn kept_out(proxy: &Proxy) -> Client {
    proxy.refuse();
    let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
    builder.start().expect("the settings are right")
}

/// Ends the client's session and gives its next one.
async fn next_session(proxy: &Proxy, client: &Client) -> Session {
    end_session(proxy, &client.session().expect("the client has a session")).await;
    client.wait_connected(PATIENCE).await.expect("the server is up")
}
