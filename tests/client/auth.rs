//! Credentials: what they open, and that they are given in every session.

use integration_tests::{SHORT_SESSION, proxy, server, unique};
use zookeeper_framework::{Acl, Client, ClientBuilder, ErrorKind, Permissions};
use zookeeper_testing::Operation;

use crate::{next_session, observer};

fn builder(user: &str, password: &str) -> ClientBuilder {
    Client::builder(server().connect_string()).auth_digest(user, password)
}

#[tokio::test]
async fn a_node_of_its_creator_is_closed_to_everybody_else() {
    let owner = builder("ann", "secret").connect().await.unwrap();
    let path = unique("private");
    owner.create(&path).data("x").acl(Acl::creator_all()).await.unwrap();

    let again = builder("ann", "secret").connect().await.unwrap();
    assert_eq!(again.get_data(&path).await.unwrap().0, b"x");
    again.set_data(&path, "y", None).await.unwrap();

    let strangers = [
        observer().await,
        builder("ann", "wrong").connect().await.unwrap(),
        builder("bob", "secret").connect().await.unwrap(),
    ];
    for stranger in strangers {
        let errors = [
            stranger.get_data(&path).await.unwrap_err(),
            stranger.set_data(&path, "z", None).await.unwrap_err(),
            stranger.get_children(&path).await.unwrap_err(),
            stranger.create(&format!("{path}/child")).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::NoAuth, "{error}");
        }
    }
    assert_eq!(owner.get_data(&path).await.unwrap().0, b"y");
}

#[tokio::test]
async fn a_list_of_entries_gives_each_its_own_permissions() {
    let owner = builder("ann", "secret").connect().await.unwrap();
    let path = unique("shared");
    let mut acl = Acl::creator_all();
    acl.push(Acl::new(Permissions::READ, "world", "anyone"));
    owner.create(&path).data("x").acl(acl).await.unwrap();
    let stranger = observer().await;
    assert_eq!(stranger.get_data(&path).await.unwrap().0, b"x");
    let error = stranger.set_data(&path, "y", None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoAuth);
    owner.set_data(&path, "y", None).await.unwrap();
}

#[tokio::test]
async fn all_credentials_of_a_client_count() {
    let (ann, bob) = (unique("ann"), unique("bob"));
    for (path, user) in [(&ann, "ann"), (&bob, "bob")] {
        let client = builder(user, "secret").connect().await.unwrap();
        client.create(path).acl(Acl::creator_all()).await.unwrap();
    }
    let both = builder("ann", "secret").auth("digest", "bob:secret").connect().await.unwrap();
    both.get_data(&ann).await.unwrap();
    both.get_data(&bob).await.unwrap();
}

#[tokio::test]
async fn credentials_are_given_over_each_connection_and_in_each_session() {
    let proxy = proxy();
    let builder = Client::builder(proxy.connect_string()).auth_digest("ann", "secret");
    let client = builder.session_timeout(SHORT_SESSION).connect().await.unwrap();
    let path = unique("private");
    client.create(&path).acl(Acl::creator_all()).await.unwrap();

    proxy.cut();
    client.get_data(&path).await.unwrap();
    assert_eq!(proxy.counts().requests(Operation::Auth), 2);

    assert_eq!(next_session(&proxy, &client).await.epoch().get(), 2);
    client.get_data(&path).await.unwrap();
    client.set_data(&path, "new", None).await.unwrap();
}
