//! The delay line of one direction of one connection. Pure.
//!
//! What is put in comes out after its delay and in order. Delays do not add up: what arrives
//! together leaves together, as on a long cable.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::frames::Message;

/// A line takes no more while this many bytes are in it: the sender is then held back by TCP.
const CAPACITY: usize = 16 << 20;

#[derive(Debug)]
pub(super) enum Item {
    Message(Message),
    /// The sender has closed its side.
    End,
    /// The sender has reset the connection.
    Reset,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    items: VecDeque<(Instant, Item)>,
    bytes: usize,
}

impl Line {
    pub(super) fn push(&mut self, now: Instant, delay: Duration, item: Item) {
        self.bytes += size(&item);
        self.items.push_back((now + delay, item));
    }

    /// When the first item is to be delivered.
    pub(super) fn due(&self) -> Option<Instant> {
        self.items.front().map(|(due, _)| *due)
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        let (_, item) = self.items.pop_front()?;
        self.bytes -= size(&item);
        Some(item)
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < CAPACITY
    }
}

fn size(item: &Item) -> usize {
    match item {
        Item::Message(message) => message.bytes.len(),
        Item::End | Item::Reset => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::Label;
    use super::*;

    fn message(bytes: usize) -> Item {
        Item::Message(Message { label: Label::Opaque, bytes: vec![0; bytes] })
    }

    #[test]
    fn delays_do_not_add_up_and_order_is_kept() {
        let now = Instant::now();
        let delay = Duration::from_millis(25);
        let mut line = Line::default();
        line.push(now, delay, message(1));
        line.push(now, delay, message(2));
        line.push(now, Duration::ZERO, Item::End);
        for _ in 0..2 {
            assert_eq!(line.due(), Some(now + delay));
            assert!(matches!(line.pop(), Some(Item::Message(_))));
        }
        assert!(matches!(line.pop(), Some(Item::End)));
        assert_eq!(line.due(), None);
    }

    #[test]
    fn a_full_line_takes_no_more() {
        let mut line = Line::default();
        line.push(Instant::now(), Duration::ZERO, message(CAPACITY - 1));
        assert!(line.has_room());
        line.push(Instant::now(), Duration::ZERO, message(1));
        assert!(!line.has_room());
        line.pop();
        assert!(line.has_room());
    }
}
