//! Finds TCP ports for servers that must be told their port before they start.
//!
//! Ports are taken from below the range from which the kernel serves outgoing connections. With a
//! port of that range, a client which keeps dialling a stopped server can be given the server's own
//! port as its local one: it is then connected to itself, and the server cannot come back.
//!
//! Between the search and the start another process can take a port. Whoever starts a server looks
//! for that failure and searches again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

const CANDIDATES: Range<u16> = 12_000..32_000;
const ATTEMPTS: usize = 1_000;

/// `count` different ports on which nothing listens.
pub(crate) fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    // All listeners stay open until the last port is found: that keeps the ports different.
    let mut listeners = Vec::with_capacity(count);
    let mut ports = Vec::with_capacity(count);
    for _ in 0..ATTEMPTS {
        if ports.len() == count {
            return Ok(ports);
        }
        let port = random_candidate();
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            listeners.push(listener);
            ports.push(port);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        format!("{count} free ports were not found between 12000 and 32000"),
    ))
}

fn random_candidate() -> u16 {
    let width = u64::from(CANDIDATES.end - CANDIDATES.start);
    let offset = RandomState::new().build_hasher().finish() % width;
    CANDIDATES.start + u16::try_from(offset).expect("an offset below 20,000 fits into 16 bits")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_different_and_free() {
        let ports = free_ports(20).unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 20);
        for port in ports {
            assert!(CANDIDATES.contains(&port));
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
        }
    }
}
