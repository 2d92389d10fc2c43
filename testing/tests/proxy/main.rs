//! The proxy, between raw clients and one real server for all tests.
#![allow(clippy::unwrap_used, reason = "what fails here fails its test")]

mod faults;
mod network;
#[path = "../raw/mod.rs"]
mod raw;

use std::sync::OnceLock;

use zookeeper_testing::{Proxy, ZooKeeperServer};

fn server() -> &'static ZooKeeperServer {
    static SERVER: OnceLock<ZooKeeperServer> = OnceLock::new();
    SERVER.get_or_init(|| ZooKeeperServer::start().unwrap())
}

fn proxy() -> Proxy {
    Proxy::start(server().address()).unwrap()
}
