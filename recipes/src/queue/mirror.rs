//! The mirror of one lock directory's queue, as one session sees it.
//!
//! Promises three things, whatever order the answers come in and whichever of them are lost:
//!
//! * it grants only what the server's queue grants: nothing that conflicts stands ahead;
//! * a first waiter always has a grant, a request under way, a watch, or a node of ours ahead;
//! * it asks only what it must: inside the process a lock is handed on without a request.
//!
//! Inputs go in, commands come out. It is pure: whoever calls it holds one lock over the call
//! *and* the sending of what came out, in order, so that the order of the commands is the order
//! on the wire. The answers may be reported in any order.
//!
//! ```text
//!             enter              created               decided                leave
//!   parked ───────────► Creating ───────► Waiting ───────────────► Granted ───────────┐
//!     │                    │ leave           │ leave                                  ▼
//!     │ leave              ▼                 └────────────────────────────────────► Leaving
//!     ▼                Abandoned ───────────────────────────────────────────────────► │
//!    gone                  created                                                    ▼ deleted
//!                                                                                    gone
//! ```
//!
//! A node of ours *lives* from the answer of its create until its delete is sent. While one
//! lives, the directory exists and its counter only grows; with the last one the mirror forgets
//! all it knows, for the server may then reap the directory and count from 0 again.
//!
//! What it knows errs on one side: it may take a node for alive that is gone, never the reverse.
//! *Known* is the number up to which every node is listed, ours, or gone. The races it handles:
//!
//! * **A list of an earlier life of the directory comes late.** A list counts only if it shows a
//!   node of ours that lives when it is handled.
//! * **A number follows upon our own.** The counter grows by one a create, so nothing foreign
//!   stands between; any gap costs one list, sent when the first waiter lies beyond it.
//! * **A foreign writer goes.** It may have turned into a reader of the same number. Until a
//!   list sent after its end was handled is answered, no writer behind it is granted (the
//!   *mark*); readers are.
//! * **A foreign node goes, and others are known ahead of it.** Most likely they went before it.
//!   One list tells; to watch them, one after the other, would cost a round trip each.
//! * **An end arrives while a list is under way.** The list may still show the node, so the end
//!   waits for it; until then the node counts as watched.
//! * **A list shows our node before its create is answered.** It blocks those behind it.
//! * **Somebody removes nodes of ours by hand.** Where one was missed (its watch, or our own
//!   delete, found it gone) nobody is granted before a list has shown which of ours are left. A
//!   counter that went back tells it too. Not told is this: all our nodes are removed, the
//!   directory is reaped, and by chance our next number follows upon the last one known.
//!
//! At most one list is under way at a time, and of the others' nodes only the one that the first
//! waiter waits for is watched.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(crate) use self::output::{Mode, NodeId, Output, Refusal, Stamp};
use self::own::{Own, OwnNodes, Place, Stage};
use super::node::{self, Child, Contender, Family, Kind, Number};

#[cfg(test)]
mod model;
mod output;
mod own;
#[cfg(test)]
mod tests;

/// The list under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Listing {
    stamp: Stamp,
    /// The nodes of ours that lived when it was sent: it must show them.
    expects: BTreeSet<NodeId>,
    /// It was sent after the last node of ours that was found removed.
    verifies: bool,
}

/// The watch in force, or being armed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watch {
    stamp: Stamp,
    node: Contender,
    /// The node is gone, and that waits for the list under way.
    ended: bool,
}

/// What stands between a waiter of ours and its grant.
#[derive(Debug)]
struct Prospect<'a> {
    /// It stands beyond what is known.
    beyond: bool,
    /// A node of ours that conflicts stands ahead.
    behind_own: bool,
    /// The nearest foreign node ahead that conflicts.
    blocker: Option<&'a Contender>,
    /// A writer ahead went, and may have turned into a reader.
    marked: bool,
    /// A foreign node went since the last list, and with it perhaps those ahead of it.
    outdated: bool,
    /// It may be removed itself.
    doubtful: bool,
}

