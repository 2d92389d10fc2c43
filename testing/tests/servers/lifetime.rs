//! A server, and its files, do not outlive what they were started for.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use zookeeper_testing::ZooKeeperServer;

use crate::raw::wait_until;

/// Set in a child that plays the test process; the value says how it ends.
const ROLE: &str = "ZOOKEEPER_TESTING_CHILD";

#[derive(Debug)]
struct Traces {
    pid: u32,
    directory: PathBuf,
}

impl Traces {
    fn of(server: &ZooKeeperServer) -> Self {
        Self { pid: server.pid().unwrap(), directory: server.data_dir().to_owned() }
    }

    fn are_there(&self) -> bool {
        is_alive(self.pid) || self.directory.exists()
    }
}

/// A process that has ended and that nobody has collected yet is not alive.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

#[test]
fn a_dropped_server_leaves_nothing_in_whatever_state_it_was() {
    let nothing = |_: &ZooKeeperServer| {};
    let pause = |server: &ZooKeeperServer| server.pause().unwrap();
    let stop = |server: &ZooKeeperServer| server.stop().unwrap();
    let kill = |server: &ZooKeeperServer| server.kill().unwrap();
    for act in [nothing, pause, stop, kill] as [fn(&ZooKeeperServer); 4] {
        let server = ZooKeeperServer::start().unwrap();
        let traces = Traces::of(&server);
        assert!(traces.are_there());
        act(&server);
        drop(server);
        assert!(!traces.are_there(), "{traces:?}");
    }
}

#[test]
fn a_server_goes_with_its_test_process_however_that_ends() {
    match env::var(ROLE).as_deref() {
        Err(_) => {
            ["killed", "paused and killed", "aborted", "left"].map(check_end).into_iter().collect()
        }
        Ok(role) => play(role),
    }
}

/// Watches a child which runs the same test in the role given, until it and its server are gone.
fn check_end(role: &str) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "lifetime::a_server_goes_with_its_test_process_however_that_ends"])
        .args(["--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let traces = told_traces(&mut child);
    assert!(is_alive(traces.pid) && traces.directory.exists(), "{traces:?}");
    match role {
        "killed" | "paused and killed" => child.kill().unwrap(),
        _ => child.stdin.take().unwrap().write_all(b"end\n").unwrap(),
    }
    child.wait().unwrap();
    wait_until(&format!("the end of a server whose process was {role}"), || !traces.are_there());
}

fn told_traces(child: &mut Child) -> Traces {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.filter_map(|line| Some(line.split_once("server ")?.1.to_owned())).next();
    let told = told.expect("the child ended without a server");
    let (pid, directory) = told.split_once(' ').unwrap();
    Traces { pid: pid.parse().unwrap(), directory: Path::new(directory).to_owned() }
}

fn play(role: &str) {
    let server = ZooKeeperServer::start().unwrap();
    let traces = Traces::of(&server);
    if role == "paused and killed" {
        server.pause().unwrap();
    }
    println!("server {} {}", traces.pid, traces.directory.display());
    match role {
        "killed" | "paused and killed" => thread::sleep(Duration::from_secs(600)),
        _ => std::io::stdin().read_line(&mut String::new()).map(|_| ()).unwrap(),
    }
    match role {
        "aborted" => std::process::abort(),
        _ => std::mem::forget(server),
    }
}
