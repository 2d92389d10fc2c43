//! One server through all its states.

use std::time::Duration;

use zookeeper_testing::{ErrorKind, ZooKeeperServer};

use crate::raw::{CREATE, EXISTS, RawClient, create, server_has, wait_until, watch};

#[test]
fn a_server_keeps_port_and_data_over_stop_kill_and_restart() {
    let server = ZooKeeperServer::start().unwrap();
    let port = server.port();
    let first = server.pid().unwrap();
    let mut client = RawClient::connect(server.address()).unwrap();
    assert_eq!(client.call(CREATE, create("/kept")).unwrap(), 0);

    server.stop().unwrap();
    assert!(!server.is_serving());
    assert_eq!(server.pid(), None);
    assert_eq!(server.stop().unwrap_err().kind(), ErrorKind::NotRunning);

    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid().unwrap(), first);
    assert!(server_has(&server, "/kept"));

    server.kill().unwrap();
    server.restart().unwrap();
    assert!(server_has(&server, "/kept"));
    let second = server.pid().unwrap();
    server.restart().unwrap();
    assert_ne!(server.pid().unwrap(), second);
}

#[test]
fn a_paused_server_answers_nobody_until_it_is_resumed() {
    let server = ZooKeeperServer::start().unwrap();
    server.pause().unwrap();
    assert!(!server.is_serving());
    server.resume().unwrap();
    wait_until("the answer", || server.is_serving());
    server.pause().unwrap();
    server.stop().unwrap();
}

#[test]
fn numbers_of_the_server_are_read_by_name() {
    let server = ZooKeeperServer::start().unwrap();
    let nodes = server.znode_count().unwrap();
    let mut client = RawClient::connect(server.address()).unwrap();
    assert_eq!(client.call(CREATE, create("/counted")).unwrap(), 0);
    assert_eq!(client.call(EXISTS, watch("/counted")).unwrap(), 0);
    assert_eq!(server.znode_count().unwrap(), nodes + 1);
    assert_eq!(server.watch_count().unwrap(), 1);
    assert_eq!(server.ephemeral_count().unwrap(), 0);
    assert!(server.connection_count().unwrap() >= 1);
    let error = server.metric("zk_no_such_number").unwrap_err();
    assert!(error.to_string().contains("zk_no_such_number"));
}

#[test]
fn settings_reach_the_server() {
    let server = ZooKeeperServer::builder()
        .tick_time(Duration::from_millis(150))
        .config("maxSessionTimeout", "9000")
        .system_property("test.of.settings", "yes")
        .start()
        .unwrap();
    let conf = server.four_letter_word("conf").unwrap();
    for line in ["tickTime=150", "minSessionTimeout=300", "maxSessionTimeout=9000"] {
        assert!(conf.lines().any(|each| each == line), "{line} is missing in\n{conf}");
    }
    assert!(server.four_letter_word("envi").unwrap().contains("java.version"));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let error = ZooKeeperServer::builder().config("tickTime", "fast").start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StartFailed);
    assert!(error.to_string().contains("fast"), "{error}");

    let error = ZooKeeperServer::builder().tick_time(Duration::ZERO).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_second_process_is_refused() {
    let server = ZooKeeperServer::start().unwrap();
    assert_eq!(server.launch().unwrap_err().kind(), ErrorKind::Running);
    assert!(server.is_serving());
}
