//! A waiter behind a predecessor of its own process neither sleeps for ever nor is granted too
//! early, whatever becomes of the predecessor.
//!
//! *Ours* are contenders of one client, as the tasks of one process are; *theirs* are those of
//! another, as those of another process.
//!
//! Serves Q1, Q2, Q3, Q11.

use std::sync::Arc;
use std::time::Duration;

use integration_tests::history::held_until;
use integration_tests::line::{Line, Waiter};
use integration_tests::{
    SHORT_SESSION, child_count, connect, eventually, proxy, server, soon, until,
};
use zookeeper_framework::{Acl, Client, ErrorKind, Permissions};
use zookeeper_recipes::{Error, HoldEnd, InterProcessMutex, MutexGuard};
use zookeeper_testing::{Direction, Fault, Operation, Proxy};

/// One lock, seen by two processes of which ours stands behind a proxy.
struct Scene {
    proxy: Proxy,
    line: Line,
    client: Client,
    ours: InterProcessMutex,
    theirs: InterProcessMutex,
}

impl Scene {
    async fn new(name: &str) -> Self {
        let proxy = proxy();
        let client = connect(&proxy.connect_string()).await;
        Self::of(name, proxy, client).await
    }

    /// Our session ends soon after it is cut off.
    async fn with_short_session(name: &str) -> Self {
        let proxy = proxy();
        let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
        let client = builder.connect().await.expect("the server is up");
        Self::of(name, proxy, client).await
    }

    async fn of(name: &str, proxy: Proxy, client: Client) -> Self {
        let line = Line::new(name).await;
        let ours = line.mutex(&client);
        let theirs = line.mutex(&connect(&server().connect_string()).await);
        Self { proxy, line, client, ours, theirs }
    }
}

impl Scene {
    /// Insists that a waiter still waits when its client has been told all there is to tell.
    async fn assert_waits(&self, waiter: &Waiter, client: &InterProcessMutex) {
        for _ in 0..2 {
            client.contenders().await.expect("connected");
        }
        assert!(waiter.is_waiting(), "{} was granted out of turn", waiter.node);
    }

    async fn assert_theirs_waits(&self, waiter: &Waiter) {
        self.assert_waits(waiter, &self.theirs).await;
    }

    async fn assert_ours_waits(&self, waiter: &Waiter) {
        self.assert_waits(waiter, &self.ours).await;
    }
}

fn epoch(guard: &MutexGuard) -> u64 {
    guard.session().epoch().get()
}

/// Our holder's delete meets the fault, and nothing can be sent again before its heir is granted.
async fn a_faulty_delete(name: &str, arm: fn(&Proxy) -> Fault, left: usize) {
    let scene = Scene::new(name).await;
    let holder = scene.line.hold(&scene.ours).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;
    let fault = arm(&scene.proxy);
    scene.proxy.refuse();

    let release = tokio::spawn(holder.release());
    let heir = heir.granted().await;
    until("the delete is lost", || fault.happened()).await;
    assert_eq!(scene.line.nodes().await.len(), left);
    scene.assert_theirs_waits(&other).await;
    assert!(heir.is_held());

    scene.proxy.accept();
    soon("a release ends", release).await.expect("no panic").expect("released");
    scene.line.becomes(&[heir.node(), &other.node]).await;
    scene.assert_theirs_waits(&other).await;
    assert!(heir.is_held());
    heir.release().await.expect("released");
    let other = other.granted().await;
    scene.line.becomes(&[other.node()]).await;
}

#[tokio::test]
async fn a_predecessor_whose_delete_is_lost_holds_up_only_others() {
    a_faulty_delete("lost-delete", |proxy| proxy.lose_request(Operation::Delete, 1), 3).await;
}

#[tokio::test]
async fn a_predecessor_whose_delete_is_not_answered_holds_up_nobody() {
    a_faulty_delete("lost-answer", |proxy| proxy.lose_reply(Operation::Delete, 1), 2).await;
}

#[tokio::test]
async fn a_predecessor_whose_delete_is_late_holds_up_only_others() {
    let scene = Scene::new("late-delete").await;
    let holder = scene.line.hold(&scene.ours).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;
    let late = scene.proxy.hold_request(Operation::Delete, 1);

    let release = tokio::spawn(holder.release());
    let heir = heir.granted().await;
    until("the delete is under way", || late.happened()).await;
    assert!(heir.is_held());

    // Its own delete stands behind the late one.
    let second_release = tokio::spawn(heir.release());
    scene.assert_theirs_waits(&other).await;
    assert_eq!(scene.line.nodes().await.len(), 3);
    late.release();
    soon("a release ends", release).await.expect("no panic").expect("released");
    soon("a release ends", second_release).await.expect("no panic").expect("released");
    scene.line.becomes(&[other.granted().await.node()]).await;
}

