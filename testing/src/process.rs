//! One Java process that never outlives the process which started it.
//!
//! A shell starts a *keeper* in the background and then becomes the Java process itself, which so
//! is our own child: its end is seen at once and its process id cannot be taken by another process
//! before we have collected it. The keeper reads from a pipe whose other end only we hold:
//!
//! ```text
//!   test process ───── pipe ─────► keeper (sh)     a line:      the server has ended, go
//!        │                            │            end of file: kill -9, remove the directory
//!        └──── fork, exec ──► sh ─► java ◄─────────┘
//! ```
//!
//! The pipe closes however the test process ends, also by abort and `kill -9`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// `$1` is the server's directory, the rest the command. The command's standard input is empty, and
/// it must not inherit the pipe: it would keep its own end from being seen.
const SCRIPT: &str = r#"
exec 3<&0 </dev/null
directory=$1
shift
{ read -r _ <&3 || { kill -9 $$; rm -rf "$directory"; }; } >/dev/null 2>&1 &
exec "$@" 3<&-
"#;

/// A server that ignores SIGTERM for this long is killed.
const TERM_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
}

impl Process {
    /// Starts `java` in `directory`, its output going to the end of `log`.
    pub(crate) fn start(java: &Command, directory: &Path, log: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "zookeeper-testing"])
            .arg(directory)
            .arg(java.get_program())
            .args(java.get_args())
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let pid = Pid::from_child(&child);
        Ok(Self { child, pid })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended; none while it runs.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.dismiss_keeper();
        }
        Ok(status)
    }

    /// Stands still, and returns when every thread does.
    pub(crate) fn pause(&self) -> io::Result<()> {
        kill_process(self.pid, Signal::STOP)?;
        // EXITED ends the wait for a process that dies meanwhile; NOWAIT leaves it to `Child`.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid), options)?;
        Ok(())
    }

    pub(crate) fn resume(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Asks the process to end and waits until it has; a paused one is woken for it.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        kill_process(self.pid, Signal::TERM)?;
        kill_process(self.pid, Signal::CONT)?;
        let deadline = Instant::now() + TERM_PATIENCE;
        while self.ended()?.is_none() {
            if Instant::now() > deadline {
                return self.kill();
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Kills the process and waits until it is gone.
    pub(crate) fn kill(mut self) -> io::Result<()> {
        self.kill_and_collect()
    }

    fn kill_and_collect(&mut self) -> io::Result<()> {
        self.child.kill()?;
        // Not `Child::wait`: that closes the pipe first, and the keeper would remove the directory.
        while self.ended()?.is_none() {
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Only after the process was collected: a keeper that goes before would leave it unguarded.
    fn dismiss_keeper(&mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // The keeper is gone if somebody killed it; then there is nothing to dismiss.
            pipe.write_all(b"\n").ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Should this fail, the pipe closes next and the keeper does it.
        self.kill_and_collect().ok();
    }
}
