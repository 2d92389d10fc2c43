//! What the types of the public interface can be used for: sent, shared, kept, not copied.
//!
//! Most of it is checked by the compiler; what can only be asked at run time is a test.

use std::error::Error;
use std::future::Future;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use zookeeper_recipes::framework::{
    Acl, Call, CleanupPlace, ClientBuilder, CreateMode, Created, Error as FrameworkError,
    ErrorKind, LostReason, Outcome, Pause, Session, SessionLost, Stat, StateWatch, Transaction,
    TransactionError, Watch, WeakClient,
};
use zookeeper_recipes::{
    Client, ConnectionState, ConnectionStateListener, Contender, Error as RecipeError,
    ExponentialBackoff, HeldTransaction, HoldEnd, InterProcessMutex, Lost, MutexGuard, Owner,
    OwnerScope, RetryPolicy, SessionEpoch, StateChange,
};

/// May be kept in a struct, moved to a task, and shared in an `Arc`.
const fn kept<T: Send + Sync + 'static>() {}

/// May be stored, passed on to several who wait for it, and boxed.
const fn error<T: Error + Send + Sync + Clone + 'static>() {}

const _: () = {
    kept::<Client>();
    kept::<ClientBuilder>();
    kept::<WeakClient>();
    kept::<Session>();
    kept::<SessionLost>();
    kept::<SessionEpoch>();
    kept::<ConnectionState>();
    kept::<StateChange>();
    kept::<StateWatch>();
    kept::<Watch>();
    kept::<Transaction>();
    kept::<Call<Stat>>();
    kept::<Pause>();
    kept::<CleanupPlace>();
    kept::<Created>();
    kept::<Acl>();
    kept::<ExponentialBackoff>();

    kept::<InterProcessMutex>();
    kept::<MutexGuard>();
    kept::<HeldTransaction>();
    kept::<Lost>();
    kept::<Owner>();
    kept::<Contender>();
    kept::<HoldEnd>();
    kept::<LostReason>();

    error::<FrameworkError>();
    error::<TransactionError>();
    error::<RecipeError>();
    kept::<(ErrorKind, Outcome)>();
};

/// Whoever composes retry policies or listeners keeps them as objects.
const _: fn(Box<dyn RetryPolicy>, Box<dyn ConnectionStateListener>) = |_, _| {};

/// Can be spawned.
fn spawned<T>(_: impl Future<Output = T> + Send + 'static) {}

/// Can be awaited in what is spawned.
fn awaited<T>(_: impl Future<Output = T> + Send) {}

/// Is compiled and never runs.
const _: fn(&InterProcessMutex, &Owner, Instant) = |mutex, owner, deadline| {
    awaited(mutex.acquire(owner));
    awaited(mutex.try_acquire(owner));
    awaited(mutex.acquire_timeout(owner, Duration::ZERO));
    awaited(mutex.acquire_until(owner, deadline));
    awaited(mutex.contenders());
};

const _: fn(MutexGuard, HeldTransaction) = |guard, transaction| {
    awaited(guard.while_held(async {}));
    spawned(guard.lost());
    spawned(guard.session().lost());
    spawned(transaction.commit());
    spawned(guard.release());
};

const _: fn(&Client, ClientBuilder) = |client, builder| {
    spawned(builder.connect());
    awaited(client.wait_connected(Duration::ZERO));
    awaited(client.close());
    awaited(client.exists("/"));
    awaited(client.watch_exists("/"));
    awaited(client.get_data("/"));
    awaited(client.watch_data("/"));
    awaited(client.set_data("/", "", None));
    awaited(client.get_children("/"));
    awaited(client.watch_children("/"));
    awaited(client.sync("/"));
    spawned(client.create("/a").mode(CreateMode::Ephemeral).protected().into_future());
    spawned(client.delete("/a").guaranteed().into_future());
    spawned(client.transaction().commit());
    spawned(client.pause(Duration::ZERO));
};

const _: fn(&Session, StateWatch, Watch) = |session, mut states, watch| {
    spawned(session.create("/a", b"", CreateMode::Persistent, Acl::anyone_all()));
    spawned(session.get_data("/"));
    awaited(states.changed());
    spawned(watch.fired());
};

/// A scope can be sent where its future can, and a future that cannot may still have one.
const _: fn(Owner) = |owner| {
    spawned(owner.scope(async {}));
    kept::<OwnerScope<std::future::Ready<()>>>();
    let _unsendable = owner.scope(async {
        let local = std::rc::Rc::new(());
        std::future::ready(()).await;
        drop(local);
    });
};

/// Asks for a type whether it can be cloned: the method of its own is found first where it exists.
struct Probe<T>(PhantomData<T>);

impl<T: Clone> Probe<T> {
    fn is_clone(&self) -> bool {
        true
    }
}

trait Otherwise {
    fn is_clone(&self) -> bool;
}

impl<T> Otherwise for &Probe<T> {
    fn is_clone(&self) -> bool {
        false
    }
}

macro_rules! is_clone {
    ($type:ty) => {
        (&Probe::<$type>(PhantomData)).is_clone()
    };
}

#[test]
fn what_stands_for_a_hold_or_a_duty_cannot_be_cloned() {
    assert!(!is_clone!(MutexGuard));
    assert!(!is_clone!(HeldTransaction));
    assert!(!is_clone!(CleanupPlace));
}

#[test]
fn handles_can_be_cloned() {
    assert!(is_clone!(Client));
    assert!(is_clone!(ClientBuilder));
    assert!(is_clone!(WeakClient));
    assert!(is_clone!(Session));
    assert!(is_clone!(InterProcessMutex));
    assert!(is_clone!(Owner));
}

#[test]
fn an_error_of_the_framework_becomes_one_of_the_recipes() {
    let failed = Client::builder("localhost:2181/no//chroot").start();
    let error = failed.expect_err("a bad chroot");
    let text = error.to_string();

    let of_recipes = RecipeError::from(error);

    assert_eq!((of_recipes.to_string(), of_recipes.outcome()), (text, Outcome::NotApplied));
    let source = of_recipes.source().expect("the framework's error");
    assert!(source.downcast_ref::<FrameworkError>().is_some());
    let boxed: Box<dyn Error + Send + Sync> = of_recipes.into();
    assert!(boxed.to_string().contains("/no//chroot"));
}
