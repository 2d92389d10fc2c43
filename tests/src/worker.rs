//! A process of its own that takes part in a test, driven by its lines. The process itself is the
//! program `worker` of this package.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::soon;

/// A worker process; killed when this is dropped.
pub struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts the program with these arguments.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            // The worker ends when this pipe does: it outlives no test.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program can be started");
        let stdout = child.stdout.take().expect("it is piped");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// The next line it says; `None` once it has ended well.
    pub async fn line(&mut self) -> Option<String> {
        let line = soon("a worker says something", self.lines.next_line()).await;
        let line = line.expect("its output can be read");
        if line.is_none() {
            let status = soon("a worker ends", self.child.wait()).await;
            assert!(status.expect("it is ours").success(), "a worker failed");
        }
        line
    }

    /// What it tells in its next line, which begins with this word.
    pub async fn told<const N: usize>(&mut self, word: &str) -> [String; N] {
        let line = self.line().await.unwrap_or_default();
        let mut fields = line.split(' ').map(str::to_owned);
        assert_eq!(fields.next().as_deref(), Some(word), "a worker said {line:?}");
        let fields: Vec<_> = fields.collect();
        fields.try_into().unwrap_or_else(|fields| panic!("a worker said {word} {fields:?}"))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(id.expect("it runs"), signal).expect("it is ours");
    }
}
