//! Each fault that names an operation, on a real server.

use std::time::Duration;

use zookeeper_testing::Operation;

use crate::raw::{
    CREATE, EXISTS, GET_CHILDREN, PATIENCE, PING, RawClient, connected, create, exists, server_has,
    wait_until, watch,
};
use crate::{proxy, server};

/// How long something must stay away to be taken for held back.
const SILENCE: Duration = Duration::from_millis(150);

#[test]
fn a_lost_request_never_reaches_the_server() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let lost = proxy.lose_request(Operation::Create, 2);
    assert_eq!(client.call(CREATE, create("/lost-request-1")).unwrap(), 0);
    assert!(!lost.happened());

    client
        .send(&[(CREATE, create("/lost-request-2")), (CREATE, create("/lost-request-3"))])
        .unwrap();
    assert!(!client.ended_orderly());
    assert!(lost.wait_happened(PATIENCE));
    assert!(!server_has(server(), "/lost-request-2"));
    assert!(!server_has(server(), "/lost-request-3"));

    let mut again = connected(&proxy);
    assert_eq!(again.call(CREATE, create("/lost-request-2")).unwrap(), 0);
}

#[test]
fn a_lost_reply_leaves_what_the_server_did() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let lost = proxy.lose_reply(Operation::Create, 1);
    client.send(&[(EXISTS, exists("/")), (CREATE, create("/lost-reply"))]).unwrap();
    assert_eq!(client.receive().unwrap().error, 0);
    assert!(!client.ended_orderly());
    assert!(lost.happened());
    assert!(server_has(server(), "/lost-reply"));
    assert_eq!(proxy.counts().replies(Operation::Create), 1);
}

#[test]
fn a_reset_comes_after_its_request_and_before_the_next() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let reset = proxy.reset_after(Operation::Create, 1);
    client.send(&[(CREATE, create("/reset-after-1")), (CREATE, create("/reset-after-2"))]).unwrap();
    assert!(!client.ended_orderly());
    assert!(reset.happened());
    wait_until("the create", || server_has(server(), "/reset-after-1"));
    assert!(!server_has(server(), "/reset-after-2"));
}

#[test]
fn a_flight_is_cut_between_two_frames_of_one_segment() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let cut = proxy.cut_between(Operation::Create, Operation::GetChildren);

    let list = (GET_CHILDREN, watch("/"));
    client.send(&[list.clone(), (EXISTS, exists("/")), list.clone()]).unwrap();
    for _ in 0..3 {
        assert_eq!(client.receive().unwrap().error, 0);
    }
    assert!(!cut.happened());

    client.send(&[(CREATE, create("/cut-between")), (PING, Vec::new()), list]).unwrap();
    client.ended_orderly();
    assert!(cut.wait_happened(PATIENCE));
    wait_until("the create", || server_has(server(), "/cut-between"));
    assert_eq!(proxy.counts().replies(Operation::GetChildren), 2);
}

#[test]
fn a_held_request_goes_on_when_it_is_released() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let hold = proxy.hold_request(Operation::Create, 1);
    let xids = client.send(&[(CREATE, create("/held-1")), (CREATE, create("/held-2"))]).unwrap();
    assert!(hold.wait_happened(PATIENCE));
    assert!(!server_has(server(), "/held-1"));
    assert!(!server_has(server(), "/held-2"));

    hold.release();
    for xid in xids {
        let reply = client.receive().unwrap();
        assert_eq!((reply.xid, reply.error), (xid, 0));
    }
}

#[test]
fn a_held_reply_holds_what_is_behind_it_and_a_dropped_hold_resets() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let hold = proxy.hold_reply(Operation::Create, 1);
    client.send(&[(CREATE, create("/held-reply")), (EXISTS, exists("/"))]).unwrap();
    assert!(hold.wait_happened(PATIENCE));
    wait_until("the second reply", || proxy.counts().replies(Operation::Exists) == 1);
    assert!(server_has(server(), "/held-reply"));
    client.stream().set_read_timeout(Some(SILENCE)).unwrap();
    assert!(client.receive().is_err());

    drop(hold);
    client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(!client.ended_orderly());
}

#[test]
fn a_hold_that_is_dropped_before_it_happened_does_nothing() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    drop(proxy.hold_request(Operation::Exists, 1));
    assert!(client.exists("/").unwrap());
}

#[test]
fn the_connect_frame_and_pings_have_faults_too() {
    let proxy = proxy();
    let lost = proxy.lose_reply(Operation::Connect, 1);
    assert!(RawClient::connect(proxy.address()).is_err());
    assert!(lost.happened());

    let mut client = connected(&proxy);
    let lost = proxy.lose_request(Operation::Ping, 1);
    client.send(&[(PING, Vec::new())]).unwrap();
    assert!(!client.ended_orderly());
    assert!(lost.happened());
}

#[test]
fn a_fault_waits_no_longer_than_it_is_told() {
    let proxy = proxy();
    let fault = proxy.lose_request(Operation::Delete, 1);
    assert!(!fault.wait_happened(Duration::from_millis(10)));
}
