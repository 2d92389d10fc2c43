//! One real ZooKeeper server.
//!
//! It answers when [`ZooKeeperServer::start`] returns, and its process and its data are gone when
//! it is dropped, whatever state it was in. A server that is never dropped, because a `static`
//! holds it or because the test process was killed, ends with the test process all the same.
//!
//! ```text
//!                 stop, kill                     pause
//!   no process ◄───────────── running, serving ────────► standing still
//!        └──── restart, launch ────►      ◄──── resume ────┘
//! ```

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::builder::ServerBuilder;
use crate::config::{Config, LOG_CONFIGS, Member};
use crate::error::{Error, ErrorKind};
use crate::four_letter::{self, Role};
use crate::java::Java;
use crate::process::Process;
use crate::work_dir::WorkDir;

const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
const LOG_TAIL_LINES: usize = 20;

/// A ZooKeeper server in a Java process of its own, on a loopback port.
///
/// All methods block and take `&self`: one server can be shared by all tests of a program.
///
/// # Examples
///
/// ```
/// use zookeeper_testing::ZooKeeperServer;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ZooKeeperServer::start()?;
/// assert!(server.is_serving());
/// assert_eq!(server.connect_string(), format!("127.0.0.1:{}", server.port()));
///
/// server.kill()?;
/// assert!(!server.is_serving());
/// server.restart()?;
/// assert_eq!(server.watch_count()?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZooKeeperServer {
    // Declared before the directory: the process is gone when its files are removed.
    process: Mutex<Option<Process>>,
    directory: WorkDir,
    port: u16,
    config: Config,
    java: Java,
}

/// Where a server stands in its ensemble.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Counted from one, as ZooKeeper does.
    pub(crate) id: usize,
    pub(crate) members: &'a [Member],
}

impl ZooKeeperServer {
    /// Starts a server with the default settings and waits until it serves.
    ///
    /// # Errors
    ///
    /// As [`ServerBuilder::start`].
    pub fn start() -> Result<Self, Error> {
        Self::builder().start()
    }

    /// The settings of a server, to change them before it starts.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Writes all files of a server that [`launch`](Self::launch) can start.
    pub(crate) fn prepare(
        java: &Java,
        config: &Config,
        port: u16,
        place: Option<Place<'_>>,
    ) -> Result<Self, Error> {
        let directory = WorkDir::new().map_err(|error| Error::io("work directory", &error))?;
        let (java, config) = (java.clone(), config.clone());
        let server = Self { process: Mutex::new(None), directory, port, config, java };
        server.write_files(place).map_err(|error| Error::io(server.place(), &error))?;
        Ok(server)
    }

    fn write_files(&self, place: Option<Place<'_>>) -> io::Result<()> {
        let directory = self.data_dir();
        let data = directory.join("data");
        fs::create_dir(&data)?;
        let members = place.map_or(&[][..], |place| place.members);
        fs::write(self.config_file(), self.config.zoo_cfg(self.port, &data, members))?;
        if let Some(place) = place {
            fs::write(data.join("myid"), place.id.to_string())?;
        }
        for (name, text) in LOG_CONFIGS {
            fs::write(directory.join(name), text)?;
        }
        Ok(())
    }

    /// The address for a client's connect string, `127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        self.address().to_string()
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The port for clients; it stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of the Java process; none while there is no process.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    /// The directory of the server: `zoo.cfg`, `server.log` and the data in `data`.
    pub fn data_dir(&self) -> &Path {
        self.directory.path()
    }

    /// Ends the process with SIGTERM and waits until it has ended; the data stay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRunning`] where there is no process.
    pub fn stop(&self) -> Result<(), Error> {
        self.end(Process::stop)
    }

    /// Ends the process with SIGKILL and waits until it has ended; the data stay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRunning`] where there is no process.
    pub fn kill(&self) -> Result<(), Error> {
        self.end(Process::kill)
    }

