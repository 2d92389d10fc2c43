//! The queues of one client, one for each directory and family.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use zookeeper_framework::Client;

use super::Queue;
use super::node::Family;

/// Kept in the client's slot; knows the queues as long as a lock or a node of theirs exists.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<HashMap<(String, &'static str), Weak<Queue>>>);

impl Registry {
    pub(crate) fn queue(client: &Client, path: &str, family: &'static Family) -> Arc<Queue> {
        let registry = client.slot::<Self>();
        let key = (client.full_path(path), family.recipe);
        let mut queues = registry.0.lock();
        if let Some(queue) = queues.get(&key).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(Queue::new(client.clone(), path.into(), family));
        queues.insert(key, Arc::downgrade(&queue));
        queue
    }

    /// A queue of this directory was dropped. Another one may have taken its place already.
    pub(super) fn forget(&self, full_path: &str, family: &'static Family) {
        let mut queues = self.0.lock();
        let key = (full_path.to_owned(), family.recipe);
        if queues.get(&key).is_some_and(|queue| queue.strong_count() == 0) {
            queues.remove(&key);
        }
    }
}
