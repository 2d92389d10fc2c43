//! TCP_NODELAY for the sockets to the ensemble.
//!
//! It promises that small requests sent back to back leave at once. Without the option the kernel
//! holds the second one back until the first is acknowledged: a whole round trip for nothing. The
//! wire client does not set it and keeps its socket to itself, so the socket is found from outside:
//!
//! ```text
//!   /proc/self/fd ──▶ is it a socket? ──▶ duplicate ──▶ is its peer a server? ──▶ set, drop
//! ```
//!
//! The option belongs to the connection and not to the descriptor, so setting it on the duplicate
//! holds for the original. The races, all harmless: a descriptor closed since it was listed is
//! skipped; one reused since then is judged by its new peer; a socket closed while it is duplicated
//! is closed for its peer as soon as the duplicate is dropped, microseconds later.

use std::io;

use crate::connect_string::Host;

/// Sets TCP_NODELAY on every TCP socket of this process that is connected to one of `servers`, and
/// returns how many there were.
///
/// A server given as an address is told by address and port, one given as a name by its port alone:
/// an unrelated connection to the same port then loses nothing but the kernel's delay.
///
/// # Errors
///
/// What the system refuses: a container may filter the calls, a kernel before 5.6 lacks one of
/// them, and systems other than Linux have none of them (`Unsupported`). Some sockets may be set
/// already. The connection works without the option, only slower.
pub(crate) fn set_nodelay(servers: &[Host]) -> io::Result<usize> {
    platform::set_nodelay(servers)
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs;
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::io::Errno;
    use rustix::net::sockopt::{set_tcp_nodelay, socket_type};
    use rustix::net::{SocketType, getpeername};
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    use crate::connect_string::Host;

    pub(super) fn set_nodelay(servers: &[Host]) -> io::Result<usize> {
        let process = pidfd_open(getpid(), PidfdFlags::empty())?;
        let mut count = 0;
        for entry in fs::read_dir("/proc/self/fd")? {
            let Some(descriptor) = socket_descriptor(&entry?.path()) else { continue };
            let socket = match pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()) {
                Ok(socket) => socket,
                Err(Errno::BADF) => continue,
                Err(refusal) => return Err(refusal.into()),
            };
            if tcp_peer(&socket).is_some_and(|peer| is_server(servers, peer)) {
                set_tcp_nodelay(&socket, true)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The number of the descriptor that `entry` of the process's list stands for, if a socket.
    ///
    /// Nothing but a socket may be duplicated: to close a duplicate of a file would release the
    /// process's record locks on that file.
    fn socket_descriptor(entry: &Path) -> Option<i32> {
        let target = fs::read_link(entry).ok()?;
        target.to_str()?.starts_with("socket:[").then_some(())?;
        entry.file_name()?.to_str()?.parse().ok()
    }

    /// The peer, if this is a TCP socket and connected.
    fn tcp_peer(socket: &OwnedFd) -> Option<SocketAddr> {
        (socket_type(socket) == Ok(SocketType::STREAM)).then_some(())?;
        SocketAddr::try_from(getpeername(socket).ok()??).ok()
    }

    fn is_server(servers: &[Host], peer: SocketAddr) -> bool {
        // A socket for both families shows an IPv4 peer as an IPv6 address.
        let address = peer.ip().to_canonical();
        servers.iter().any(|server| {
            let is_address = server.address().is_none_or(|known| known.to_canonical() == address);
            is_address && server.port() == peer.port()
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;

    use crate::connect_string::Host;

    pub(super) fn set_nodelay(_servers: &[Host]) -> io::Result<usize> {
        let text = "TCP_NODELAY of the connection to the ensemble can be set on Linux only";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::connect_string::ConnectString;

    fn servers(text: &str) -> Vec<Host> {
        ConnectString::parse(text).unwrap().hosts().to_vec()
    }

    /// A connection from this process to itself: the listener, and the client's end.
    fn connected(address: &str) -> (TcpListener, TcpStream, SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, TcpStream::connect(address).unwrap(), address)
    }

    #[test]
    fn the_option_is_set_on_the_socket_to_a_server_and_on_no_other() {
        let (_server, socket, address) = connected("127.0.0.1:0");
        let (_elsewhere, other, _) = connected("127.0.0.1:0");
        let (_unix, _peer) = UnixStream::pair().unwrap();
        assert!(!socket.nodelay().unwrap());

        assert_eq!(set_nodelay(&servers(&address.to_string())).unwrap(), 1);

        assert!(socket.nodelay().unwrap());
        assert!(!other.nodelay().unwrap());
    }

    #[test]
    fn a_server_given_by_name_is_told_by_its_port() {
        let (_server, socket, address) = connected("127.0.0.1:0");
        let name = format!("zk.example:{}", address.port());
        assert_eq!(set_nodelay(&servers(&name)).unwrap(), 1);
        assert!(socket.nodelay().unwrap());
    }

    #[test]
    fn a_server_given_by_address_is_told_by_its_address_too() {
        let (_server, socket, address) = connected("127.0.0.1:0");
        let neighbour = format!("127.0.0.2:{}", address.port());
        assert_eq!(set_nodelay(&servers(&neighbour)).unwrap(), 0);
        assert!(!socket.nodelay().unwrap());
    }

    #[test]
    fn a_socket_that_is_not_tcp_is_left_alone() {
        // An address of its own: a TCP port of another test may have the same number.
        let peer = UdpSocket::bind("127.0.0.3:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.3:0").unwrap();
        let address = peer.local_addr().unwrap();
        socket.connect(address).unwrap();
        assert_eq!(set_nodelay(&servers(&address.to_string())).unwrap(), 0);
    }
}
