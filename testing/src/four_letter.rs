//! ZooKeeper's four letter words: one question, one answer in text, over a connection of its own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that stands still must not stop the test: a word is answered in milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What a server does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Standalone,
    Leader,
    Follower,
    Observer,
}

/// Asks the server at `address`; no step of it may take longer than `patience`.
pub(crate) fn ask(address: SocketAddr, word: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The role of the server at `address`; none while it does not serve.
pub(crate) fn role(address: SocketAddr, patience: Duration) -> Option<Role> {
    role_in(&ask(address, "srvr", patience).ok()?)
}

fn role_in(srvr: &str) -> Option<Role> {
    let mode = srvr.lines().find_map(|line| line.strip_prefix("Mode: "))?;
    match mode.trim() {
        "standalone" => Some(Role::Standalone),
        "leader" => Some(Role::Leader),
        "follower" => Some(Role::Follower),
        "observer" => Some(Role::Observer),
        _ => None,
    }
}

/// The value of `name` in the answer to `mntr`.
pub(crate) fn metric_in(mntr: &str, name: &str) -> Option<u64> {
    let mut lines = mntr.lines().filter_map(|line| line.split_once('\t'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_stands_in_the_mode_line() {
        let leader = "Zookeeper version: 3.8.0\nZxid: 0x100000000\nMode: leader\nNode count: 5\n";
        assert_eq!(role_in(leader), Some(Role::Leader));
        assert_eq!(role_in("Mode: standalone\n"), Some(Role::Standalone));
        let idle = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(role_in(idle), None);
    }

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let mntr = "zk_watch_count_total\t9\nzk_watch_count\t3\nzk_server_state\tleader\n";
        assert_eq!(metric_in(mntr, "zk_watch_count"), Some(3));
        assert_eq!(metric_in(mntr, "zk_watch"), None);
        assert_eq!(metric_in(mntr, "zk_server_state"), None);
    }
}