impl Prospect<'_> {
    fn is_blocked(&self) -> bool {
        self.behind_own || self.blocker.is_some()
    }

    fn is_free(&self) -> bool {
        !self.beyond && !self.marked && !self.doubtful && !self.is_blocked()
    }

    fn wants_list(&self) -> bool {
        let only_marked = self.marked && !self.is_blocked();
        let only_foreign = self.blocker.is_some() && !self.behind_own;
        self.beyond || self.doubtful || only_marked || (self.outdated && only_foreign)
    }
}

/// The mirror of one directory's queue. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mirror {
    family: &'static Family,
    bound: usize,
    parked: VecDeque<(NodeId, Kind)>,
    own: OwnNodes,
    /// Nodes of ours that are gone, though the list under way may still show them.
    gone: BTreeSet<NodeId>,
    foreign: BTreeSet<Contender>,
    known: Option<Number>,
    /// No writer of ours behind this number is granted before the next list.
    mark: Option<Number>,
    /// A foreign node went since the last list.
    outdated: bool,
    /// A node of ours was found removed, and so may be others of ours.
    meddled: bool,
    listing: Option<Listing>,
    watch: Option<Watch>,
    next_stamp: u64,
}

/// The inputs.
impl Mirror {
    /// A mirror that knows nothing of its directory.
    ///
    /// At most `bound` (1 or more) nodes of ours exist at a time; further acquisitions are parked
    /// without a node, first come first served.
    pub(crate) fn new(family: &'static Family, bound: usize) -> Self {
        Self {
            family,
            bound,
            parked: VecDeque::new(),
            own: OwnNodes::default(),
            gone: BTreeSet::new(),
            foreign: BTreeSet::new(),
            known: None,
            mark: None,
            outdated: false,
            meddled: false,
            listing: None,
            watch: None,
            next_stamp: 0,
        }
    }

    /// An acquisition begins under an `id` never used before.
    ///
    /// No output means that it is parked. A try is never parked: it is `Blocked` where it would
    /// be, and where a node of ours that conflicts is in the queue already.
    pub(crate) fn enter(&mut self, id: NodeId, kind: Kind, mode: Mode) -> Vec<Output> {
        let must_park = self.is_full() || !self.parked.is_empty();
        match mode {
            Mode::Try if must_park || self.own.conflicts_anywhere(kind) => {
                vec![Output::Blocked(id)]
            }
            Mode::Wait if must_park => {
                self.parked.push_back((id, kind));
                Vec::new()
            }
            Mode::Try | Mode::Wait => vec![self.start(id, kind, mode)],
        }
    }

    /// The create of `id` was answered Ok, or its node was found.
    pub(crate) fn created(&mut self, id: NodeId, number: Number) -> Vec<Output> {
        let mut out = Vec::new();
        match self.own.stage(id) {
            Some(Stage::Creating { .. }) if node::is_exhausted(number) => {
                self.retire(id, &mut out);
                out.push(Output::Refuse(id, Refusal::Exhausted(number)));
            }
            Some(Stage::Creating { floor, .. }) => {
                if floor >= Some(number) {
                    // The counter went back: our nodes were deleted by someone else, and the
                    // directory was made anew.
                    self.forget(&mut out);
                }
                self.own.advance(id, Stage::Waiting(number));
                self.extend_known();
                self.judge_try(id, |prospect| prospect.behind_own, &mut out);
            }
            Some(Stage::Abandoned) => self.retire(id, &mut out),
            Some(Stage::Waiting(_) | Stage::Granted(_) | Stage::Leaving) | None => {}
        }
        self.settle(out)
    }

    /// The create of `id` certainly had no effect and may be sent again.
    pub(crate) fn not_created(&mut self, id: NodeId) -> Vec<Output> {
        match self.own.get(id) {
            Some(own) if own.stage != Stage::Abandoned => {
                let (kind, mode) = (own.kind, own.mode);
                let create = self.start(id, kind, mode);
                // A list may have shown the node before somebody removed it, and then others
                // waited behind it.
                let mut out = self.settle(Vec::new());
                out.push(create);
                out
            }
            Some(_) | None => self.create_failed(id),
        }
    }

    /// The create of `id` certainly had no effect and is given up.
    pub(crate) fn create_failed(&mut self, id: NodeId) -> Vec<Output> {
        self.own.remove(id);
        self.settle(Vec::new())
    }

