//! Carries one direction of one connection.
//!
//! ```text
//!   source ──► parser ──► delay line ──► rules ──► sink
//!              counts                    pass, lose, hold
//! ```
//!
//! A frame is counted when it arrives and meets its fault when it leaves the delay line: what the
//! client had sent before it has been delivered then.
//!
//! While a direction is stalled or a frame is held, the pump goes on to take in bytes until its
//! line is full. It never looks at a setting in the middle of a frame.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::sockopt::set_tcp_quickack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::fault::Fault;
use super::frames::{Dialogue, Label, Message, Piece, Splitter};
use super::greeting::Greeting;
use super::line::{Item, Line};
use super::operation::Operation;
use super::rules::Fate;
use super::settings::{Flow, Lane, Protocol, Settings};
use super::shared::Shared;

const READ_SIZE: usize = 64 << 10;

/// Why a connection ends before both its sides have closed.
#[derive(Debug)]
pub(super) enum Break {
    /// A side has reset it, or the proxy was told to cut it.
    Cut,
    /// The proxy was told to close it.
    Closed,
    /// A fault happened.
    Fault(Fault),
    /// A hold was dropped.
    HoldDropped,
}

/// What the two pumps of a connection share.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) settings: watch::Receiver<Settings>,
    pub(super) shared: Arc<Shared>,
    pub(super) dialogue: Arc<Mutex<Dialogue>>,
}

pub(super) struct Pump<'a> {
    lane: Lane,
    source: ReadHalf<'a>,
    sink: WriteHalf<'a>,
    context: Context,
    parser: Parser,
    line: Line,
    held: Option<Held>,
    reading: Reading,
    /// The last request that was no ping.
    previous: Option<Operation>,
}

struct Held {
    message: Message,
    released: oneshot::Receiver<()>,
}

enum Parser {
    Frames(Splitter),
    Greeting(Greeting),
    Opaque,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Open,
    Ended,
}

enum Event {
    SettingsChanged,
    Released,
    HoldDropped,
    Due,
    Arrived(io::Result<usize>),
}