#[tokio::test]
async fn predecessors_whose_delete_is_refused_hold_up_only_others_until_the_session_ends() {
    let scene = Scene::new("refused-delete").await;
    let permissions = Permissions::READ | Permissions::CREATE;
    let without_delete = vec![Acl::new(permissions, "world", "anyone")];
    let create = scene.line.onlooker.create(scene.line.path()).acl(without_delete);
    create.with_parents().await.expect("the path is new");
    let holder = scene.line.hold(&scene.ours).await;
    let quitter = scene.line.enter(&scene.ours).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;

    quitter.cancel().await;
    assert_refused(holder).await;
    let heir = heir.granted().await;
    assert_refused(heir).await;
    assert_eq!(scene.line.nodes().await.len(), 4);
    scene.assert_theirs_waits(&other).await;

    scene.client.close().await;
    scene.line.becomes(&[other.granted().await.node()]).await;
}

async fn assert_refused(guard: MutexGuard) {
    let result = guard.release().await;
    let is_refused =
        matches!(&result, Err(Error::Framework(error)) if error.kind() == ErrorKind::NoAuth);
    assert!(is_refused, "{result:?}");
}

/// Who stands at the head.
#[derive(Clone, Copy, Debug)]
enum Head {
    Ours,
    Theirs,
}

/// What becomes of the first waiter.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    Cancels,
    TimesOut,
}

/// Behind the head stand two of ours, of which the first leaves, and then one of theirs.
async fn a_first_waiter_that_leaves(head: Head, leaving: Leaving) {
    let scene = Scene::new("leaving-waiter").await;
    let holder = match head {
        Head::Ours => scene.line.hold(&scene.ours).await,
        Head::Theirs => scene.line.hold(&scene.theirs).await,
    };
    let timeout = match leaving {
        Leaving::Cancels => Duration::MAX,
        Leaving::TimesOut => Duration::from_secs(1),
    };
    let quitter = scene.line.enter_for(&scene.ours, timeout).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;

    match leaving {
        Leaving::Cancels => quitter.cancel().await,
        Leaving::TimesOut => {
            let error = quitter.refused().await;
            assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        }
    }
    scene.line.becomes(&[holder.node(), &heir.node, &other.node]).await;
    scene.assert_ours_waits(&heir).await;
    assert!(holder.is_held());
    holder.release().await.expect("released");
    let heir = heir.granted().await;
    scene.assert_theirs_waits(&other).await;
    heir.release().await.expect("released");
    scene.line.becomes(&[other.granted().await.node()]).await;
}

#[tokio::test]
async fn a_waiter_is_granted_when_the_one_between_it_and_our_holder_cancels() {
    a_first_waiter_that_leaves(Head::Ours, Leaving::Cancels).await;
}

#[tokio::test]
async fn a_waiter_is_granted_when_the_one_between_it_and_our_holder_times_out() {
    a_first_waiter_that_leaves(Head::Ours, Leaving::TimesOut).await;
}

#[tokio::test]
async fn a_waiter_is_granted_when_the_one_that_watched_for_it_cancels() {
    a_first_waiter_that_leaves(Head::Theirs, Leaving::Cancels).await;
}

#[tokio::test]
async fn a_waiter_is_granted_when_the_one_that_watched_for_it_times_out() {
    a_first_waiter_that_leaves(Head::Theirs, Leaving::TimesOut).await;
}

#[tokio::test]
async fn a_waiter_whose_node_is_removed_behind_our_own_holder_learns_it_at_its_next_request() {
    let scene = Scene::new("removed-behind-ours").await;
    let holder = scene.line.hold(&scene.ours).await;
    let victim = scene.line.enter(&scene.ours).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;

    scene.line.onlooker.delete(&victim.node).await.expect("it is there");
    holder.release().await.expect("released");
    let victim = victim.granted().await;
    scene.assert_ours_waits(&heir).await;
    scene.assert_theirs_waits(&other).await;
    let result = victim.release().await;
    let is_lost = matches!(result, Err(Error::Lost { reason: HoldEnd::NodeDeleted, .. }));
    assert!(is_lost, "{result:?}");
    let heir = heir.granted().await;
    scene.assert_theirs_waits(&other).await;
    heir.release().await.expect("released");
    scene.line.becomes(&[other.granted().await.node()]).await;
}

#[tokio::test]
async fn a_waiter_whose_node_is_removed_behind_another_process_starts_anew_at_the_end() {
    let scene = Scene::new("removed-behind-theirs").await;
    let holder = scene.line.hold(&scene.theirs).await;
    let victim = scene.line.enter(&scene.ours).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;

    scene.line.onlooker.delete(&victim.node).await.expect("it is there");
    eventually("it has a new node behind the others", async || {
        let nodes = scene.line.nodes().await;
        nodes.len() == 4 && nodes[1] == heir.node && nodes[2] == other.node
    })
    .await;
    holder.release().await.expect("released");
    heir.granted().await.release().await.expect("released");
    other.granted().await.release().await.expect("released");
    let anew = victim.granted().await;
    scene.line.becomes(&[anew.node()]).await;
}

