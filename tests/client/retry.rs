//! Retry policies, obeyed: attempts are counted at the proxy. Serves C4, Q10.

use std::time::{Duration, Instant};

use integration_tests::{LONG_SESSION, PATIENCE, connect, proxy, soon, unique, until};
use zookeeper_framework::{
    Client, CreateMode, Error, ErrorKind, NoRetry, Outcome, RetryForever, RetryNTimes,
    RetryOneTime, RetryPolicy,
};
use zookeeper_testing::{Fault, Operation, Proxy};

use crate::observer;

const PAUSE: Duration = Duration::from_millis(10);

async fn connect_with(proxy: &Proxy, policy: impl RetryPolicy) -> Client {
    let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
    builder.retry_policy(policy).connect().await.unwrap()
}

/// Loses `losses` replies to a read in a row; gives the read's result and how often it was sent.
async fn read(policy: impl RetryPolicy, losses: u32) -> (Result<(), Error>, u64) {
    let proxy = proxy();
    let client = connect_with(&proxy, policy).await;
    let faults: Vec<_> = (0..losses).map(|_| proxy.lose_reply(Operation::GetData, 1)).collect();
    let result = soon("the read ends", client.get_data("/")).await;
    let happened = faults.iter().filter(|fault| fault.happened()).count() as u64;
    let sent = proxy.counts().requests(Operation::GetData);
    assert_eq!(sent - u64::from(result.is_ok()), happened);
    (result.map(|_| ()), sent)
}

fn kind(result: &Result<(), Error>) -> Option<ErrorKind> {
    result.as_ref().err().map(Error::kind)
}

#[tokio::test]
async fn no_retry_is_one_attempt() {
    let (result, sent) = read(NoRetry, 5).await;
    assert_eq!((kind(&result), sent), (Some(ErrorKind::ConnectionLost), 1));
}

#[tokio::test]
async fn one_retry_is_two_attempts() {
    let (result, sent) = read(RetryOneTime::new(PAUSE), 5).await;
    assert_eq!((kind(&result), sent), (Some(ErrorKind::ConnectionLost), 2));
}

#[tokio::test]
async fn two_retries_are_three_attempts() {
    let (result, sent) = read(RetryNTimes::new(2, PAUSE), 5).await;
    assert_eq!((kind(&result), sent), (Some(ErrorKind::ConnectionLost), 3));
}

#[tokio::test]
async fn a_call_ends_with_the_first_attempt_that_succeeds() {
    let (result, sent) = read(RetryNTimes::new(5, PAUSE), 2).await;
    assert_eq!((kind(&result), sent), (None, 3));
    let (result, sent) = read(RetryForever::new(PAUSE), 4).await;
    assert_eq!((kind(&result), sent), (None, 5));
}

#[tokio::test]
async fn each_call_has_a_budget_of_its_own() {
    let proxy = proxy();
    let client = connect_with(&proxy, RetryOneTime::new(PAUSE)).await;
    for call in 1..=3 {
        let lost = proxy.lose_reply(Operation::GetData, 1);
        client.get_data("/").await.unwrap_or_else(|error| panic!("call {call}: {error}"));
        assert!(lost.happened());
    }
}

#[tokio::test]
async fn a_policy_of_ones_own_decides_what_is_worth_a_retry() {
    struct NeverAfterALoss;
    impl RetryPolicy for NeverAfterALoss {
        fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
            Box::new(std::iter::repeat(PAUSE))
        }
        fn is_retryable(&self, error: &Error) -> bool {
            error.kind() != ErrorKind::ConnectionLost
        }
    }
    let (result, sent) = read(NeverAfterALoss, 5).await;
    assert_eq!((kind(&result), sent), (Some(ErrorKind::ConnectionLost), 1));
    let (result, sent) = read(|| [PAUSE; 3], 5).await;
    assert_eq!((kind(&result), sent), (Some(ErrorKind::ConnectionLost), 4));
}

#[tokio::test]
async fn an_answer_that_asking_again_cannot_change_is_not_asked_for_again() {
    let proxy = proxy();
    let client = connect_with(&proxy, RetryForever::new(PAUSE)).await;
    let error = client.get_data(&unique("missing")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoNode);
    assert_eq!(proxy.counts().requests(Operation::GetData), 1);
}

