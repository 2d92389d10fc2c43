//! A proxy between ZooKeeper's clients and a server, which breaks the network on purpose.
//!
//! ```text
//!              ┌────────────── proxy, a thread of its own ───────────────┐
//!   client ◄──►│ up:   read ─ split into frames ─ delay ─ faults ─ write │◄──► server
//!              │ down: write ─ faults ─ delay ─ split into frames ─ read │
//!              └──────────────────────────▲──────────────────────────────┘
//!                    settings, rules, counts: the test, from any thread
//! ```
//!
//! Everything runs on one thread with a runtime of its own: a test that blocks its own runtime does
//! not stop the network. A method that changes something returns when it is in force: a frame that
//! a client sends afterwards meets it.

mod connection;
mod counts;
mod fault;
mod frames;
mod greeting;
mod line;
mod listener;
mod operation;
mod pump;
mod rules;
mod settings;
mod shared;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use self::rules::Trigger;
use self::settings::{Admission, Orders, Protocol, Settings};
use self::shared::Shared;

pub use self::counts::Counts;
pub use self::fault::{Fault, Hold};
pub use self::operation::Operation;
pub use self::settings::Direction;

/// Ending a connection takes microseconds; a proxy that needs longer than this is broken.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A TCP proxy on a loopback port, for the connections of ZooKeeper clients to one server.
///
/// A fault names an operation and `nth`: it meets the nth frame of that operation, 1 for the next,
/// counted over all connections from the call on. Each fault happens once. Where it resets a
/// connection, the client sees a reset, while the server sees an orderly end behind all requests
/// that had been delivered, and carries these out.
///
/// # Examples
///
/// The reply to the next create is lost, after the server has carried it out:
///
/// ```no_run
/// # fn create_a_node(address: &str) {}
/// use std::time::Duration;
/// use zookeeper_testing::{Operation, Proxy, ZooKeeperServer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ZooKeeperServer::start()?;
/// let proxy = Proxy::start(server.address())?;
/// let lost = proxy.lose_reply(Operation::Create, 1);
/// create_a_node(&proxy.connect_string());
/// assert!(lost.wait_happened(Duration::from_secs(5)));
/// # Ok(())
/// # }
/// ```
pub struct Proxy {
    address: SocketAddr,
    settings: watch::Sender<Settings>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy for the client port of a server. The server need not run yet.
    ///
    /// # Errors
    ///
    /// The operating system refuses a port or a thread.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        Self::start_for(Protocol::Client, target)
    }

    /// Starts a proxy for another protocol, which it does not try to understand: delays, stalls and
    /// cuts work, faults that name an operation never happen.
    ///
    /// # Errors
    ///
    /// The operating system refuses a port or a thread.
    pub fn start_raw(target: SocketAddr) -> io::Result<Self> {
        Self::start_for(Protocol::Opaque, target)
    }

    fn start_for(protocol: Protocol, target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (settings, watched) = watch::channel(Settings::new(target, protocol));
        let shared = Arc::new(Shared::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let theirs = shared.clone();
        let thread = thread::Builder::new()
            .name("zookeeper-proxy".to_owned())
            .spawn(move || runtime.block_on(listener::listen(listener, watched, theirs)))?;
        Ok(Self { address, settings, shared, thread: Some(thread) })
    }

    /// The address on which the proxy listens; it stays the same.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same address for a client's connect string.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Sends new connections to another server; those that are open stay where they are.
    pub fn retarget(&self, target: SocketAddr) {
        self.settings.send_modify(|settings| settings.target = target);
    }

    /// Starts a proxy for the quorum port of a server.
    pub(crate) fn start_quorum(target: SocketAddr) -> io::Result<Self> {
        Self::start_for(Protocol::Quorum, target)
    }

    /// Starts a proxy for the election port of a server.
    pub(crate) fn start_election(target: SocketAddr) -> io::Result<Self> {
        Self::start_for(Protocol::Election(target), target)
    }

    /// Names the address that the target is told when it asks where to dial back.
    pub(crate) fn advertise(&self, address: SocketAddr) {
        self.settings.send_modify(|settings| settings.protocol = Protocol::Election(address));
    }
}

/// The state of the network.
impl Proxy {
    /// Delays everything by `one_way` in each direction; a round trip takes twice that.
    ///
    /// It holds for what arrives from now on. Bytes that were sent together still arrive together.
    /// Connections are opened and reset without delay.
    pub fn delay(&self, one_way: Duration) {
        self.settings.send_modify(|settings| {
            settings.up.delay = one_way;
            settings.down.delay = one_way;
        });
    }

