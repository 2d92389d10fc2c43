//! What stands in the directory of a mutex: its queue for whoever asks, and nodes of others.
//!
//! Serves Q2. That numbers near the end of the server's counter are refused is shown by the unit
//! tests of the queue: a server's counter cannot be set.

use std::pin::pin;

use integration_tests::{at_once, child_count, children, connect, server, soon, unique};
use zookeeper_recipes::framework::{CreateMode, describe_process};
use zookeeper_recipes::{Client, Contender, Error, InterProcessMutex, Owner};

async fn client() -> Client {
    connect(&server().connect_string()).await
}

async fn data_of(mutex: &InterProcessMutex, owner: &Owner) -> String {
    let guard = mutex.acquire(owner).await.unwrap();
    let contenders = mutex.contenders().await.unwrap();
    guard.release().await.unwrap();
    let [Contender { data, .. }] = &contenders[..] else { panic!("{contenders:?}") };
    String::from_utf8(data.clone()).unwrap()
}

#[tokio::test]
async fn contenders_stand_in_queue_order_with_their_data_and_sessions() {
    let clients = [client().await, client().await, client().await];
    let path = unique("queue");
    let mutexes: Vec<_> = (0..)
        .zip(&clients)
        .map(|(number, client)| {
            let mutex = InterProcessMutex::new(client, &path).unwrap();
            mutex.node_data(format!("contender {number}"))
        })
        .collect();
    assert!(mutexes[0].contenders().await.unwrap().is_empty(), "there is no directory yet");
    let owner = Owner::new();
    let guard = mutexes[2].acquire(&owner).await.unwrap();
    let mut second = pin!(mutexes[0].acquire(&owner));
    assert!(at_once(second.as_mut()).is_none());
    child_count(&clients[0], &path, 2).await;
    let mut third = pin!(mutexes[1].acquire(&owner));
    assert!(at_once(third.as_mut()).is_none());
    child_count(&clients[0], &path, 3).await;

    let contenders = mutexes[1].contenders().await.unwrap();

    let session = |index: usize| clients[index].session().unwrap().id();
    let seen: Vec<_> = contenders.iter().map(|one| (&one.data[..], one.session_id)).collect();
    let expected: [(&[u8], i64); 3] =
        [(b"contender 2", session(2)), (b"contender 0", session(0)), (b"contender 1", session(1))];
    assert_eq!(seen, expected);
    assert_eq!(contenders.iter().map(|one| one.sequence).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((&*contenders[0].node, contenders[0].czxid), (guard.node(), guard.fencing_token()));

    guard.release().await.unwrap();
    let guard = soon("the second one is granted", second).await.unwrap();
    assert_eq!((&*contenders[1].node, contenders[1].czxid), (guard.node(), guard.fencing_token()));
    guard.release().await.unwrap();
    let guard = soon("the third one is granted", third).await.unwrap();
    assert_eq!((&*contenders[2].node, contenders[2].czxid), (guard.node(), guard.fencing_token()));
}

#[tokio::test]
async fn a_node_names_the_process_and_the_owner() {
    let client = client().await;
    let mutex = InterProcessMutex::new(&client, &unique("describe")).unwrap();
    let process = describe_process();

    assert_eq!(data_of(&mutex, &Owner::new()).await, process);
    let named = data_of(&mutex, &Owner::named("nightly-billing")).await;
    assert_eq!(named, format!("{process} nightly-billing"));
}

#[tokio::test]
async fn a_long_name_of_an_owner_is_cut_between_characters() {
    let client = client().await;
    let mutex = InterProcessMutex::new(&client, &unique("cut")).unwrap();
    let process = describe_process();
    let cases = [
        ("a".repeat(64), "a".repeat(64)),
        ("a".repeat(65), "a".repeat(64)),
        // Three bytes each: the 22nd would end at byte 66.
        ("語".repeat(30), "語".repeat(21)),
        ("é".repeat(33), "é".repeat(32)),
        (format!("a{}", "é".repeat(33)), format!("a{}", "é".repeat(31))),
    ];
    for (name, shown) in cases {
        let data = data_of(&mutex, &Owner::named(name.as_str())).await;
        assert_eq!(data, format!("{process} {shown}"), "{name}");
    }
}

#[tokio::test]
async fn node_data_of_the_mutex_goes_before_that_of_the_client_before_the_default() {
    let builder = Client::builder(server().connect_string()).node_data("of the client");
    let client = builder.connect().await.unwrap();
    let mutex = InterProcessMutex::new(&client, &unique("data")).unwrap();
    let owner = Owner::named("somebody");

    assert_eq!(data_of(&mutex, &owner).await, "of the client");
    assert_eq!(data_of(&mutex.clone().node_data("of the mutex"), &owner).await, "of the mutex");
    assert_eq!(data_of(&mutex.node_data(""), &owner).await, "");
}

#[tokio::test]
async fn children_that_are_no_contenders_do_not_disturb() {
    let (client, stranger) = (client().await, client().await);
    let path = unique("children");
    for name in ["0", "config", "lock-", "lock-1", "lock-00000000001", "latch"] {
        client.create(&format!("{path}/{name}")).with_parents().await.unwrap();
    }
    let sequential = client.create(&format!("{path}/")).mode(CreateMode::PersistentSequential);
    sequential.await.unwrap();
    let mutex = InterProcessMutex::new(&client, &path).unwrap();
    let theirs = InterProcessMutex::new(&stranger, &path).unwrap();
    let (first, second) = (Owner::new(), Owner::new());

    let guard = soon("it is free", mutex.acquire(&first)).await.unwrap();
    let mut waiting = pin!(theirs.acquire(&second));
    assert!(at_once(waiting.as_mut()).is_none());
    child_count(&client, &path, 9).await;
    assert_eq!(mutex.contenders().await.unwrap().len(), 2);
    client.delete(&format!("{path}/0")).await.unwrap();
    assert!(theirs.try_acquire(&Owner::new()).await.unwrap().is_none());

    guard.release().await.unwrap();
    soon("the next one is granted", waiting).await.unwrap().release().await.unwrap();
    assert_eq!(children(&client, &path).await.len(), 6);
}

#[tokio::test]
async fn a_lock_and_one_below_it_are_two_locks() {
    let client = client().await;
    let path = unique("nested");
    let outer = InterProcessMutex::new(&client, &path).unwrap();
    let inner = InterProcessMutex::new(&client, &format!("{path}/inner")).unwrap();

    let of_inner = soon("the inner one is free", inner.acquire(&Owner::new())).await.unwrap();
    let of_outer = soon("the outer one is free", outer.acquire(&Owner::new())).await.unwrap();

    assert_eq!(outer.contenders().await.unwrap().len(), 1);
    assert_eq!(inner.contenders().await.unwrap().len(), 1);
    of_inner.release().await.unwrap();
    assert!(inner.try_acquire(&Owner::new()).await.unwrap().is_some());
    assert!(outer.try_acquire(&Owner::new()).await.unwrap().is_none());
    of_outer.release().await.unwrap();
}

#[tokio::test]
async fn the_contender_of_another_recipe_is_an_error_that_names_both() {
    let client = client().await;
    let path = unique("recipes");
    let theirs = format!("{path}/_c_6f1c2a34-0d5e-4b77-9a40-5c1f0e8d2b11-__WRIT__0000000000");
    client.create(&theirs).mode(CreateMode::Ephemeral).with_parents().await.unwrap();
    let mutex = InterProcessMutex::new(&client, &path).unwrap();

    let waited = soon("it does not wait", mutex.acquire(&Owner::new())).await.unwrap_err();
    let tried = mutex.try_acquire(&Owner::new()).await.unwrap_err();

    for refused in [waited, tried] {
        assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
        let text = refused.to_string();
        for part in [path.as_str(), "mutex", "read-write lock"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
    child_count(&client, &path, 1).await;
    client.delete(&theirs).await.unwrap();
    mutex.acquire(&Owner::new()).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn contenders_without_protection_are_waited_for_in_their_order() {
    let (client, stranger) = (client().await, client().await);
    let path = unique("unprotected");
    let name = format!("{path}/lock-");
    let lock = || stranger.create(&name).mode(CreateMode::EphemeralSequential).with_parents();
    let first = lock().await.unwrap().path;
    let second = lock().await.unwrap().path;
    assert!(first.ends_with("/lock-0000000000") && second.ends_with("/lock-0000000001"));
    let mutex = InterProcessMutex::new(&client, &path).unwrap();
    let owner = Owner::new();

    let mut waiting = pin!(mutex.acquire(&owner));
    assert!(at_once(waiting.as_mut()).is_none());
    child_count(&client, &path, 3).await;
    let behind = lock().await.unwrap().path;
    let other = Owner::new();
    let mut last = pin!(mutex.acquire(&other));
    assert!(at_once(last.as_mut()).is_none());
    child_count(&client, &path, 5).await;
    assert!(mutex.try_acquire(&Owner::new()).await.unwrap().is_none());

    // The one further ahead goes last: the nearest one alone is not enough.
    stranger.delete(&second).await.unwrap();
    assert!(mutex.try_acquire(&Owner::new()).await.unwrap().is_none());
    assert!(at_once(waiting.as_mut()).is_none());
    stranger.delete(&first).await.unwrap();
    let guard = soon("it is granted before the one behind it goes", waiting).await.unwrap();
    guard.release().await.unwrap();

    assert!(mutex.try_acquire(&Owner::new()).await.unwrap().is_none());
    assert!(at_once(last.as_mut()).is_none(), "one stands between");
    stranger.delete(&behind).await.unwrap();
    soon("the last one is granted", last).await.unwrap().release().await.unwrap();
}