/// The writes of a client, each to be met by a fault of its own.
async fn write(client: &Client, operation: Operation, path: &str) -> Result<(), Error> {
    match operation {
        Operation::Create => client.create(&format!("{path}/new")).await.map(|_| ()),
        Operation::SetData => client.set_data(path, "new", None).await.map(|_| ()),
        Operation::Delete => client.delete(path).await,
        Operation::Multi => {
            let set = client.transaction().set_data(path, "new", None);
            set.commit().await.map(|_| ()).map_err(Error::from)
        }
        other => unreachable!("{other:?} is not one of the writes"),
    }
}

/// The policy would go on for ever: what stops it is that nobody knows what has happened.
async fn assert_sent_once(arm: fn(&Proxy, Operation) -> Fault) {
    let (proxy, observer) = (proxy(), observer().await);
    let client = connect_with(&proxy, RetryForever::new(PAUSE)).await;
    let writes = [Operation::Create, Operation::SetData, Operation::Delete, Operation::Multi];
    for operation in writes {
        let path = unique("once");
        observer.create(&path).await.unwrap();
        let fault = arm(&proxy, operation);
        let before = proxy.counts();
        let error = soon("the write ends", write(&client, operation, &path)).await.unwrap_err();
        assert!(fault.happened(), "{operation:?}");
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        assert!(error.to_string().ends_with("; whether it was carried out is unknown"), "{error}");
        client.wait_connected(PATIENCE).await.unwrap();
        client.get_data("/").await.unwrap();
        let sent = proxy.counts() - before;
        assert_eq!(sent.requests(operation), 1, "{operation:?}");
    }
}

#[tokio::test]
async fn a_write_whose_reply_is_lost_is_never_repeated() {
    assert_sent_once(|proxy, operation| proxy.lose_reply(operation, 1)).await;
}

#[tokio::test]
async fn a_write_whose_request_is_lost_is_never_repeated() {
    assert_sent_once(|proxy, operation| proxy.lose_request(operation, 1)).await;
}

#[tokio::test]
async fn a_write_that_waits_for_a_connection_is_sent_once_it_is_there() {
    let (proxy, path) = (proxy(), unique("waits"));
    let client = connect_with(&proxy, NoRetry).await;
    proxy.refuse();
    proxy.cut();
    until("the client knows", || !client.state().is_connected()).await;
    let create = client.create(&path).mode(CreateMode::Ephemeral);
    let create = tokio::spawn(async move { create.await });
    tokio::task::yield_now().await;
    proxy.accept();
    soon("the create ends", create).await.unwrap().unwrap();
    assert_eq!(proxy.counts().requests(Operation::Create), 1);
}

#[tokio::test]
async fn a_call_waits_for_a_connection_no_longer_than_the_connection_timeout() {
    let proxy = proxy();
    let timeout = Duration::from_millis(300);
    let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
    let builder = builder.retry_policy(RetryForever::new(PAUSE)).connection_timeout(timeout);
    let client = builder.connect().await.unwrap();
    proxy.refuse();
    proxy.cut();
    until("the client knows", || !client.state().is_connected()).await;
    let before = proxy.counts();
    let start = Instant::now();
    let errors = [
        client.get_data("/").await.unwrap_err(),
        client.create(&unique("waits")).await.unwrap_err(),
        client.create(&unique("waits")).protected().await.unwrap_err(),
        client.delete("/waits").guaranteed().await.unwrap_err(),
    ];
    let waited = start.elapsed();
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotConnected);
        assert_eq!(error.outcome(), Outcome::NotApplied);
        let text = error.to_string();
        assert!(text.contains(&proxy.connect_string()), "{text} names no server");
        assert!(text.contains("Suspended(1)"), "{text} gives no reason");
    }
    assert!(waited >= 4 * timeout, "{waited:?} for four calls");
    assert!(waited < 4 * timeout + Duration::from_secs(5), "{waited:?} for four calls");
    assert_eq!((proxy.counts() - before).total_requests(), 0);
}

#[tokio::test]
async fn a_read_is_answered_in_the_end_though_the_connection_goes_again_and_again() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let reading = tokio::spawn({
        let client = client.clone();
        async move {
            for _ in 0..200_i32 {
                client.get_children("/").await?;
            }
            Ok::<_, Error>(())
        }
    });
    for cuts in 1..=5 {
        until("there is a connection", || client.state().is_connected()).await;
        let passed = proxy.counts().replies(Operation::GetChildren);
        until("reads go on", || {
            proxy.counts().replies(Operation::GetChildren) > passed || reading.is_finished()
        })
        .await;
        proxy.cut();
        until("it connects again", || proxy.counts().connections() > cuts).await;
    }
    soon("all reads end", reading).await.unwrap().unwrap();
}