#[derive(PartialEq, Eq)]
enum Progress {
    Going,
    Finished,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        lane: Lane,
        source: ReadHalf<'a>,
        sink: WriteHalf<'a>,
        context: Context,
    ) -> Self {
        let protocol = context.settings.borrow().protocol;
        let parser = match (protocol, lane) {
            (Protocol::Client, Lane::Up | Lane::Down) => Parser::Frames(Splitter::default()),
            (Protocol::Election(address), Lane::Up) => Parser::Greeting(Greeting::new(address)),
            (Protocol::Election(_), Lane::Down)
            | (Protocol::Quorum | Protocol::Opaque, Lane::Up | Lane::Down) => Parser::Opaque,
        };
        Self {
            lane,
            source,
            sink,
            context,
            parser,
            line: Line::default(),
            held: None,
            reading: Reading::Open,
            previous: None,
        }
    }

    /// Runs until the source has closed and all of it is delivered, or the sink takes no more.
    pub(super) async fn run(mut self) -> Result<(), Break> {
        self.delay_acknowledgements();
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let progress = match self.next_event(&mut buffer).await {
                Event::SettingsChanged => Progress::Going,
                Event::HoldDropped => return Err(Break::HoldDropped),
                Event::Released => self.deliver_held().await,
                Event::Due => self.deliver_first().await?,
                Event::Arrived(count) => {
                    self.take_in(count.map(|count| &buffer[..count]));
                    Progress::Going
                }
            };
            if progress == Progress::Finished {
                return Ok(());
            }
        }
    }

    async fn next_event(&mut self, buffer: &mut [u8]) -> Event {
        let flow = self.context.settings.borrow_and_update().traffic(self.lane).flow;
        let due = self.line.due();
        let may_release = flow == Flow::Moving && self.held.is_some();
        let may_deliver = flow == Flow::Moving && self.held.is_none() && due.is_some();
        let may_read = self.reading == Reading::Open && self.line.has_room();
        tokio::select! {
            biased;
            // The proxy's end closes this channel and drops this task right after.
            Ok(()) = self.context.settings.changed() => Event::SettingsChanged,
            event = released(&mut self.held), if may_release => event,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if may_deliver => Event::Due,
            count = self.source.read(buffer), if may_read => Event::Arrived(count),
            else => std::future::pending().await,
        }
    }

    fn take_in(&mut self, bytes: io::Result<&[u8]>) {
        let now = Instant::now();
        let delay = self.context.settings.borrow().traffic(self.lane).delay;
        match bytes {
            Ok([]) => self.end_reading(now, delay, Item::End),
            Ok(bytes) => {
                for message in self.parse(bytes) {
                    self.context.shared.counts.lock().add(&message);
                    self.line.push(now, delay, Item::Message(message));
                }
                self.delay_acknowledgements();
            }
            Err(_) => self.end_reading(now, delay, Item::Reset),
        }
    }

    fn end_reading(&mut self, now: Instant, delay: Duration, item: Item) {
        self.reading = Reading::Ended;
        self.line.push(now, delay, item);
    }

    fn parse(&mut self, bytes: &[u8]) -> Vec<Message> {
        let opaque = |bytes: Vec<u8>| Message { label: Label::Opaque, bytes };
        let splitter = match &mut self.parser {
            Parser::Opaque => return vec![opaque(bytes.to_vec())],
            Parser::Greeting(greeting) => return vec![opaque(greeting.pass(bytes))],
            Parser::Frames(splitter) => splitter,
        };
        splitter.push(bytes);
        let mut dialogue = self.context.dialogue.lock();
        let pieces = std::iter::from_fn(|| splitter.next());
        let messages = pieces.map(|piece| match piece {
            Piece::Opaque(bytes) => opaque(bytes),
            Piece::Frame(bytes) => {
                let label = match self.lane {
                    Lane::Up => dialogue.request(&bytes),
                    Lane::Down => dialogue.answer(&bytes),
                };
                Message { label, bytes }
            }
        });
        messages.collect()
    }

    /// The kernel forgets this setting as it goes: it is made again after each read. A client that
    /// leaves Nagle's algorithm on then waits for an acknowledgement as it would on a real network.
    fn delay_acknowledgements(&self) {
        match self.lane {
            // A socket that has failed meanwhile says so at the next read.
            Lane::Up => set_tcp_quickack(self.source.as_ref(), false).unwrap_or_default(),
            Lane::Down => {}
        }
    }

    async fn deliver_first(&mut self) -> Result<Progress, Break> {
        match self.line.pop() {
            None => Ok(Progress::Going),
            Some(Item::Message(message)) => self.deliver(message).await,
            Some(Item::Reset) => Err(Break::Cut),
            Some(Item::End) => {
                // It fails where the other side has gone already, which ends this direction too.
                self.sink.shutdown().await.ok();
                Ok(Progress::Finished)
            }
        }
    }

    async fn deliver(&mut self, message: Message) -> Result<Progress, Break> {
        let fate = self.context.shared.rules.lock().decide(message.label, self.previous);
        match message.label {
            Label::Request(Operation::Ping)
            | Label::Reply(_)
            | Label::Notification
            | Label::Opaque => {}
            Label::Request(operation) => self.previous = Some(operation),
        }
        match fate {
            Fate::Pass => Ok(self.write(&message).await),
            Fate::Lost(fault) => Err(Break::Fault(fault)),
            Fate::Last(fault) => match self.write(&message).await {
                Progress::Going => Err(Break::Fault(fault)),
                Progress::Finished => Ok(Progress::Finished),
            },
            Fate::Held(fault, released) => {
                fault.happen(|| self.held = Some(Held { message, released }));
                Ok(Progress::Going)
            }
        }
    }

    async fn deliver_held(&mut self) -> Progress {
        match self.held.take() {
            Some(held) => self.write(&held.message).await,
            None => Progress::Going,
        }
    }

    /// A sink that takes no more ends this direction and no other: what its side had sent before it
    /// went is still on its way through the other pump.
    async fn write(&mut self, message: &Message) -> Progress {
        match self.sink.write_all(&message.bytes).await {
            Ok(()) => Progress::Going,
            Err(_) => Progress::Finished,
        }
    }
}

async fn released(held: &mut Option<Held>) -> Event {
    match held {
        None => std::future::pending().await,
        Some(held) => match (&mut held.released).await {
            Ok(()) => Event::Released,
            Err(_) => Event::HoldDropped,
        },
    }
}
