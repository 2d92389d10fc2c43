//! The network between the servers of an ensemble, made of proxies so that it can be cut.
//!
//! Each server reaches each other one through two proxies of that ordered pair, one for the quorum
//! port and one for the election port:
//!
//! ```text
//!   server a ──► proxy a→b ──► server b        b is isolated:  a→b and b→a stall,
//!   server b ──► proxy b→a ──► server a                        for each a
//! ```
//!
//! Of two servers the one with the higher id dials for elections. When the lower one dials first,
//! it tells its address, and the other one hangs up and dials that. A proxy of an election port
//! therefore puts the way through the proxy of the opposite direction in the place of that
//! address.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use parking_lot::Mutex;

use crate::config::Member;
use crate::proxy::{Direction, Proxy};

#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    isolated: Mutex<BTreeSet<usize>>,
}

#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    quorum: Proxy,
    election: Proxy,
}

impl Links {
    /// Puts proxies between servers that listen on the ports of `members`.
    pub(crate) fn start(members: &[Member]) -> io::Result<Self> {
        let mut links = Vec::new();
        for from in 0..members.len() {
            for (to, member) in members.iter().enumerate().filter(|(to, _)| *to != from) {
                let quorum = Proxy::start_quorum(loopback(member.quorum_port))?;
                let election = Proxy::start_election(loopback(member.election_port))?;
                links.push(Link { from, to, quorum, election });
            }
        }
        for link in &links {
            let back = links.iter().find(|other| other.from == link.to && other.to == link.from);
            let back = back.expect("each pair has a link in both directions");
            link.election.advertise(back.election.address());
        }
        Ok(Self { links, isolated: Mutex::default() })
    }

    /// The members as the server `from` sees them: itself on its own ports, the others by proxy.
    pub(crate) fn seen_from(&self, from: usize, members: &[Member]) -> Vec<Member> {
        let mut seen = members.to_vec();
        for link in self.links.iter().filter(|link| link.from == from) {
            seen[link.to] = Member {
                quorum_port: link.quorum.address().port(),
                election_port: link.election.address().port(),
            };
        }
        seen
    }

    pub(crate) fn isolate(&self, server: usize) {
        let mut isolated = self.isolated.lock();
        isolated.insert(server);
        self.apply(&isolated);
    }

    pub(crate) fn heal(&self, server: usize) {
        let mut isolated = self.isolated.lock();
        isolated.remove(&server);
        self.apply(&isolated);
    }

    fn apply(&self, isolated: &BTreeSet<usize>) {
        for link in &self.links {
            for proxy in [&link.quorum, &link.election] {
                if isolated.contains(&link.from) || isolated.contains(&link.to) {
                    proxy.stall(Direction::Both);
                } else {
                    proxy.resume();
                }
            }
        }
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
