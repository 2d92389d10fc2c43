//! A reentrant mutex between processes, in the manner of Curator's InterProcessMutex.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use zookeeper_framework::{Client, Session, describe_process, validate_path};

use crate::contender::{Contender, contenders};
use crate::error::{Error, Result};
use crate::owner::Owner;
use crate::queue::{Budget, Family, Hold, Kind, Lost, Queue, Registry, Request, Share, Wait};
use crate::transaction::HeldTransaction;

static MUTEX: Family = Family { recipe: "mutex", markers: &[(MARKER, Kind::Exclusive)] };

const MARKER: &str = "lock-";

/// The owner's name in the data of a node is cut to this many bytes.
const NAME_MAX: usize = 64;

/// A mutex that excludes all owners but one, in all processes that use the same path.
///
/// # Fairness
/// The lock is granted in the order in which the acquisitions reached the server, without
/// exception. The nodes have the names and the order of Java's Curator, whose contenders stand in
/// the same queue.
///
/// # Session loss
/// The lock is held as long as the session: a holder whose session may have ended is told by its
/// guard. An acquisition that waits starts anew in the next session, at the end of the queue.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zookeeper_recipes::{Client, InterProcessMutex, Owner};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder("localhost:2181").connect().await?;
/// let mutex = InterProcessMutex::new(&client, "/locks/invoice-42")?;
/// let owner = Owner::new();
///
/// let guard = mutex.acquire_timeout(&owner, Duration::from_secs(30)).await?;
/// println!("held with token {}", guard.fencing_token());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct InterProcessMutex {
    queue: Arc<Queue>,
    data: Option<Arc<[u8]>>,
    node_watch: NodeWatch,
}

#[derive(Clone, Copy, Debug)]
enum NodeWatch {
    Off,
    On,
}

