//! What confirms a session, and what does not. Serves C2, H1.

use std::time::{Duration, Instant};

use integration_tests::{SHORT_SESSION, connect, proxy, server, soon, unique};
use zookeeper_framework::{Acl, ErrorKind, LostReason, Permissions};
use zookeeper_testing::Direction;

use crate::short_lived;

#[tokio::test]
async fn what_this_process_refuses_by_itself_confirms_nothing() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let session = client.session().unwrap();
    proxy.stall(Direction::Both);
    let refusals = async {
        loop {
            // The root cannot be deleted: this is known without asking.
            let refused = session.transaction().delete("/", None).commit().await.unwrap_err();
            assert_ne!(refused.error.kind(), ErrorKind::NoNode);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reason = tokio::select! {
        reason = soon("the session is lost", session.lost()) => reason,
        () = refusals => unreachable!("it goes on"),
    };
    assert_eq!(reason, LostReason::Unconfirmed);
}

#[tokio::test]
async fn writes_that_are_refused_all_the_time_do_not_cost_the_session() {
    let (proxy, path) = (proxy(), unique("forbidden"));
    let admin = connect(&server().connect_string()).await;
    let readable = vec![Acl::new(Permissions::READ, "world", "anyone")];
    admin.create(&path).acl(readable).await.unwrap();
    let client = short_lived(&proxy).await;
    let session = client.session().unwrap();
    let start = Instant::now();
    while start.elapsed() < 3 * SHORT_SESSION {
        let refused = session.set_data(&path, b"no", None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoAuth, "{refused}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(session.is_valid(), "{:?}", session.lost_reason());
}
