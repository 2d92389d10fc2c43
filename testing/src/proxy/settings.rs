//! What a test has told a proxy: one value, watched by everything that runs in the proxy.

use std::net::SocketAddr;
use std::time::Duration;

/// A direction of a proxy's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
    /// Up and down.
    Both,
}

/// One direction, where both make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Up,
    Down,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) target: SocketAddr,
    pub(super) protocol: Protocol,
    pub(super) admission: Admission,
    pub(super) up: Traffic,
    pub(super) down: Traffic,
    pub(super) orders: Orders,
}

/// What the bytes of a connection mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// ZooKeeper's client protocol.
    Client,
    /// The protocol of a leader and those that follow it.
    Quorum,
    /// The protocol of leader elections; the listener is told to dial this address.
    Election(SocketAddr),
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Accept,
    Refuse,
    /// The proxy is dropped.
    Closed,
}

/// How one direction carries what it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) delay: Duration,
    pub(super) flow: Flow,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flow {
    #[default]
    Moving,
    Stalled,
}

/// How often connections were ended. A connection goes when a number is not the one it began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) cuts: u64,
    pub(super) closes: u64,
}

impl Settings {
    pub(super) fn new(target: SocketAddr, protocol: Protocol) -> Self {
        Self {
            target,
            protocol,
            admission: Admission::Accept,
            up: Traffic::default(),
            down: Traffic::default(),
            orders: Orders::default(),
        }
    }

    pub(super) fn traffic(&self, lane: Lane) -> Traffic {
        match lane {
            Lane::Up => self.up,
            Lane::Down => self.down,
        }
    }

    pub(super) fn stall(&mut self, direction: Direction) {
        match direction {
            Direction::Up => self.up.flow = Flow::Stalled,
            Direction::Down => self.down.flow = Flow::Stalled,
            Direction::Both => {
                self.up.flow = Flow::Stalled;
                self.down.flow = Flow::Stalled;
            }
        }
    }

    pub(super) fn resume(&mut self) {
        self.up.flow = Flow::Moving;
        self.down.flow = Flow::Moving;
    }
}