    /// The acquisition `id` is given up, or its hold is, at whatever stage it is.
    pub(crate) fn leave(&mut self, id: NodeId) -> Vec<Output> {
        let mut out = Vec::new();
        match self.own.stage(id) {
            Some(Stage::Creating { .. }) => self.own.advance(id, Stage::Abandoned),
            Some(Stage::Waiting(_) | Stage::Granted(_)) => self.retire(id, &mut out),
            Some(Stage::Abandoned | Stage::Leaving) => {}
            None => self.parked.retain(|(parked, _)| *parked != id),
        }
        self.settle(out)
    }

    /// The node of `id` was removed by somebody else: a watch on it told so, or our first delete of
    /// it was answered NoNode.
    pub(crate) fn removed(&mut self, id: NodeId) -> Vec<Output> {
        let mut out = Vec::new();
        if self.own.lives(id) {
            out.push(Output::Vanished(id));
        }
        if self.own.remove(id) {
            self.meddled = true;
            if let Some(listing) = &mut self.listing {
                listing.verifies = false;
                self.gone.insert(id);
            }
        }
        self.settle(out)
    }

    /// The node of `id` is certainly gone: its delete was answered Ok, or NoNode after an attempt
    /// of unknown outcome.
    ///
    /// A delete that is refused for good is not reported. Its node stays ours and released: it
    /// lets those of ours behind it pass, keeps its place under the bound, and foreign ones
    /// behind it wait until the session ends.
    pub(crate) fn deleted(&mut self, id: NodeId) -> Vec<Output> {
        if self.own.remove(id) && self.listing.is_some() {
            self.gone.insert(id);
        }
        self.settle(Vec::new())
    }

    /// The list was answered with the `names` of the directory's children.
    pub(crate) fn listed(&mut self, stamp: Stamp, names: &[impl AsRef<str>]) -> Vec<Output> {
        let Some(listing) = self.listing.take_if(|listing| listing.stamp == stamp) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let View { shown, foreign, highest, other_recipe } = self.read(names);
        self.meddled &= !listing.verifies;
        self.note_shown(&shown);
        self.drop_vanished(&listing, &shown, &mut out);
        if shown.keys().any(|id| self.own.lives(*id)) {
            self.adopt(foreign, highest);
            if let Some(recipe) = other_recipe {
                self.refuse_waiters(recipe, &mut out);
            }
        }
        self.gone.clear();
        self.end_watch();
        for id in shown.keys() {
            self.judge_try(*id, |prospect| prospect.is_blocked(), &mut out);
        }
        self.settle(out)
    }

    /// The list will not be answered. If one is still needed it is sent at once, so the caller
    /// makes its pause before it reports this.
    pub(crate) fn list_failed(&mut self, stamp: Stamp) -> Vec<Output> {
        if self.listing.take_if(|listing| listing.stamp == stamp).is_some() {
            self.gone.clear();
            self.end_watch();
        }
        self.settle(Vec::new())
    }

    /// The watched node is gone: its deletion was seen, or reading it was answered NoNode.
    pub(crate) fn watch_gone(&mut self, stamp: Stamp) -> Vec<Output> {
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.stamp == stamp) {
            watch.ended = true;
        }
        // The list under way may still show the node. Were the end applied now, the list would
        // bring the node back, and the mark could be lifted by a list sent before it was set.
        if self.listing.is_none() {
            self.end_watch();
        }
        self.settle(Vec::new())
    }

    /// The watch is spent on another change, or could not be armed; the node may still be there.
    /// If it is still needed it is armed at once.
    pub(crate) fn watch_spent(&mut self, stamp: Stamp) -> Vec<Output> {
        self.watch.take_if(|watch| watch.stamp == stamp && !watch.ended);
        self.settle(Vec::new())
    }

    /// The session is over: every acquisition that was not left is `Lost`, in queue order, and
    /// everything is forgotten. Answers that belong to it are ignored from now on.
    pub(crate) fn epoch_over(&mut self) -> Vec<Output> {
        let parked = self.parked.iter().map(|(id, _)| *id);
        let lost = self.own.acquisitions().chain(parked);
        let out = lost.map(Output::Lost).collect();
        *self = Self { next_stamp: self.next_stamp, ..Self::new(self.family, self.bound) };
        out
    }
}

