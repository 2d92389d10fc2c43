//! Ensembles, and partitions between their servers.

use std::time::Duration;

use zookeeper_testing::{ErrorKind, ZooKeeperCluster};

use crate::raw::{CREATE, RawClient, create, server_has, wait_until};

#[test]
fn an_ensemble_elects_one_leader_and_another_when_that_one_is_killed() {
    let cluster = ZooKeeperCluster::start(3).unwrap();
    let leader = cluster.leader().unwrap();
    let mut client = RawClient::connect(cluster.server(leader).address()).unwrap();
    assert_eq!(client.call(CREATE, create("/before")).unwrap(), 0);

    cluster.server(leader).kill().unwrap();
    let next = cluster.wait_for_leader_other_than(leader).unwrap();
    cluster.wait_for_quorum().unwrap();
    assert!(server_has(cluster.server(next), "/before"));

    cluster.server(leader).restart().unwrap();
    cluster.wait_until_all_serve().unwrap();
    assert_eq!(cluster.connect_string().split(',').count(), 3);
}

#[test]
fn an_isolated_follower_stops_to_serve_and_catches_up() {
    let cluster = ZooKeeperCluster::builder(3).proxied_quorum().start().unwrap();
    let leader = cluster.leader().unwrap();
    for follower in (0..3).filter(|index| *index != leader) {
        cluster.isolate(follower);
        let path = format!("/unseen-by-{follower}");
        let mut client = RawClient::connect(cluster.server(leader).address()).unwrap();
        assert_eq!(client.call(CREATE, create(&path)).unwrap(), 0);
        wait_until("the end of service", || !cluster.server(follower).is_serving());
        assert_eq!(cluster.leader(), Some(leader));

        cluster.heal(follower);
        cluster.wait_until_all_serve().unwrap();
        assert!(server_has(cluster.server(follower), &path));
    }
}

#[test]
fn an_isolated_leader_is_replaced_and_comes_back_as_a_follower() {
    let cluster = ZooKeeperCluster::builder(3).proxied_quorum().start().unwrap();
    let mut leader = cluster.leader().unwrap();
    for round in 0..3 {
        cluster.isolate(leader);
        let next = cluster.wait_for_leader_other_than(leader).unwrap();
        wait_until("the end of service", || !cluster.server(leader).is_serving());
        let path = format!("/round-{round}");
        let mut client = RawClient::connect(cluster.server(next).address()).unwrap();
        assert_eq!(client.call(CREATE, create(&path)).unwrap(), 0);

        cluster.heal(leader);
        cluster.wait_until_all_serve().unwrap();
        assert_eq!(cluster.leader(), Some(next));
        assert!(server_has(cluster.server(leader), &path));
        leader = next;
    }
}

#[test]
fn a_cluster_of_a_size_that_makes_no_sense_is_refused() {
    let error = ZooKeeperCluster::start(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains('1'));
    let bad = ZooKeeperCluster::builder(3).tick_time(Duration::ZERO).start();
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidArgument);
}
