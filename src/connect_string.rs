//! Where the servers are: `host[:port],host[:port],…[/chroot]`.
//!
//! A string that parses is one that can be connected to: every host has a name or an address and a
//! port, and the chroot is a valid path. What is wrong with any other is said in an error that
//! names the whole string and the part at fault.
//!
//! ```text
//!   zk1:2181,zk2,[::1]:2183/billing/eu
//!   └──┬───┘ └┬┘ └───┬────┘└────┬────┘
//!    host   default  IPv6     chroot: the node below which the client lives
//!           port 2181
//! ```
//!
//! White space around the string and around each host means nothing. IPv6 addresses stand in
//! brackets, because without them address and port cannot be told apart.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::error::{Error, Result};
use crate::path::{self, Root};

const DEFAULT_PORT: u16 = 2181;

/// A parsed connect string; its `Display` is the normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectString {
    hosts: Vec<Host>,
    root: Root,
}

impl ConnectString {
    /// Parses `text`; there is at least one host in it.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refuse = |flaw: String| Error::invalid(format!("connect string {text:?}: {flaw}"));
        let trimmed = text.trim();
        let (hosts, chroot) = match trimmed.find('/') {
            Some(slash) => trimmed.split_at(slash),
            None => (trimmed, "/"),
        };
        if hosts.trim().is_empty() {
            return Err(refuse("no host".to_owned()));
        }
        let hosts = hosts.split(',').map(|host| Host::parse(host.trim()));
        let hosts = hosts.collect::<Result<_, _>>().map_err(refuse)?;
        path::check(chroot).map_err(|flaw| refuse(format!("chroot: {flaw}")))?;
        Ok(Self { hosts, root: Root::new(chroot) })
    }

    /// The servers, in the order given.
    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The chroot as a prefix of paths; the server's own root where there is none.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The servers alone, in normal form, for a client that is connected at the server's root.
    pub(crate) fn to_servers(&self) -> String {
        self.hosts.iter().map(Host::to_string).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_servers())?;
        match self.root.path() {
            "/" => Ok(()),
            chroot => f.write_str(chroot),
        }
    }
}

/// One server of the ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// As given, but an IPv6 address in normal form and without brackets.
    name: String,
    address: Option<IpAddr>,
    port: u16,
}