    /// Delays what clients send.
    pub fn delay_up(&self, one_way: Duration) {
        self.settings.send_modify(|settings| settings.up.delay = one_way);
    }

    /// Delays what servers send.
    pub fn delay_down(&self, one_way: Duration) {
        self.settings.send_modify(|settings| settings.down.delay = one_way);
    }

    /// Delivers nothing more in this direction, and says so to nobody: neither what is sent nor the
    /// end of a connection gets through. New connections are accepted all the same.
    pub fn stall(&self, direction: Direction) {
        self.settings.send_modify(|settings| settings.stall(direction));
    }

    /// Ends [`stall`](Self::stall): what was held back is delivered.
    pub fn resume(&self) {
        self.settings.send_modify(Settings::resume);
    }

    /// Resets new connections; those that are open stay.
    pub fn refuse(&self) {
        self.settings.send_modify(|settings| settings.admission = Admission::Refuse);
    }

    /// Ends [`refuse`](Self::refuse).
    pub fn accept(&self) {
        self.settings.send_modify(|settings| settings.admission = Admission::Accept);
    }

    /// Resets all open connections on both sides and returns when they are gone. What the server
    /// has not read by then it may or may not carry out.
    pub fn cut(&self) {
        self.end_connections(|orders| orders.cuts += 1);
    }

    /// Closes all open connections in order on both sides and returns when both sides have closed.
    /// A side that does not close as well is left after five seconds.
    pub fn close_gracefully(&self) {
        self.end_connections(|orders| orders.closes += 1);
    }

    fn end_connections(&self, order: fn(&mut Orders)) {
        // Before the order: a client that was cut may come back before this thread goes on, and its
        // new connection is not meant.
        let next = self.shared.next();
        self.settings.send_modify(|settings| order(&mut settings.orders));
        assert!(
            self.shared.wait_until_ended(next, END_PATIENCE),
            "a connection of the proxy did not end"
        );
    }

    /// How many connections are open at the moment.
    pub fn open_connections(&self) -> usize {
        self.shared.open_connections()
    }
}

/// Faults.
///
/// # Panics
///
/// All of these panic where `nth` is 0.
impl Proxy {
    /// Loses the nth request of this operation, and everything behind it, and resets its
    /// connection.
    pub fn lose_request(&self, operation: Operation, nth: u32) -> Fault {
        self.shared.rules.lock().lose(Trigger::Request(operation), nth)
    }

    /// Loses the nth reply to this operation, and everything behind it, and resets its connection:
    /// the server has answered, and the client does not know.
    pub fn lose_reply(&self, operation: Operation, nth: u32) -> Fault {
        self.shared.rules.lock().lose(Trigger::Reply(operation), nth)
    }

    /// Delivers the nth request of this operation and resets its connection at once: requests
    /// behind it are lost, and so is its reply.
    pub fn reset_after(&self, operation: Operation, nth: u32) -> Fault {
        self.shared.rules.lock().reset_after(Trigger::Request(operation), nth)
    }

    /// Cuts the next flight in which a request of `second` follows one of `first` on the same
    /// connection, pings apart, between the two: `first` is delivered, `second` is lost and the
    /// connection is reset, however close together they were sent.
    pub fn cut_between(&self, first: Operation, second: Operation) -> Fault {
        self.shared.rules.lock().lose(Trigger::Follows(first, second), 1)
    }

    /// Catches the nth request of this operation; all that its client sends later waits behind it.
    pub fn hold_request(&self, operation: Operation, nth: u32) -> Hold {
        self.shared.rules.lock().hold(Trigger::Request(operation), nth)
    }

    /// Catches the nth reply to this operation; all that its client is sent later waits behind it.
    pub fn hold_reply(&self, operation: Operation, nth: u32) -> Hold {
        self.shared.rules.lock().hold(Trigger::Reply(operation), nth)
    }
}

/// Counters.
impl Proxy {
    /// What has passed since the start or the last [`reset_counts`](Self::reset_counts).
    pub fn counts(&self) -> Counts {
        self.shared.counts.lock().clone()
    }

    /// Sets all counters to zero.
    pub fn reset_counts(&self) {
        *self.shared.counts.lock() = Counts::default();
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .field("settings", &*self.settings.borrow())
            .finish_non_exhaustive()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.settings.send_modify(|settings| settings.admission = Admission::Closed);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been printed; a second one here would abort the test.
            thread.join().ok();
        }
    }
}
