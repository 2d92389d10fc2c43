//! Who holds a lock: the identity by which it is re-entered.
//!
//! Java's locks know their owner by its thread. An async task has no such identity, and its id
//! cannot stand in for one: two branches of one `join!` share it, and both would "re-enter". So the
//! owner is a value, passed along like any other.

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static CURRENT: Owner;
}

/// An owner of locks; all clones are one owner.
///
/// Whoever acquires with an owner that holds the lock already re-enters: at once, without asking
/// the server. A different owner waits, in the same process and the same task too.
///
/// # Examples
///
/// Passed as an argument:
///
/// ```no_run
/// # use zookeeper_recipes::{InterProcessMutex, Owner, Result};
/// async fn transfer(mutex: &InterProcessMutex, owner: &Owner) -> Result<()> {
///     let guard = mutex.acquire(owner).await?;
///     audit(mutex, owner).await?;
///     guard.release().await
/// }
///
/// async fn audit(mutex: &InterProcessMutex, owner: &Owner) -> Result<()> {
///     let guard = mutex.acquire(owner).await?; // re-enters
///     guard.release().await
/// }
/// ```
///
/// Or ambient, for a whole call tree:
///
/// ```
/// # use zookeeper_recipes::Owner;
/// # async fn example() {
/// let owner = Owner::named("nightly-billing");
/// let inner = owner.scope(async { Owner::current() }).await;
/// assert_eq!(inner, Some(owner));
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example());
/// ```
#[derive(Clone)]
pub struct Owner(Arc<Inner>);

struct Inner {
    name: Option<Box<str>>,
}

impl Owner {
    /// A new owner, different from every other.
    #[expect(clippy::new_without_default, reason = "each owner is another; a default is not")]
    pub fn new() -> Self {
        Self(Arc::new(Inner { name: None }))
    }

    /// A new owner whose name shows in the data of its lock nodes, for whoever asks who holds them,
    /// unless the mutex or the client was given other data. Two owners of one name are two owners.
    pub fn named(name: impl Into<String>) -> Self {
        Self(Arc::new(Inner { name: Some(name.into().into_boxed_str()) }))
    }

    /// The name, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Runs a future with this owner as the [current](Self::current) one.
    ///
    /// The scope covers the future itself. It does not follow what the future hands to
    /// `tokio::spawn` or `spawn_blocking`.
    pub fn scope<F: Future>(&self, future: F) -> OwnerScope<F> {
        OwnerScope(Box::pin(CURRENT.scope(self.clone(), future)))
    }

    /// The owner of the innermost [`scope`](Self::scope) around the caller; `None` outside.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.debug_tuple("Owner").field(&name).finish(),
            None => f.debug_tuple("Owner").field(&Arc::as_ptr(&self.0)).finish(),
        }
    }
}

/// A future that runs with an owner in scope; made by [`Owner::scope`].
#[must_use = "futures do nothing unless they are polled"]
pub struct OwnerScope<F>(Pin<Box<TaskLocalFuture<Owner, F>>>);

impl<F: Future> Future for OwnerScope<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<F> fmt::Debug for OwnerScope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerScope").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn owners_of_one_name_differ_and_clones_do_not() {
        let owner = Owner::named("a");
        assert_eq!(owner, owner.clone());
        assert_ne!(owner, Owner::named("a"));
        assert_ne!(Owner::new(), Owner::new());
    }

    #[test]
    fn the_innermost_scope_counts_and_ends_with_its_future() {
        let (outer, inner) = (Owner::new(), Owner::new());
        block_on(outer.scope(async {
            assert_eq!(Owner::current(), Some(outer.clone()));
            inner.scope(async { assert_eq!(Owner::current(), Some(inner.clone())) }).await;
            assert_eq!(Owner::current(), Some(outer.clone()));
        }));
        assert_eq!(Owner::current(), None);
    }

    #[test]
    fn a_spawned_task_is_out_of_scope() {
        let owner = Owner::new();
        let seen = block_on(owner.scope(async { tokio::spawn(async { Owner::current() }).await }));
        assert_eq!(seen.unwrap(), None);
    }
}