impl Host {
    /// The name or the address, an IPv6 address without its brackets.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The address, where the host was given as one and not as a name.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The port, never zero.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Parses one host; what is wrong with it is for an error that names the whole string.
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty host between commas".to_owned());
        }
        let Some(bracketed) = text.strip_prefix('[') else {
            return Self::parse_plain(text);
        };
        let Some((address, rest)) = bracketed.split_once(']') else {
            return Err(format!("host {text:?}: the bracket is not closed"));
        };
        let Ok(address) = address.parse::<Ipv6Addr>() else {
            return Err(format!("host {text:?}: {address:?} is not an IPv6 address"));
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => parse_port(text, port)?,
            None if rest.is_empty() => DEFAULT_PORT,
            None => return Err(format!("host {text:?}: unexpected {rest:?} behind the address")),
        };
        Ok(Self { name: address.to_string(), address: Some(address.into()), port })
    }

    fn parse_plain(text: &str) -> Result<Self, String> {
        if text.matches(':').count() > 1 {
            return Err(format!("host {text:?}: an IPv6 address must stand in brackets"));
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, parse_port(text, port)?),
            None => (text, DEFAULT_PORT),
        };
        if name.is_empty() {
            return Err(format!("host {text:?}: no name before the port"));
        }
        if let Some(c) = name.chars().find(|&c| !is_name_character(c)) {
            return Err(format!("host {text:?}: character {c:?} is not allowed in a host name"));
        }
        let address = name.parse::<IpAddr>().ok();
        Ok(Self { name: name.to_owned(), address, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(IpAddr::V6(_)) => write!(f, "[{}]:{}", self.name, self.port),
            Some(IpAddr::V4(_)) | None => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

fn parse_port(host: &str, port: &str) -> Result<u16, String> {
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if digits && number > 0 => Ok(number),
        _ => Err(format!("host {host:?}: port {port:?} is not a number from 1 to 65535")),
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        ConnectString::parse(text).unwrap_or_else(|error| panic!("{error}")).to_string()
    }

    #[test]
    fn the_normal_form_names_every_port_and_parses_to_itself() {
        let cases = [
            ("h1", "h1:2181"),
            ("h1:2182/", "h1:2182"),
            ("h1:2181,h2,[::1]:2183/chroot/x", "h1:2181,h2:2181,[::1]:2183/chroot/x"),
            (" h1 ,\th2:65535\n", "h1:2181,h2:65535"),
            ("10.0.0.1:1,[FE80:0::1]", "10.0.0.1:1,[fe80::1]:2181"),
            ("zk_1.example-a.com./a b", "zk_1.example-a.com.:2181/a b"),
        ];
        for (text, expected) in cases {
            assert_eq!(normal(text), expected);
            assert_eq!(normal(expected), expected);
        }
    }

    #[test]
    fn a_refusal_names_the_string_and_the_part() {
        let cases = [
            ("", "no host"),
            ("  ", "no host"),
            ("/app", "no host"),
            ("h1,,h2", "empty host between commas"),
            ("h1,", "empty host between commas"),
            (",h1", "empty host between commas"),
            ("h1:", "host \"h1:\": port \"\" is not a number from 1 to 65535"),
            ("h1:0", "port \"0\" is not"),
            ("h1:65536", "port \"65536\" is not"),
            ("h1:+80", "port \"+80\" is not"),
            ("h1:zk", "port \"zk\" is not"),
            (":2181", "no name before the port"),
            ("::1", "host \"::1\": an IPv6 address must stand in brackets"),
            ("fe80::1:2181", "must stand in brackets"),
            ("[::1", "the bracket is not closed"),
            ("[]:2181", "\"\" is not an IPv6 address"),
            ("[h1]:2181", "\"h1\" is not an IPv6 address"),
            ("[::1]2181", "unexpected \"2181\" behind the address"),
            ("[::1]:0", "port \"0\" is not"),
            ("h\0:2181", "character '\\0' is not allowed"),
            ("h1 h2", "character ' ' is not allowed"),
            ("hö", "character 'ö' is not allowed"),
            ("h1/a//b", "chroot: path \"/a//b\" at byte 3: empty segment"),
            ("h1/a/", "must not end with '/'"),
            ("h1/a/../b", "relative segment \"..\""),
            ("h1/a\nb", "character '\\n' is not allowed"),
        ];
        for (text, part) in cases {
            let error = ConnectString::parse(text).expect_err(text).to_string();
            assert!(error.contains(&format!("connect string {text:?}: ")), "{error}");
            assert!(error.contains(part), "{error} does not say {part}");
            assert!(!error.contains(['\n', '\0']), "{error:?} is more than a line");
        }
    }

    #[test]
    fn the_servers_come_without_the_chroot() {
        let parsed = ConnectString::parse("h1,[::1]/app").unwrap();
        assert_eq!(parsed.to_servers(), "h1:2181,[::1]:2181");
        assert_eq!(parsed.root().path(), "/app");
        assert_eq!(ConnectString::parse("h1/").unwrap().root().path(), "/");
    }

    #[test]
    fn an_address_is_told_from_a_name() {
        let parsed = ConnectString::parse("h1:7,127.0.0.1,[::1]").unwrap();
        let addresses: Vec<_> = parsed.hosts().iter().map(Host::address).collect();
        let loopback = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        assert_eq!(addresses, [None, loopback("127.0.0.1"), loopback("::1")]);
        let first = &parsed.hosts()[0];
        assert_eq!((first.name(), first.port()), ("h1", 7));
        assert_eq!(parsed.hosts()[2].name(), "::1", "brackets are no part of the address");
    }
}