    /// Stops the process with SIGSTOP, and returns when it stands still. Its connections stay open
    /// and the kernel goes on to accept bytes and new connections for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRunning`] where there is no process.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal(Process::pause)
    }

    /// Lets a paused process go on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRunning`] where there is no process.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal(Process::resume)
    }

    /// Stops the server if it runs, starts it on the same port with the same data, and waits until
    /// it serves.
    ///
    /// A member of an ensemble serves only with a quorum: without one use [`launch`](Self::launch).
    ///
    /// # Errors
    ///
    /// The server did not come up.
    pub fn restart(&self) -> Result<(), Error> {
        if self.pid().is_some() {
            self.stop()?;
        }
        self.launch()?;
        self.wait_until_serving()
    }

    /// Starts the process of a server that has none, and does not wait for anything.
    ///
    /// # Errors
    ///
    /// The process could not be started; [`ErrorKind::Running`] where there is one already.
    pub fn launch(&self) -> Result<(), Error> {
        let mut process = self.process();
        if let Some(running) = &*process {
            let text = format!("{} runs already, in process {}", self.place(), running.id());
            return Err(Error::new(ErrorKind::Running, text));
        }
        let properties = self.config.system_properties(self.data_dir());
        let java = self.java.command(&properties, &self.config_file());
        let started = Process::start(&java, self.data_dir(), &self.log_file())
            .map_err(|error| Error::io(self.place(), &error))?;
        *process = Some(started);
        Ok(())
    }

    /// Waits until the server serves, for a minute at most.
    ///
    /// # Errors
    ///
    /// Its process ended, or it did not serve in time.
    pub fn wait_until_serving(&self) -> Result<(), Error> {
        let begin = Instant::now();
        while !self.is_serving_itself(question_patience(begin.elapsed())) {
            if let Some(status) = self.ended()? {
                let text = format!("{} ended with {status}{}", self.place(), self.log_tail());
                return Err(Error::new(ErrorKind::StartFailed, text));
            }
            if begin.elapsed() > START_PATIENCE {
                let place = self.place();
                let text =
                    format!("{place} did not serve in {START_PATIENCE:?}{}", self.log_tail());
                return Err(Error::new(ErrorKind::TimedOut, text));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Whether the server answers that it serves clients.
    pub fn is_serving(&self) -> bool {
        self.role().is_some()
    }

    pub(crate) fn role(&self) -> Option<Role> {
        four_letter::role(self.address(), four_letter::PATIENCE)
    }

    /// The answer to one of ZooKeeper's four letter words; all of them are permitted.
    ///
    /// # Errors
    ///
    /// The server does not accept a connection or does not answer within two seconds.
    pub fn four_letter_word(&self, word: &str) -> io::Result<String> {
        four_letter::ask(self.address(), word, four_letter::PATIENCE)
    }

    /// A number of the answer to `mntr` by its name, for instance `zk_outstanding_requests`.
    ///
    /// # Errors
    ///
    /// The server does not answer, or not with a number of that name.
    pub fn metric(&self, name: &str) -> io::Result<u64> {
        let answer = self.four_letter_word("mntr")?;
        four_letter::metric_in(&answer, name).ok_or_else(|| {
            let text = format!("{} has no number named {name}: {answer}", self.place());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// How many watches clients have on this server.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub fn watch_count(&self) -> io::Result<u64> {
        self.metric("zk_watch_count")
    }

    /// How many nodes the server has, ZooKeeper's own included.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub fn znode_count(&self) -> io::Result<u64> {
        self.metric("zk_znode_count")
    }

    /// How many ephemeral nodes the server has.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub fn ephemeral_count(&self) -> io::Result<u64> {
        self.metric("zk_ephemerals_count")
    }

    /// How many connections of clients are open, that of the question included.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub fn connection_count(&self) -> io::Result<u64> {
        self.metric("zk_num_alive_connections")
    }

    /// Another program's server on the same port must not be taken for ours while our process is
    /// still on its way to find the port taken.
    fn is_serving_itself(&self, patience: Duration) -> bool {
        let data = self.data_dir().display().to_string();
        four_letter::role(self.address(), patience).is_some()
            && four_letter::ask(self.address(), "conf", patience)
                .is_ok_and(|conf| conf.contains(&data))
    }

    fn end(&self, how: fn(Process) -> io::Result<()>) -> Result<(), Error> {
        let process = self.process().take().ok_or_else(|| self.not_running())?;
        how(process).map_err(|error| Error::io(self.place(), &error))
    }

    fn signal(&self, how: fn(&Process) -> io::Result<()>) -> Result<(), Error> {
        let process = self.process();
        let running = process.as_ref().ok_or_else(|| self.not_running())?;
        how(running).map_err(|error| Error::io(self.place(), &error))
    }

    /// The process; one that has ended by itself is forgotten, for its id may be another's by now.
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        let mut process = self.process.lock();
        process.take_if(|running| !matches!(running.ended(), Ok(None)));
        process
    }

    /// How the process ended; none while it runs.
    fn ended(&self) -> Result<Option<ExitStatus>, Error> {
        let mut process = self.process.lock();
        let running = process.as_mut().ok_or_else(|| self.not_running())?;
        running.ended().map_err(|error| Error::io(self.place(), &error))
    }

    fn not_running(&self) -> Error {
        Error::new(ErrorKind::NotRunning, format!("{} has no process", self.place()))
    }

    fn place(&self) -> String {
        format!("ZooKeeper on {}", self.address())
    }

    fn config_file(&self) -> PathBuf {
        self.data_dir().join("zoo.cfg")
    }

    fn log_file(&self) -> PathBuf {
        self.data_dir().join("server.log")
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.log_file()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("; its log ends with\n{}", tail.join("\n"))
    }
}

/// A server that is just starting loses questions. They are asked again soon at first, and later
/// with the patience that a busy machine needs.
fn question_patience(waited: Duration) -> Duration {
    (waited / 4).clamp(Duration::from_millis(20), four_letter::PATIENCE)
}
