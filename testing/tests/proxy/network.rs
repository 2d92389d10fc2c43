//! The state of the network, the counters, and what delays do to clients.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use zookeeper_testing::{Direction, Operation, Proxy};

use crate::raw::{
    CLOSE, CREATE, EXISTS, PATIENCE, PING, RawClient, SET_DATA, connected, create, exists,
    server_has, set_data, wait_until, watch,
};
use crate::{proxy, server};

const SILENCE: Duration = Duration::from_millis(150);
const ONE_WAY: Duration = Duration::from_millis(25);
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// The shortest of five tries: the bound from below holds for each.
fn shortest(mut work: impl FnMut()) -> Duration {
    (0..5).map(|_| duration(&mut work)).min().unwrap()
}

/// Tries until one takes less than `limit`. A busy machine can make any of them slower, and none of
/// them quicker than the network is.
fn can_take_less_than(limit: Duration, mut work: impl FnMut()) {
    wait_until("a try that is quick enough", || duration(&mut work) < limit);
}

fn duration(work: &mut impl FnMut()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

#[test]
fn a_delay_is_paid_once_for_all_that_is_sent_together() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    proxy.delay(ONE_WAY);
    let single = shortest(|| assert!(client.exists("/").unwrap()));
    assert!(single >= ROUND_TRIP, "{single:?}");

    let requests = vec![(EXISTS, exists("/")); 50];
    can_take_less_than(2 * ROUND_TRIP, || {
        let xids = client.send(&requests).unwrap();
        for xid in xids {
            assert_eq!(client.receive().unwrap().xid, xid);
        }
    });
}

#[test]
fn each_direction_has_its_own_delay() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    for set in [Proxy::delay_up, Proxy::delay_down] {
        proxy.delay(Duration::ZERO);
        set(&proxy, ROUND_TRIP);
        let mut single = || assert!(client.exists("/").unwrap());
        assert!(shortest(&mut single) >= ROUND_TRIP);
        can_take_less_than(2 * ROUND_TRIP, single);
    }
}

/// Two small writes without an answer in between, as a client makes them that sends a create and a
/// list back to back.
fn two_writes(client: &mut RawClient) {
    client.send(&[(EXISTS, exists("/"))]).unwrap();
    client.send(&[(EXISTS, exists("/"))]).unwrap();
    client.receive().unwrap();
    client.receive().unwrap();
}

#[test]
fn a_client_with_nagles_algorithm_pays_for_it() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    proxy.delay(ONE_WAY);
    can_take_less_than(ROUND_TRIP + Duration::from_millis(20), || two_writes(&mut client));

    client.stream().set_nodelay(false).unwrap();
    let with = shortest(|| two_writes(&mut client));
    assert!(with > ROUND_TRIP + Duration::from_millis(30), "{with:?}");
}

#[test]
fn a_cut_resets_every_connection_and_lets_new_ones_in() {
    let proxy = proxy();
    let mut clients = [connected(&proxy), connected(&proxy)];
    assert_eq!(proxy.open_connections(), 2);
    proxy.cut();
    assert_eq!(proxy.open_connections(), 0);
    for client in &mut clients {
        assert!(!client.ended_orderly());
    }
    assert!(connected(&proxy).exists("/").unwrap());
}

#[test]
fn a_graceful_close_ends_every_connection_in_order() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let reader = std::thread::spawn(move || client.ended_orderly());
    proxy.close_gracefully();
    assert!(reader.join().unwrap());
    assert_eq!(proxy.open_connections(), 0);
}

#[test]
fn a_close_of_the_client_reaches_the_server_and_comes_back() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    assert_eq!(client.call(CLOSE, Vec::new()).unwrap(), 0);
    assert!(client.ended_orderly());
    drop(client);
    wait_until("the end of the connection", || proxy.open_connections() == 0);
}

#[test]
fn a_stalled_request_is_delivered_when_the_network_is_back() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    proxy.stall(Direction::Up);
    client.send(&[(CREATE, create("/stalled-up"))]).unwrap();
    wait_until("the arrival", || proxy.counts().requests(Operation::Create) == 1);
    assert!(!server_has(server(), "/stalled-up"));
    proxy.resume();
    assert_eq!(client.receive().unwrap().error, 0);
}

