//! ZooKeeper's frames: cuts a stream of bytes into them and says what each one is. Pure.
//!
//! ```text
//!   request   length │ xid │ operation │ …       first of a connection: length │ connect …
//!   reply     length │ xid │ zxid │ error │ …    first of a connection: length │ connected …
//! ```
//!
//! A reply does not name its operation: it is that of the request with the same xid. Three xids
//! stand for an operation themselves and one for a notification, to which there is no request.
//!
//! What is no frame (a four letter word, TLS) passes untouched: its first four bytes are a length
//! that no frame has.

use std::collections::HashMap;

use super::operation::Operation;

const LENGTH_BYTES: usize = 4;
/// Far above `jute.maxbuffer` and far below any four letters.
const MAX_FRAME: usize = 64 << 20;

const NOTIFICATION_XID: i32 = -1;
const PING_XID: i32 = -2;
const AUTH_XID: i32 = -4;
const SET_WATCHES_XID: i32 = -8;

/// What is delivered in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) label: Label,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Request(Operation),
    Reply(Operation),
    Notification,
    /// Bytes that this proxy does not understand.
    Opaque,
}

/// Puts frames together from the pieces in which they arrive.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    buffer: Vec<u8>,
    /// Up to here the buffer was handed out.
    start: usize,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    Frames,
    Opaque,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A whole frame, its length included.
    Frame(Vec<u8>),
    Opaque(Vec<u8>),
}

impl Splitter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next piece that is complete.
    pub(super) fn next(&mut self) -> Option<Piece> {
        let rest = &self.buffer[self.start..];
        if self.stream == Stream::Frames {
            match usize::try_from(read_i32(rest, 0)?) {
                Ok(length) if length <= MAX_FRAME => {
                    let frame = rest.get(..LENGTH_BYTES + length)?.to_vec();
                    self.start += frame.len();
                    return Some(Piece::Frame(frame));
                }
                // Nothing behind a length that cannot be one is a frame either.
                Ok(_) | Err(_) => self.stream = Stream::Opaque,
            }
        }
        let rest = rest.to_vec();
        self.start = self.buffer.len();
        (!rest.is_empty()).then_some(Piece::Opaque(rest))
    }
}

/// What was said on one connection, as far as the replies need it.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    client: Side,
    server: Side,
    asked: HashMap<i32, Operation>,
}

/// Whether the first frame of a side has passed, which has a form of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Side {
    #[default]
    Silent,
    Introduced,
}

impl Dialogue {
    /// What a frame of the client is.
    pub(super) fn request(&mut self, frame: &[u8]) -> Label {
        if std::mem::replace(&mut self.client, Side::Introduced) == Side::Silent {
            return Label::Request(Operation::Connect);
        }
        let (Some(xid), Some(code)) = (read_i32(frame, 4), read_i32(frame, 8)) else {
            return Label::Opaque;
        };
        let operation = Operation::from_code(code);
        if xid >= 0 {
            self.asked.insert(xid, operation);
        }
        Label::Request(operation)
    }

    /// What a frame of the server is.
    pub(super) fn answer(&mut self, frame: &[u8]) -> Label {
        if std::mem::replace(&mut self.server, Side::Introduced) == Side::Silent {
            return Label::Reply(Operation::Connect);
        }
        let Some(xid) = read_i32(frame, 4) else {
            return Label::Opaque;
        };
        match xid {
            NOTIFICATION_XID => Label::Notification,
            PING_XID => Label::Reply(Operation::Ping),
            AUTH_XID => Label::Reply(Operation::Auth),
            SET_WATCHES_XID => Label::Reply(Operation::SetWatches),
            _ => self.asked.remove(&xid).map_or(Label::Opaque, Label::Reply),
        }
    }
}

fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    let field = bytes.get(at..at + 4)?;
    Some(i32::from_be_bytes(field.try_into().expect("the slice has four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(fields: &[i32]) -> Vec<u8> {
        let length = i32::try_from(4 * fields.len()).unwrap();
        [length].iter().chain(fields).flat_map(|field| field.to_be_bytes()).collect()
    }

    #[test]
    fn frames_are_found_however_the_bytes_arrive() {
        let frames = [frame(&[1, 2]), frame(&[]), frame(&[3])];
        let bytes = frames.concat();
        for size in 1..=bytes.len() {
            let mut splitter = Splitter::default();
            let mut found = Vec::new();
            for chunk in bytes.chunks(size) {
                splitter.push(chunk);
                found.extend(std::iter::from_fn(|| splitter.next()));
            }
            assert_eq!(found, frames.clone().map(Piece::Frame), "in chunks of {size}");
        }
    }

    #[test]
    fn what_has_no_length_passes_untouched() {
        let mut splitter = Splitter::default();
        splitter.push(b"mn");
        assert_eq!(splitter.next(), None);
        splitter.push(b"tr");
        assert_eq!(splitter.next(), Some(Piece::Opaque(b"mntr".to_vec())));
        splitter.push(&frame(&[1]));
        assert_eq!(splitter.next(), Some(Piece::Opaque(frame(&[1]))));
        assert_eq!(splitter.next(), None);
        splitter.push(&(-1_i32).to_be_bytes());
        assert_eq!(splitter.next(), Some(Piece::Opaque(vec![0xff; 4])));
    }

    #[test]
    fn a_reply_has_the_operation_of_its_request() {
        let mut dialogue = Dialogue::default();
        assert_eq!(dialogue.request(&frame(&[0])), Label::Request(Operation::Connect));
        assert_eq!(dialogue.request(&frame(&[1, 15])), Label::Request(Operation::Create));
        assert_eq!(dialogue.request(&frame(&[-2, 11])), Label::Request(Operation::Ping));
        assert_eq!(dialogue.request(&frame(&[2, 8])), Label::Request(Operation::GetChildren));
        assert_eq!(dialogue.request(&frame(&[3, 4711])), Label::Request(Operation::Other(4711)));

        assert_eq!(dialogue.answer(&frame(&[0])), Label::Reply(Operation::Connect));
        assert_eq!(dialogue.answer(&frame(&[2])), Label::Reply(Operation::GetChildren));
        assert_eq!(dialogue.answer(&frame(&[-2])), Label::Reply(Operation::Ping));
        assert_eq!(dialogue.answer(&frame(&[-1])), Label::Notification);
        assert_eq!(dialogue.answer(&frame(&[-8])), Label::Reply(Operation::SetWatches));
        assert_eq!(dialogue.answer(&frame(&[1])), Label::Reply(Operation::Create));
        assert_eq!(dialogue.answer(&frame(&[1])), Label::Opaque);
    }

    #[test]
    fn a_frame_too_short_for_a_header_is_opaque() {
        let mut dialogue = Dialogue::default();
        dialogue.request(&frame(&[0]));
        assert_eq!(dialogue.request(&frame(&[1])), Label::Opaque);
        dialogue.answer(&frame(&[0]));
        assert_eq!(dialogue.answer(&frame(&[])), Label::Opaque);
    }
}
