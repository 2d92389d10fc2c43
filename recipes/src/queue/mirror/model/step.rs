//! What can happen in the model, one atomic step at a time.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The acquisition of this index begins in the process, gives up, or releases its hold.
    Arrive(usize),
    Cancel(usize),
    Release(usize),
    /// The process handles the answer at this index.
    Handle(usize),
    /// The process's session is over, as far as the process knows.
    Expire,
    /// The server serves the process's next request.
    Serve,
    Befall(Event),
    /// The foreign contender of this index moves.
    Foreign(usize, Move),
}

/// What befalls server and connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The server serves a request that the process has given up on.
    ServeGhost,
    /// The connection is cut: so many answers are kept, so many requests fail.
    Cut(usize, usize),
    Reattach,
    /// The server ends the process's old session.
    Vanish,
    /// Somebody removes the node of this index, which is one of ours, by hand.
    Remove(usize),
    /// The data of the watched node is written.
    Write,
    /// The server reaps the empty directory.
    Reap,
}

/// What a foreign contender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Arrive,
    Cancel,
    Grant,
    /// It creates the reader's node with its writer's number, and later deletes the writer's.
    Downgrade,
    DropWriter,
    Release,
    /// Its session is over, as far as it knows; later the server ends it.
    Expire,
    Vanish,
}

impl Step {
    pub(super) fn is_arrival(self) -> bool {
        matches!(self, Step::Arrive(_) | Step::Foreign(_, Move::Arrive))
    }

    /// Whether the step must be taken sooner or later, whatever else happens.
    pub(super) fn is_progress(self) -> bool {
        match self {
            Step::Release(_) | Step::Handle(_) | Step::Serve => true,
            Step::Arrive(_) | Step::Cancel(_) | Step::Expire => false,
            Step::Befall(event) => match event {
                Event::ServeGhost | Event::Reattach | Event::Vanish => true,
                Event::Cut(..) | Event::Remove(_) | Event::Write | Event::Reap => false,
            },
            Step::Foreign(_, act) => match act {
                Move::Grant | Move::DropWriter | Move::Release | Move::Vanish => true,
                Move::Arrive | Move::Cancel | Move::Downgrade | Move::Expire => false,
            },
        }
    }
}
