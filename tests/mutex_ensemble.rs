//! Sessions and locks on an ensemble: a follower that is cut off from its leader goes on to answer
//! reads and pings for seconds, while the leader has long expired its clients' sessions.
//!
//! Serves C2, H1, Q1, Q8.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use integration_tests::history::{held_until, now};
use integration_tests::{LONG_SESSION, SHORT_SESSION, soon, unique};
use tokio::time::timeout;
use zookeeper_framework::{Client, Session};
use zookeeper_recipes::{InterProcessMutex, Owner};
use zookeeper_testing::{ZooKeeperCluster, ZooKeeperServer};

/// How many ticks of 200 ms a follower serves without hearing of its leader: several times as long
/// as a session lives.
const SYNC_LIMIT: &str = "50";

struct Ensemble {
    cluster: ZooKeeperCluster,
    leader: usize,
    /// To be cut off.
    follower: usize,
    /// To be left in peace.
    healthy: usize,
}

/// The ensemble that all tests here share.
fn ensemble() -> &'static Ensemble {
    static ENSEMBLE: OnceLock<Ensemble> = OnceLock::new();
    ENSEMBLE.get_or_init(|| {
        let builder = ZooKeeperCluster::builder(3).proxied_quorum().config("syncLimit", SYNC_LIMIT);
        let cluster = match builder.start() {
            Ok(cluster) => cluster,
            Err(error) => panic!("{error}\nrun scripts/test, which installs what is missing"),
        };
        let leader = cluster.leader().expect("all servers serve");
        let (follower, healthy) = ((leader + 1) % 3, (leader + 2) % 3);
        Ensemble { cluster, leader, follower, healthy }
    })
}

/// A client of this server and no other.
async fn client_of(server: &ZooKeeperServer, session_timeout: Duration) -> Client {
    let builder = Client::builder(server.connect_string()).session_timeout(session_timeout);
    builder.connect().await.expect("the server is up")
}

#[tokio::test]
async fn a_holder_on_a_follower_that_is_cut_off_has_lost_before_another_one_is_granted() {
    let Ensemble { cluster, leader, follower, .. } = ensemble();
    let path = unique("partition");
    let inside = client_of(cluster.server(*follower), SHORT_SESSION).await;
    let outside = client_of(cluster.server(*leader), SHORT_SESSION).await;
    let reader = client_of(cluster.server(*follower), LONG_SESSION).await;
    let holder = InterProcessMutex::new(&inside, &path).expect("the path is good");
    let holder = Arc::new(holder.acquire(&Owner::new()).await.expect("granted"));
    let watched = Arc::clone(&holder);
    let held_until = held_until(move || watched.is_held());
    // A holder that believed in answers would hold on for a whole timeout from the last one.
    let answers = tokio::spawn(read_on(holder.session().clone()));

    cluster.isolate(*follower);
    let isolated = now();
    let contender = InterProcessMutex::new(&outside, &path).expect("the path is good");
    let contender = soon("a grant", contender.acquire(&Owner::new())).await.expect("granted");
    let granted_at = now();
    let answer = soon("an answer", reader.get_data("/")).await;
    answer.expect("the follower goes on to answer");
    assert!(held_until.join().expect("it ends") < granted_at, "two holders");
    assert!(contender.is_held() && !holder.is_held());
    assert!(contender.fencing_token() > holder.fencing_token());
    let last_answer = soon("the answers end", answers).await.expect("no panic");
    assert!(last_answer > isolated, "it was not answered by a follower that is cut off");

    contender.release().await.expect("released");
    cluster.heal(*follower);
    cluster.wait_until_all_serve().expect("healed");
}

/// Reads as long as it is answered, and gives the moment of the last answer.
async fn read_on(session: Session) -> u64 {
    let mut last = 0;
    while session.get_data("/").await.is_ok() {
        last = now();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    last
}

#[tokio::test]
async fn an_idle_holder_on_a_healthy_follower_holds_on() {
    let Ensemble { cluster, healthy, .. } = ensemble();
    let client = client_of(cluster.server(*healthy), SHORT_SESSION).await;
    let mutex = InterProcessMutex::new(&client, &unique("idle")).expect("the path is good");
    let guard = mutex.acquire(&Owner::new()).await.expect("granted");

    let mut states = client.watch_state();
    let change = timeout(5 * SHORT_SESSION, states.changed()).await;
    assert!(change.is_err(), "the state became {change:?}");
    assert!(guard.is_held());
    assert_eq!(client.state().to_string(), "Connected(1)");
    guard.release().await.expect("released");
}