impl InterProcessMutex {
    /// The mutex of this path. The node is made by the first acquisition, with its ancestors, and
    /// nothing else must be kept below it. Mutexes of one client on one path are one lock.
    ///
    /// # Errors
    /// A path that is not absolute and well formed, or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self> {
        validate_path(path)?;
        if path == "/" {
            return Err(Error::Refused {
                path: path.into(),
                reason: "the root cannot be a lock: name a node below it".into(),
            });
        }
        let queue = Registry::queue(client, path, &MUTEX);
        Ok(Self { queue, data: None, node_watch: NodeWatch::Off })
    }

    /// The data of this mutex's lock nodes, for whoever asks who holds it; by default that of the
    /// [client](crate::framework::ClientBuilder::node_data), or else the host, the process and the
    /// name of the owner.
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = Some(data.into().into());
        self
    }

    /// Watches the own node from the grant on, at one more request: a holder whose node is deleted
    /// by an operator then learns it at once. Without it, it learns it when it releases, or commits
    /// a transaction of its guard.
    ///
    /// A holder that had to wait for another process watches its node anyway.
    pub fn watch_own_node(mut self) -> Self {
        self.node_watch = NodeWatch::On;
        self
    }

    /// The path of the lock.
    pub fn path(&self) -> &str {
        self.queue.path()
    }

    /// Acquires the lock for `owner`, waiting as long as it takes; re-enters at once if the owner
    /// holds it already.
    ///
    /// Acquisitions of one owner that overlap are one: the later ones wait for the first and then
    /// re-enter.
    ///
    /// # Errors
    /// `Lost` while a guard of the owner is alive whose hold was lost: drop it first. `Refused` if
    /// the path is used by another recipe or its counter is at its end. `Closed`. `Framework` with
    /// what the retry policy gave up on, or with `NotConnected` when there was no connection for
    /// the connection timeout: the wait for one is the client's setting, and no retry.
    ///
    /// # Cancel safety
    /// Dropped at any point it leaves no node, and changes nobody else's outcome.
    pub async fn acquire(&self, owner: &Owner) -> Result<MutexGuard> {
        self.acquire_before(owner, None).await
    }

    /// Acquires the lock if that needs no waiting for another owner; `None` if it would.
    ///
    /// It waits for the server's answer, at most the connection timeout.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and `TimedOut` if the server did not answer.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, owner: &Owner) -> Result<Option<MutexGuard>> {
        let request = self.request(owner);
        let share = Share::acquire(&self.queue, &request, owner, Wait::Try).await?;
        Ok(share.map(|share| self.guard(share)))
    }

    /// Acquires the lock, waiting for `timeout` at most. Zero tries once, `Duration::MAX` waits
    /// for ever. The timeout is the limit of everything, a wait for a connection included.
    ///
    /// Where Curator's `acquire(time, unit)` returns `false`, this is `Err(TimedOut)`.
    ///
    /// # Errors
    /// `TimedOut`, after which nothing is left behind; its `cause` says whether there was no
    /// connection. Else as [`acquire`](Self::acquire), but for `NotConnected`.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, owner: &Owner, timeout: Duration) -> Result<MutexGuard> {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.acquire_until(owner, deadline).await,
            // Later than the clock can count.
            None => self.acquire(owner).await,
        }
    }

    /// Acquires the lock, waiting until `deadline` at most. One that has passed tries once.
    ///
    /// # Errors
    /// As [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_until(&self, owner: &Owner, deadline: Instant) -> Result<MutexGuard> {
        self.acquire_before(owner, Some(deadline)).await
    }

    async fn acquire_before(&self, owner: &Owner, deadline: Option<Instant>) -> Result<MutexGuard> {
        let wait = match deadline {
            Some(deadline) if deadline <= Instant::now() => Wait::Try,
            deadline => Wait::Until(deadline),
        };
        let request = self.request(owner);
        match Share::acquire(&self.queue, &request, owner, wait).await? {
            Some(share) => Ok(self.guard(share)),
            None => Err(Error::timed_out(self.queue.path())),
        }
    }

    /// Whether `owner` holds the lock, in this process, and surely still does. Sends nothing.
    pub fn is_owned_by(&self, owner: &Owner) -> bool {
        self.queue.tenures().is_held_by(owner)
    }

    /// Who stands in the queue, in its order: the first one holds the lock. Those that leave
    /// meanwhile are skipped.
    ///
    /// # Errors
    /// `NoAuth` if the nodes may not be read; and what the retry policy gave up on.
    #[doc(alias = "getParticipantNodes")]
    pub async fn contenders(&self) -> Result<Vec<Contender>> {
        contenders(&self.queue).await
    }

    fn request(&self, owner: &Owner) -> Request {
        let client = self.queue.client();
        Request {
            kind: Kind::Exclusive,
            marker: MARKER,
            data: self
                .data
                .clone()
                .or_else(|| client.node_data().cloned())
                .unwrap_or_else(|| describe(owner).into_bytes().into()),
            acl: Arc::clone(client.default_acl()),
            budget: Arc::new(Budget::new(client)),
        }
    }

    fn guard(&self, share: Share) -> MutexGuard {
        match self.node_watch {
            NodeWatch::On if share.depth() == 1 => share.hold().watch_node(),
            NodeWatch::On | NodeWatch::Off => {}
        }
        MutexGuard { share }
    }
}

fn describe(owner: &Owner) -> String {
    let mut text = describe_process();
    if let Some(name) = owner.name() {
        let end = (0..=NAME_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
        text.push(' ');
        text.push_str(&name[..end.unwrap_or(0)]);
    }
    text
}

impl fmt::Debug for InterProcessMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterProcessMutex").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// A held [`InterProcessMutex`]; the lock is given up with the last guard of its owner.
///
/// It may be kept anywhere, shared, and released from any task or thread.
///
/// Dropping it gives the lock up in the background. [`release`](Self::release) does the same and
/// tells how it went.
///
/// # Session loss
/// The guard is the one to ask: [`is_held`](Self::is_held) at any moment, [`lost`](Self::lost) to
/// be woken, [`while_held`](Self::while_held) around the work. None of them is ever optimistic:
/// they say "lost" before another owner can be granted. What a request that is already on its way
/// to a third party does there is beyond them; that is what the [fencing
/// token](Self::fencing_token) is for.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    share: Share,
}

