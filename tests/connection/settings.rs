//! Settings that cannot work: an error that names the value, in time, and nothing left behind.
//! Serves Q10.

use std::time::{Duration, Instant};

use integration_tests::{LONG_SESSION, at_once, proxy, server, soon};
use zookeeper_framework::{Acl, Client, ClientBuilder, CloseOutcome, Error, ErrorKind, Outcome};
use zookeeper_testing::{Direction, ZooKeeperServer};

/// What is refused before anything is sent: by `start`, and by `connect` in its first poll.
fn refusal(builder: &ClientBuilder) -> Error {
    let error = builder.clone().start().expect_err("the setting cannot work");
    let connected = at_once(builder.clone().connect()).expect("it is refused at once");
    let same = connected.expect_err("the setting cannot work");
    assert_eq!(error.to_string(), same.to_string());
    assert_eq!(error.outcome(), Outcome::NotApplied);
    assert!(!error.to_string().contains(['\n', '\0']), "{error:?} is more than a line");
    error
}

#[test]
fn a_connect_string_that_cannot_work_is_named() {
    let strings = [
        "",
        " ",
        ",",
        "/app",
        "zk:0",
        "zk:65536",
        "zk:-1",
        "zk:port",
        "zk:",
        ":2181",
        "zk\0:2181",
        "zk one:2181",
        "::1:2181",
        "zk:2181,",
        "zk:2181/app/",
        "zk:2181//app",
        "zk:2181/a/../b",
        "zk:2181/./a",
        "zk:2181/a\0b",
        "zk:2181/a\nb",
    ];
    for string in strings {
        let error = refusal(&Client::builder(string));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(&format!("{string:?}")), "{error} does not name it");
    }
}

#[test]
fn a_timeout_that_cannot_work_is_named() {
    let too_long = Duration::from_millis(i32::MAX as u64 + 1);
    let sessions = [
        (Duration::ZERO, "0ns"),
        (Duration::from_micros(999), "999µs"),
        (too_long, "2147483.648s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ];
    let builder = || Client::builder("127.0.0.1:1");
    for (timeout, value) in sessions {
        let error = refusal(&builder().session_timeout(timeout));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = error.to_string();
        assert!(text.contains(&format!("session_timeout is {value}")), "{text}");
    }
    for timeout in [Duration::ZERO, Duration::from_micros(999)] {
        let error = refusal(&builder().connection_timeout(timeout));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = error.to_string();
        assert!(text.contains(&format!("connection_timeout is {timeout:?}")), "{text}");
    }
}

#[test]
fn access_and_credentials_that_cannot_work_are_named() {
    let builder = || Client::builder("127.0.0.1:1");
    let error = refusal(&builder().default_acl(Vec::<Acl>::new()));
    assert_eq!(error.kind(), ErrorKind::InvalidAcl);
    assert!(error.to_string().contains("default_acl"), "{error}");
    let error = refusal(&builder().auth("", "ann:secret"));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("scheme \"\""), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    let debug = format!("{:?}", builder().auth_digest("ann", "secret"));
    assert!(debug.contains("digest") && !debug.contains("secret"), "{debug}");
}

/// The error of a `connect` that waits in vain for `timeout`.
async fn in_vain(servers: &str, timeout: Duration) -> Error {
    let start = Instant::now();
    let builder = Client::builder(servers).session_timeout(LONG_SESSION);
    let error = builder.connection_timeout(timeout).connect().await.unwrap_err();
    let waited = start.elapsed();
    assert!(waited >= timeout && waited < timeout + Duration::from_secs(5), "{waited:?}");
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::NotConnected, Outcome::NotApplied));
    error
}

#[tokio::test]
async fn a_server_that_is_down_is_named_with_the_reason() {
    let server = ZooKeeperServer::start().unwrap();
    server.stop().unwrap();
    let error = in_vain(&server.connect_string(), Duration::from_secs(1)).await;
    let text = error.to_string();
    assert!(text.contains(&server.connect_string()), "{text} does not name the server");
    assert!(text.contains("Connection refused"), "{text} does not give the reason");
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test]
async fn each_of_several_servers_is_named_with_its_reason() {
    let (refusing, silent) = (proxy(), proxy());
    refusing.refuse();
    silent.stall(Direction::Both);
    let servers = format!("{},{}", refusing.connect_string(), silent.connect_string());
    let text = in_vain(&servers, Duration::from_millis(300)).await.to_string();
    for server in [refusing, silent] {
        assert!(text.contains(&server.connect_string()), "{text}");
    }
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_named_with_the_reason() {
    let text = in_vain("nosuchhost.invalid:2181", Duration::from_secs(1)).await.to_string();
    assert!(text.contains("nosuchhost.invalid:2181"), "{text}");
    assert!(text.contains("look"), "{text} does not say that the look-up failed");
}

#[tokio::test]
async fn an_unknown_scheme_is_named_as_soon_as_the_server_refuses_it() {
    let builder = || {
        let builder = Client::builder(server().connect_string()).session_timeout(LONG_SESSION);
        builder.auth("nosuchscheme", "ann:secret").connection_timeout(Duration::MAX)
    };
    let error = soon("connect is refused", builder().connect()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::AuthFailed, Outcome::NotApplied));
    assert!(error.to_string().contains("nosuchscheme"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");

    let client = builder().start().unwrap();
    let waiting = client.wait_connected(Duration::MAX);
    assert_eq!(soon("waiting ends", waiting).await.unwrap_err().kind(), ErrorKind::AuthFailed);
    let read = soon("a read ends", client.get_data("/")).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::AuthFailed);
    assert_eq!(soon("close returns", client.close()).await, CloseOutcome::Confirmed);
}

#[tokio::test]
async fn a_connection_timeout_without_end_works() {
    let builder = Client::builder(server().connect_string()).session_timeout(LONG_SESSION);
    let client = builder.connection_timeout(Duration::MAX).connect().await.unwrap();
    client.get_data("/").await.unwrap();
    assert_eq!(soon("close returns", client.close()).await, CloseOutcome::Confirmed);
}