/// What the caller looks at besides the commands.
impl Mirror {
    /// The first of our nodes that waits for its turn, while it watches a foreign one: it will be
    /// granted without another look, so it must know if it is removed itself.
    pub(crate) fn waits_for_foreign(&self) -> Option<NodeId> {
        self.watch.as_ref()?;
        self.own.first_waiter().map(|place| place.id)
    }
}

/// The decisions.
impl Mirror {
    /// What follows from a change: grants, then creates, then a list or else the watch.
    fn settle(&mut self, mut out: Vec<Output>) -> Vec<Output> {
        if !self.own.is_present() {
            self.forget(&mut out);
        }
        self.grant(&mut out);
        self.unpark(&mut out);
        if self.listing.is_none() {
            self.ask(&mut out);
        }
        out
    }

    /// Grants in queue order. Whatever keeps the first waiter back keeps back those behind it:
    /// either it blocks them too, or they conflict with the first waiter itself.
    fn grant(&mut self, out: &mut Vec<Output>) {
        while let Some(first) = self.own.first_waiter() {
            if !self.prospect(first).is_free() {
                return;
            }
            self.own.advance(first.id, Stage::Granted(first.number));
            out.push(Output::Grant(first.id));
        }
    }

    fn unpark(&mut self, out: &mut Vec<Output>) {
        while !self.is_full() {
            let Some((id, kind)) = self.parked.pop_front() else { return };
            out.push(self.start(id, kind, Mode::Wait));
        }
    }

    /// Asks for what the first waiter lacks. While a list is wanted the watch stays as it is.
    fn ask(&mut self, out: &mut Vec<Output>) {
        let prospect = self.own.first_waiter().map(|first| self.prospect(first));
        let verify = self.meddled && self.own.is_present();
        if prospect.as_ref().is_some_and(Prospect::wants_list) || verify || self.own.has_open_try()
        {
            out.push(Output::List(self.list()));
            return;
        }
        let target = prospect.and_then(|prospect| prospect.blocker).cloned();
        if self.watch.as_ref().map(|watch| &watch.node) != target.as_ref() {
            self.unwatch(out);
            self.watch = target.map(|node| {
                let stamp = self.stamp();
                out.push(Output::Watch(stamp, Arc::clone(&node.name)));
                Watch { stamp, node, ended: false }
            });
        }
    }

    fn prospect(&self, place: Place) -> Prospect<'_> {
        let Place { number, kind, .. } = place;
        let mut ahead = self.foreign.iter().rev().filter(|foreign| foreign.number < number);
        Prospect {
            beyond: self.known < Some(number),
            behind_own: self.own.conflicts_ahead(place),
            blocker: ahead.find(|foreign| foreign.kind.conflicts(kind)),
            marked: kind == Kind::Exclusive && self.mark.is_some_and(|mark| mark < number),
            outdated: self.outdated,
            doubtful: self.meddled,
        }
    }

    /// Ends the waiting of a try for which `verdict` says that it is blocked.
    fn judge_try(&mut self, id: NodeId, verdict: fn(&Prospect<'_>) -> bool, out: &mut Vec<Output>) {
        let open = self.own.get(id).filter(|own| own.is_open_try());
        let place = open.and_then(|own| own.place(id));
        if place.is_some_and(|place| verdict(&self.prospect(place))) {
            self.retire(id, out);
            out.push(Output::Blocked(id));
        }
    }
}

/// The bookkeeping.
impl Mirror {
    fn start(&mut self, id: NodeId, kind: Kind, mode: Mode) -> Output {
        // Without a node of ours that lives nothing is known, so a list will be wanted. A try
        // wants one that shows its own node, for what is known may be out of date.
        let wants_list = mode == Mode::Try || !self.own.is_present();
        let list = if wants_list && self.listing.is_none() { Some(self.list()) } else { None };
        let stage = Stage::Creating { shown: None, floor: self.known };
        self.own.insert(id, Own { kind, mode, stage });
        Output::Create(id, list)
    }

    fn retire(&mut self, id: NodeId, out: &mut Vec<Output>) {
        self.own.advance(id, Stage::Leaving);
        out.push(Output::Delete(id));
    }

