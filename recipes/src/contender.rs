//! Who stands in a lock's queue, for whoever asks.

use std::borrow::Cow;

use zookeeper_framework::{ErrorKind, Session};

use crate::error::{Error, Result};
use crate::queue::{Budget, Queue};

/// How many nodes are read at a time.
const BATCH: usize = 100;

/// One contender of a lock: who holds it, or waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contender {
    /// The path of its node.
    pub node: String,
    /// The number that gives its place in the queue.
    pub sequence: i32,
    /// The data of its node, by which contenders say who they are; by default a text, see
    /// [`data_text`](Self::data_text).
    pub data: Vec<u8>,
    /// The session by which it stands in the queue. All contenders of one client share it.
    pub session_id: i64,
    /// The transaction that created its node: its fencing token, once it holds.
    pub czxid: i64,
}

impl Contender {
    /// The data as text; what is not UTF-8 is replaced.
    pub fn data_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }
}

/// The contenders in the order of the queue.
pub(crate) async fn contenders(queue: &Queue) -> Result<Vec<Contender>> {
    let client = queue.client();
    let budget = Budget::new(client);
    loop {
        let connected = client.wait_connected(client.connection_timeout()).await;
        let session = connected.map_err(|error| Error::at(queue.path(), error))?;
        let error = match read(queue, &session).await {
            Ok(contenders) => return Ok(contenders),
            Err(error) => error,
        };
        let may = client.retry_policy().is_retryable(&error);
        match budget.next().filter(|_| may) {
            Some(pause) => client.pause(pause).await,
            None => return Err(Error::at(queue.path(), error)),
        }
    }
}

async fn read(
    queue: &Queue,
    session: &Session,
) -> Result<Vec<Contender>, zookeeper_framework::Error> {
    let names = match session.get_children(queue.path()).await {
        Ok((names, _)) => names,
        Err(error) if error.kind() == ErrorKind::NoNode => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut contenders = Vec::with_capacity(names.len());
    for batch in queue.family().in_order(&names).chunks(BATCH) {
        let reads: Vec<_> = batch
            .iter()
            .map(|contender| {
                let node = format!("{}/{}", queue.path(), contender.name);
                (contender.number, session.get_data(&node), node)
            })
            .collect();
        for (sequence, read, node) in reads {
            match read.await {
                Ok((data, stat)) => contenders.push(Contender {
                    node,
                    sequence,
                    data,
                    session_id: stat.ephemeral_owner,
                    czxid: stat.czxid,
                }),
                // It left meanwhile.
                Err(error) if error.kind() == ErrorKind::NoNode => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(contenders)
}