impl MutexGuard {
    fn hold(&self) -> &Arc<Hold> {
        self.share.hold()
    }

    /// Gives this guard up. The last guard of the owner gives up the lock and waits for the server
    /// to confirm it.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before; otherwise the delete's error, whose outcome is
    /// `Unknown` once the retry policy has given up. The delete goes on in the background then,
    /// until the node is gone or the session ends.
    ///
    /// # Cancel safety
    /// Dropping the future, polled or not, loses nothing: the lock is given up in any case.
    pub async fn release(self) -> Result<()> {
        self.share.release().await
    }

    /// Whether the lock is surely still held at this very moment, as far as the session tells.
    /// Reads a clock, sends nothing. Once false it stays false.
    ///
    /// An operator who deletes the lock's node ends the hold too; that is known here only after the
    /// next request that needs the node, or with
    /// [`watch_own_node`](InterProcessMutex::watch_own_node).
    pub fn is_held(&self) -> bool {
        self.hold().ended().is_none()
    }

    /// Resolves once the lock is held no more, with what ended it.
    ///
    /// # Cancel safety
    /// Can be dropped and asked for again at any time. It outlives the guard.
    pub fn lost(&self) -> Lost {
        self.hold().lost()
    }

    /// Runs `work` as long as the lock is held: before every poll of it the clock is read, and once
    /// the lock is lost the work is never polled again.
    ///
    /// The work's own code between two of its awaits cannot be interrupted.
    ///
    /// ```no_run
    /// # use zookeeper_recipes::MutexGuard;
    /// # async fn charge() -> Result<u32, std::io::Error> { Ok(1) }
    /// # async fn example(guard: MutexGuard) -> Result<(), Box<dyn std::error::Error>> {
    /// // The first `?` is for the lock, the second for the work.
    /// let charged = guard.while_held(charge()).await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Lost`, without the work's result.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = pin!(work);
        let mut lost = self.lost();
        let outcome = poll_fn(|cx| match Pin::new(&mut lost).poll(cx) {
            Poll::Ready(reason) => Poll::Ready(Err(reason)),
            Poll::Pending => work.as_mut().poll(cx).map(Ok),
        });
        let path = self.hold().queue().path();
        outcome.await.map_err(|reason| Error::Lost { path: Arc::clone(path), reason })
    }

    /// A number that grows with every hold of this lock: the transaction that created the lock
    /// node (its `czxid`).
    ///
    /// Send it along with what is written under the lock, and let the store refuse any number
    /// smaller than the greatest it has seen: then a holder that was stopped and does not know it
    /// yet can do no harm. Transaction numbers begin anew when an ensemble is rebuilt from nothing.
    pub fn fencing_token(&self) -> i64 {
        self.hold().token()
    }

    /// The path of the lock's node.
    pub fn node(&self) -> &str {
        self.hold().node()
    }

    /// The session by which the lock is held.
    pub fn session(&self) -> &Session {
        self.hold().session()
    }

    /// Which guard of its owner this one was when it was made, counting from 1: that one acquired
    /// the lock, the others re-entered. It does not change when others go.
    pub fn depth(&self) -> usize {
        self.share.depth()
    }

    /// Starts a transaction that the server carries out only while the lock's node exists: it
    /// cannot happen after the lock was lost. It is sent once, in the session that holds the lock.
    pub fn transaction(&self) -> HeldTransaction {
        HeldTransaction::new(Arc::clone(self.hold()))
    }
}

impl fmt::Debug for MutexGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("node", &self.node())
            .field("epoch", &self.session().epoch())
            .field("depth", &self.depth())
            .field("is_held", &self.is_held())
            .finish()
    }
}
