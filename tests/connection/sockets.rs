//! The option TCP_NODELAY, read back from the sockets of this process.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;

use integration_tests::{connect, proxy, until};
use rustix::net::getpeername;
use rustix::net::sockopt::tcp_nodelay;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::recorder::Recorder;
use crate::{next_session, short_lived};

/// The option of each socket of this process that is connected to `peer`.
fn nodelay_to(peer: SocketAddr) -> Vec<bool> {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    let sockets = entries.filter_map(|entry| duplicate(&entry.unwrap().path()));
    let of_peer = sockets.filter(|socket| peer_of(socket) == Some(peer));
    of_peer.map(|socket| tcp_nodelay(&socket).unwrap()).collect()
}

/// Another descriptor of the same socket, if the entry stands for one that is still open.
fn duplicate(entry: &Path) -> Option<OwnedFd> {
    let target = fs::read_link(entry).ok()?;
    target.to_str()?.starts_with("socket:[").then_some(())?;
    let number = entry.file_name()?.to_str()?.parse().ok()?;
    let process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()
}

fn peer_of(socket: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getpeername(socket).ok()??).ok()
}

#[track_caller]
fn assert_nodelay(peer: SocketAddr) {
    let options = nodelay_to(peer);
    assert!(!options.is_empty(), "there is no connection");
    assert!(options.iter().all(|set| *set), "{options:?}");
}

#[tokio::test]
async fn every_connection_has_nodelay_from_the_first_moment() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    assert_nodelay(proxy.address());
    let recorder = Recorder::default();
    client.add_listener(recorder.clone()).unwrap();
    for cut in 1..=3 {
        proxy.cut();
        until("it is back", || recorder.states().len() == 2 * cut).await;
        assert_nodelay(proxy.address());
    }
    assert_eq!(proxy.counts().connections(), 4);
}

#[tokio::test]
async fn the_connection_of_each_session_has_nodelay() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    next_session(&proxy, &client).await;
    assert_nodelay(proxy.address());
}

/// The reading above can tell.
#[tokio::test]
async fn a_connection_of_somebody_else_keeps_its_delay() {
    let proxy = proxy();
    let _client = connect(&proxy.connect_string()).await;
    let other = TcpStream::connect(proxy.address()).unwrap();
    until("it is accepted", || proxy.open_connections() == 2).await;
    assert!(nodelay_to(proxy.address()).contains(&false));
    assert!(!other.nodelay().unwrap());
}
