//! Real ZooKeeper servers for tests, and a proxy that breaks the network on purpose.
//!
//! * [`ZooKeeperServer`]: one server in a Java process of its own, ready in about a third of a
//!   second; it can be stopped, killed, paused and started again with its data.
//! * [`ZooKeeperCluster`]: an ensemble whose servers can be cut off from each other.
//! * [`Proxy`]: stands between a client and a server, understands ZooKeeper's frames, delays,
//!   stalls and cuts, and loses exactly the request or the reply that a test names. It counts what
//!   passes.
//!
//! Everything blocks and needs no runtime: servers are processes, and each proxy has a thread of
//! its own. Nothing outlives the test process, however that one ends.
//!
//! # Requirements
//!
//! Linux, Java and ZooKeeper 3.6 or newer: Debian's packages `zookeeper` and
//! `default-jre-headless`, or a release of ZooKeeper named by `ZOOKEEPER_HOME`.
//!
//! # Examples
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use zookeeper_testing::{Proxy, ZooKeeperServer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ZooKeeperServer::start()?;
//! let proxy = Proxy::start(server.address())?;
//!
//! let mut client = TcpStream::connect(proxy.address())?;
//! client.write_all(b"ruok")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert_eq!(answer, "imok");
//! # Ok(())
//! # }
//! ```

mod builder;
mod cluster;
mod config;
mod error;
mod four_letter;
mod java;
mod links;
mod ports;
mod process;
mod proxy;
mod server;
mod work_dir;

pub use crate::builder::ServerBuilder;
pub use crate::cluster::{ClusterBuilder, ZooKeeperCluster};
pub use crate::error::{Error, ErrorKind};
pub use crate::proxy::{Counts, Direction, Fault, Hold, Operation, Proxy};
pub use crate::server::ZooKeeperServer;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