#[test]
fn a_stall_down_keeps_only_the_reply_back() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    proxy.stall(Direction::Down);
    client.send(&[(CREATE, create("/stalled-down"))]).unwrap();
    wait_until("the create", || server_has(server(), "/stalled-down"));
    client.stream().set_read_timeout(Some(SILENCE)).unwrap();
    assert!(client.receive().is_err());
    client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
    proxy.resume();
    assert_eq!(client.receive().unwrap().error, 0);
}

#[test]
fn a_connection_made_while_all_is_stalled_gets_no_answer_before_the_end_of_it() {
    let proxy = proxy();
    proxy.stall(Direction::Both);
    let mut client = RawClient::dial(proxy.address()).unwrap();
    client.stream().set_read_timeout(Some(SILENCE)).unwrap();
    assert!(client.open_session().is_err());
    client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
    proxy.resume();
    wait_until("the session", || proxy.counts().replies(Operation::Connect) == 1);
}

#[test]
fn refused_connections_are_reset_and_old_ones_stay() {
    let proxy = proxy();
    let mut old = connected(&proxy);
    proxy.refuse();
    assert!(RawClient::connect(proxy.address()).is_err());
    assert!(old.exists("/").unwrap());
    assert_eq!(proxy.counts().connections(), 1);
    proxy.accept();
    assert!(connected(&proxy).exists("/").unwrap());
}

#[test]
fn a_new_target_is_for_new_connections() {
    let nobody = Proxy::start(server().address()).unwrap();
    nobody.refuse();
    let proxy = Proxy::start(nobody.address()).unwrap();
    assert!(RawClient::connect(proxy.address()).is_err());
    proxy.retarget(server().address());
    assert!(connected(&proxy).exists("/").unwrap());
}

#[test]
fn counters_know_operations_and_notifications() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let before = proxy.counts();
    assert_eq!(before.connections(), 1);
    assert_eq!(before.requests(Operation::Connect), 1);

    assert_eq!(client.call(CREATE, create("/counted")).unwrap(), 0);
    assert_eq!(client.call(EXISTS, watch("/counted")).unwrap(), 0);
    client.send(&[(PING, Vec::new())]).unwrap();
    assert_eq!(client.receive().unwrap().xid, -2);
    client.send(&[(SET_DATA, set_data("/counted", b"x"))]).unwrap();
    assert_eq!(client.receive().unwrap().xid, -1);
    assert_eq!(client.receive().unwrap().error, 0);

    let counts = proxy.counts() - before;
    assert_eq!(counts.requests(Operation::Create), 1);
    assert_eq!(counts.replies(Operation::Create), 1);
    assert_eq!(counts.requests(Operation::Ping), 1);
    assert_eq!(counts.replies(Operation::Ping), 1);
    assert_eq!(counts.notifications(), 1);
    assert_eq!(counts.total_requests(), 3);
    assert_eq!(counts.total_requests_except(&[Operation::Exists, Operation::SetData]), 1);
    assert_eq!(counts.request_bytes(Operation::Exists), 4 + 8 + 4 + 8 + 1);
    assert!(counts.reply_bytes(Operation::Exists) > 16);

    proxy.reset_counts();
    assert_eq!(proxy.counts().total_request_bytes(), 0);
}

#[test]
fn a_million_bytes_get_through_whole() {
    let proxy = proxy();
    proxy.delay(Duration::from_millis(1));
    let mut client = connected(&proxy);
    assert_eq!(client.call(CREATE, create("/large")).unwrap(), 0);
    let data = vec![b'x'; 1_000_000];
    for _ in 0..5 {
        assert_eq!(client.call(SET_DATA, set_data("/large", &data)).unwrap(), 0);
    }
    assert!(proxy.counts().request_bytes(Operation::SetData) > 5_000_000);
}

#[test]
fn a_dropped_proxy_ends_its_connections() {
    let proxy = proxy();
    let mut client = connected(&proxy);
    let address = proxy.address();
    drop(proxy);
    client.ended_orderly();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_raw_proxy_carries_bytes_that_are_no_frames() {
    let raw = Proxy::start_raw(server().address()).unwrap();
    let fault = raw.lose_request(Operation::Create, 1);
    let mut client = connected(&raw);
    assert_eq!(client.call(CREATE, create("/raw")).unwrap(), 0);
    assert!(!fault.happened());
    raw.cut();
    assert!(client.stream().write_all(b"x").is_err() || !client.ended_orderly());
}