#[tokio::test]
async fn a_foreign_node_between_two_of_ours_gets_its_turn() {
    let scene = Scene::new("between").await;
    let holder = scene.line.hold(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;
    let heir = scene.line.enter(&scene.ours).await;

    holder.release().await.expect("released");
    let other = other.granted().await;
    scene.line.becomes(&[other.node(), &heir.node]).await;
    scene.assert_ours_waits(&heir).await;
    other.release().await.expect("released");
    scene.line.becomes(&[heir.granted().await.node()]).await;
}

#[tokio::test]
async fn a_foreign_node_that_left_from_between_two_of_ours_holds_up_nobody() {
    let scene = Scene::new("left-between").await;
    let holder = scene.line.hold(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;
    let heir = scene.line.enter(&scene.ours).await;

    other.cancel().await;
    scene.line.becomes(&[holder.node(), &heir.node]).await;
    scene.assert_ours_waits(&heir).await;
    holder.release().await.expect("released");
    scene.line.becomes(&[heir.granted().await.node()]).await;
}

#[tokio::test]
async fn nodes_of_our_older_session_are_waited_for_like_foreign_ones() {
    let scene = Scene::with_short_session("older-session").await;
    let holder = scene.line.hold(&scene.ours).await;
    let waiter = scene.line.enter(&scene.ours).await;
    let (old_holder, old_waiter) = (holder.node().to_owned(), waiter.node.clone());

    // The server goes on to hear us, so it keeps the session that is over here. Should we get round
    // to closing it, that is held up.
    scene.proxy.stall(Direction::Down);
    soon("the session is over here", holder.session().lost()).await;
    let goodbye = scene.proxy.hold_request(Operation::CloseSession, 1);
    scene.proxy.resume();
    until("a new session", || scene.client.state().is_connected()).await;
    becomes_longer(&scene.line, &[&old_holder, &old_waiter]).await;
    scene.assert_ours_waits(&waiter).await;
    assert!(waiter.is_waiting() && !holder.is_held());

    drop(goodbye);
    let waiter = waiter.granted().await;
    assert_eq!(scene.line.nodes().await, [waiter.node()]);
    assert_eq!(epoch(&waiter), 2);
}

/// Waits until one more node stands behind exactly these.
async fn becomes_longer(line: &Line, old: &[&str]) {
    eventually(
        "a new node behind the old ones",
        async || matches!(&line.nodes().await[..], [first @ .., _] if first == old),
    )
    .await;
}

#[tokio::test]
async fn a_hand_off_in_a_session_that_ends_is_lost_before_the_next_contender_is_granted() {
    let scene = Scene::with_short_session("dying-hand-off").await;
    let holder = scene.line.hold(&scene.ours).await;
    let heir = scene.line.enter(&scene.ours).await;
    let other = scene.line.enter(&scene.theirs).await;

    scene.proxy.stall(Direction::Both);
    let release = tokio::spawn(holder.release());
    let heir = Arc::new(heir.granted().await);
    assert!(heir.is_held() && other.is_waiting());
    assert_eq!(epoch(&heir), 1);
    let watched = Arc::clone(&heir);
    let held_until = held_until(move || watched.is_held());

    let reason = soon("the hold is lost", heir.lost()).await;
    assert!(matches!(reason, HoldEnd::SessionLost(_)), "{reason}");
    let released = soon("a release ends", release).await.expect("no panic");
    assert!(released.is_err(), "nobody has answered it");
    let (other, granted_at) = other.granted_at().await;
    assert!(held_until.join().expect("it ends") < granted_at, "two holders");
    scene.line.becomes(&[other.node()]).await;
    let released = Arc::into_inner(heir).expect("nobody watches it any more").release().await;
    let is_lost = matches!(released, Err(Error::Lost { reason: HoldEnd::SessionLost(_), .. }));
    assert!(is_lost, "{released:?}");
}

#[tokio::test]
async fn a_release_after_the_end_of_the_session_hands_nothing_on() {
    let scene = Scene::with_short_session("dead-hand-off").await;
    let holder = scene.line.hold(&scene.ours).await;
    let waiter = scene.line.enter(&scene.ours).await;
    let (old_node, other) = (waiter.node.clone(), scene.line.enter(&scene.theirs).await);

    scene.proxy.stall(Direction::Both);
    soon("the hold is lost", holder.lost()).await;
    let released = holder.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    assert!(waiter.is_waiting());
    let other = other.granted().await;
    assert!(waiter.is_waiting());

    scene.proxy.resume();
    child_count(&scene.line.onlooker, scene.line.path(), 2).await;
    assert!(waiter.is_waiting());
    other.release().await.expect("released");
    let waiter = waiter.granted().await;
    assert_eq!(epoch(&waiter), 2);
    assert_ne!(waiter.node(), old_node);
    scene.line.becomes(&[waiter.node()]).await;
}