    /// Sorts the names of a list into ours and foreign ones.
    fn read(&self, names: &[impl AsRef<str>]) -> View {
        let mut view = View::default();
        for name in names {
            match self.family.parse(name.as_ref()) {
                Child::Contender(contender) => {
                    view.highest = view.highest.max(Some(contender.number));
                    match contender.uuid().filter(|uuid| self.is_ours(*uuid)) {
                        Some(uuid) => {
                            view.shown.insert(uuid, contender.number);
                        }
                        None => {
                            view.foreign.insert(contender);
                        }
                    }
                }
                Child::OtherRecipe(recipe) => view.other_recipe = Some(recipe),
                Child::Other => {}
            }
        }
        view
    }

    fn note_shown(&mut self, shown: &BTreeMap<NodeId, Number>) {
        for (id, number) in shown {
            if let Some(Stage::Creating { floor, .. }) = self.own.stage(*id) {
                self.own.advance(*id, Stage::Creating { shown: Some(*number), floor });
            }
        }
    }

    /// A list that was sent while a node of ours lived shows it, unless someone deleted it.
    fn drop_vanished(
        &mut self,
        listing: &Listing,
        shown: &BTreeMap<NodeId, Number>,
        out: &mut Vec<Output>,
    ) {
        for id in &listing.expects {
            if self.own.lives(*id) && !shown.contains_key(id) {
                self.own.remove(*id);
                out.push(Output::Vanished(*id));
            }
        }
    }

    /// Takes over what a list that counts says.
    fn adopt(&mut self, foreign: BTreeSet<Contender>, highest: Option<Number>) {
        self.foreign = foreign;
        self.known = self.known.max(highest);
        self.mark = None;
        self.outdated = false;
        self.extend_known();
    }

    fn refuse_waiters(&mut self, recipe: &'static str, out: &mut Vec<Output>) {
        while let Some(waiter) = self.own.first_waiter() {
            self.retire(waiter.id, out);
            out.push(Output::Refuse(waiter.id, Refusal::OtherRecipe(recipe)));
        }
    }

    /// The number proof: nothing foreign stands between what is known and our next number. It
    /// holds as long as a node of ours lives, and with the last one `known` is forgotten.
    fn extend_known(&mut self) {
        while let Some(next) = self.known.and_then(|known| known.checked_add(1)) {
            if !self.own.has_living_at(next) {
                return;
            }
            self.known = Some(next);
        }
    }

    /// Applies the end of the watched node, if it has come.
    fn end_watch(&mut self) {
        if let Some(Watch { node, .. }) = self.watch.take_if(|watch| watch.ended) {
            // A list that no longer shows the node has told already what became of it.
            let was_alive = self.foreign.remove(&node);
            self.outdated |= was_alive;
            if was_alive && node.kind == Kind::Exclusive && self.family.has_downgrades() {
                self.mark = Some(self.mark.map_or(node.number, |mark| mark.min(node.number)));
            }
        }
    }

    fn unwatch(&mut self, out: &mut Vec<Output>) {
        out.extend(self.watch.take().map(|watch| Output::Unwatch(watch.stamp)));
    }

    fn forget(&mut self, out: &mut Vec<Output>) {
        self.known = None;
        self.foreign.clear();
        self.mark = None;
        self.outdated = false;
        self.meddled = false;
        self.unwatch(out);
    }

    fn list(&mut self) -> Stamp {
        let stamp = self.stamp();
        let (expects, verifies) = (self.own.living(), self.meddled);
        self.listing = Some(Listing { stamp, expects, verifies });
        stamp
    }

    fn stamp(&mut self) -> Stamp {
        self.next_stamp += 1;
        Stamp(self.next_stamp)
    }

    fn is_ours(&self, id: NodeId) -> bool {
        self.own.contains(id) || self.gone.contains(&id)
    }

    fn is_full(&self) -> bool {
        self.own.len() >= self.bound
    }
}

/// What a list shows.
#[derive(Debug, Default)]
struct View {
    shown: BTreeMap<NodeId, Number>,
    foreign: BTreeSet<Contender>,
    highest: Option<Number>,
    other_recipe: Option<&'static str>,
}
