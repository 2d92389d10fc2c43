//! The first words on a connection between two servers that elect a leader. Pure.
//!
//! ```text
//!   version (8 bytes) │ server id (8) │ length (4) │ the dialler's own election address
//! ```
//!
//! The listener may hang up and dial that address. The proxy therefore says another one.

use std::net::SocketAddr;

const VERSIONS: [i64; 2] = [-65536, -65535];
const HEADER: usize = 20;
const MAX_ADDRESS: usize = 4096;

/// Changes the address in a greeting, once, and passes on everything behind it.
#[derive(Debug)]
pub(super) struct Greeting {
    advertised: SocketAddr,
    heard: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    Done,
}

impl Greeting {
    pub(super) fn new(advertised: SocketAddr) -> Self {
        Self { advertised, heard: Vec::new(), state: State::Listening }
    }

    /// The bytes to pass on now, given that `bytes` arrived.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.state == State::Done {
            return bytes.to_vec();
        }
        self.heard.extend_from_slice(bytes);
        match rewrite(&self.heard, self.advertised) {
            Some(rewritten) => {
                self.state = State::Done;
                self.heard = Vec::new();
                rewritten
            }
            None => Vec::new(),
        }
    }
}

/// None while the greeting is not complete; what is no greeting stays as it is.
fn rewrite(heard: &[u8], advertised: SocketAddr) -> Option<Vec<u8>> {
    let (header, behind) = heard.split_at_checked(HEADER)?;
    let version = i64::from_be_bytes(header[..8].try_into().expect("the slice has eight bytes"));
    let length = u32::from_be_bytes(header[16..].try_into().expect("the slice has four bytes"));
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !VERSIONS.contains(&version) || length > MAX_ADDRESS {
        return Some(heard.to_vec());
    }
    let (_, rest) = behind.split_at_checked(length)?;
    let address = advertised.to_string();
    let length = u32::try_from(address.len()).expect("a socket address has less than 100 bytes");
    Some([&header[..16], &length.to_be_bytes(), address.as_bytes(), rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(version: i64, address: &str) -> Vec<u8> {
        let length = u32::try_from(address.len()).unwrap();
        let id = 3_i64.to_be_bytes();
        [&version.to_be_bytes()[..], &id, &length.to_be_bytes(), address.as_bytes()].concat()
    }

    fn advertised() -> SocketAddr {
        "127.0.0.1:5000".parse().unwrap()
    }

    #[test]
    fn the_address_is_replaced_however_the_bytes_arrive() {
        let sent = [greeting(-65536, "127.0.0.1:12345"), b"votes".to_vec()].concat();
        let expected = [greeting(-65536, "127.0.0.1:5000"), b"votes".to_vec()].concat();
        for size in 1..=sent.len() {
            let mut greeting = Greeting::new(advertised());
            let passed: Vec<u8> = sent.chunks(size).flat_map(|it| greeting.pass(it)).collect();
            assert_eq!(passed, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn what_is_no_greeting_stays_as_it_is() {
        let other = greeting(7, "127.0.0.1:12345");
        assert_eq!(Greeting::new(advertised()).pass(&other), other);
    }
}
