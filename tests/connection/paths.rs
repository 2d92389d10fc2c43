//! Paths that no server takes: refused by every operation at once, connected or not.

use std::future::IntoFuture;

use integration_tests::{at_once, connect, proxy, server, until};
use zookeeper_framework::{Acl, Client, CreateMode, Error, ErrorKind, Outcome, Session};
use zookeeper_testing::Operation;

use crate::kept_out;

const PATHS: [&str; 12] =
    ["", "a", "a/b", "//", "/a/", "/a//b", "/a\0b", "/a\nb", "/.", "/..", "/a/./b", "/a/../b"];

/// Every operation of a client on `path`; none may need to wait for its refusal.
fn of_client(client: &Client, path: &str) -> Vec<Option<Error>> {
    vec![
        at_once(client.create(path).into_future()).and_then(Result::err),
        at_once(client.create(path).with_parents().into_future()).and_then(Result::err),
        at_once(client.create(path).protected().into_future()).and_then(Result::err),
        at_once(client.delete(path).into_future()).and_then(Result::err),
        at_once(client.delete(path).guaranteed().into_future()).and_then(Result::err),
        at_once(client.exists(path)).and_then(Result::err),
        at_once(client.watch_exists(path)).and_then(Result::err),
        at_once(client.get_data(path)).and_then(Result::err),
        at_once(client.watch_data(path)).and_then(Result::err),
        at_once(client.set_data(path, "", None)).and_then(Result::err),
        at_once(client.get_children(path)).and_then(Result::err),
        at_once(client.watch_children(path)).and_then(Result::err),
        at_once(client.sync(path)).and_then(Result::err),
    ]
}

/// Every operation of a session on `path`.
fn of_session(session: &Session, path: &str) -> Vec<Option<Error>> {
    let create = session.create(path, b"", CreateMode::Ephemeral, Acl::anyone_all());
    vec![
        at_once(create).and_then(Result::err),
        at_once(session.delete(path, None)).and_then(Result::err),
        at_once(session.exists(path)).and_then(Result::err),
        at_once(session.watch_exists(path)).and_then(Result::err),
        at_once(session.get_data(path)).and_then(Result::err),
        at_once(session.watch_data(path)).and_then(Result::err),
        at_once(session.set_data(path, b"", None)).and_then(Result::err),
        at_once(session.get_children(path)).and_then(Result::err),
        at_once(session.watch_children(path)).and_then(Result::err),
        at_once(session.sync(path)).and_then(Result::err),
    ]
}

fn assert_refusals(path: &str, refusals: Vec<Option<Error>>) {
    for (index, refusal) in refusals.into_iter().enumerate() {
        let error = refusal.unwrap_or_else(|| panic!("operation {index} lets {path:?} pass"));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "operation {index}: {error}");
        assert_eq!(error.outcome(), Outcome::NotApplied);
        let text = error.to_string();
        assert!(text.contains(&format!("{path:?}")), "operation {index}: {text:?} names no path");
        assert!(!text.contains(['\n', '\0']), "operation {index}: {text:?} is more than a line");
    }
}

#[tokio::test]
async fn every_operation_of_a_client_refuses_a_bad_path_at_once() {
    let connected = connect(&server().connect_string()).await;
    let proxy = proxy();
    let waiting = kept_out(&proxy);
    for path in PATHS {
        for client in [&connected, &waiting] {
            assert_refusals(path, of_client(client, path));
        }
    }
}

#[tokio::test]
async fn every_operation_of_a_session_refuses_a_bad_path_at_once() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let session = client.session().unwrap();
    for path in PATHS {
        assert_refusals(path, of_session(&session, path));
    }
    proxy.refuse();
    proxy.cut();
    until("it is suspended", || !client.state().is_connected()).await;
    for path in PATHS {
        assert_refusals(path, of_session(&session, path));
    }
}

#[tokio::test]
async fn a_transaction_names_the_operation_with_a_bad_path_and_sends_nothing() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    for path in PATHS {
        let begin = || client.transaction().check("/", None);
        let transactions = [
            begin().check(path, None),
            begin().create(path, "", CreateMode::Persistent),
            begin().set_data(path, "", None),
            begin().delete(path, None),
        ];
        for transaction in transactions {
            let error = at_once(transaction.commit()).expect("refused at once").unwrap_err();
            assert_eq!(error.index, Some(1));
            assert_refusals(path, vec![Some(error.error)]);
        }
    }
    client.close().await;
    assert_eq!(proxy.counts().requests(Operation::Multi), 0);
}
