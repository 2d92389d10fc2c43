//! The whole of the model: server, process, foreign contenders, and what must hold.

use std::collections::BTreeSet;

use super::super::{Mirror, Mode, NodeId};
use super::process::{Local, Process};
use super::server::{Node, Owner, Server};
use super::step::{Event, Move, Step};
use super::{Contestant, Setup};
use crate::queue::node::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Foreign {
    Idle,
    Waiting,
    Holding,
    /// Holds as a writer and has its reader's node.
    Downgrading,
    /// Holds as a reader, with the number it had as a writer.
    Downgraded,
    /// Believes in nothing any more, but its nodes are there.
    Expired,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    server: Server,
    process: Process,
    foreign: Vec<Foreign>,
    cuts: u8,
    expiries: u8,
    foreign_expiries: u8,
    writes: u8,
    removals: u8,
    /// Acquisitions whose nodes were removed: what they hold is void.
    removed: BTreeSet<NodeId>,
    /// How many cuts and expiries may come, all kinds together.
    faults: u8,
    /// The highest tokens granted: of all, and of the exclusive holds.
    highest: u8,
    highest_exclusive: u8,
    /// Whether each local acquisition was granted, or may fail as a try: it met a rival.
    excused: Vec<bool>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            server: Server::new(setup.family),
            process: Process::new(setup),
            foreign: vec![Foreign::Idle; setup.foreign.len()],
            cuts: setup.cuts,
            expiries: setup.expiries,
            foreign_expiries: setup.foreign_expiries,
            writes: setup.writes,
            removals: setup.removals,
            removed: BTreeSet::new(),
            faults: setup.faults,
            highest: 0,
            highest_exclusive: 0,
            excused: vec![false; setup.locals.len()],
        }
    }

    /// Every step that is possible now.
    pub(super) fn steps(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = Vec::new();
        self.local_steps(setup, &mut steps);
        self.link_steps(&mut steps);
        for index in 0..self.foreign.len() {
            self.foreign_steps(index, setup, &mut steps);
        }
        if self.writes > 0 && !self.server.watches.is_empty() {
            steps.push(Step::Befall(Event::Write));
        }
        if self.removals > 0 {
            let nodes = self.server.nodes.iter().enumerate();
            let ours = nodes.filter(|(_, node)| node.owner == Owner::Process(self.process.epoch));
            steps.extend(ours.map(|(index, _)| Step::Befall(Event::Remove(index))));
        }
        if setup.reaps && self.server.can_be_reaped() {
            steps.push(Step::Befall(Event::Reap));
        }
        steps
    }

    fn local_steps(&self, setup: &Setup, steps: &mut Vec<Step>) {
        let locals = &self.process.locals;
        for (index, local) in locals.iter().enumerate() {
            // Equal contenders arrive in the order of their index.
            let is_next = |twin: usize| setup.locals[twin] != setup.locals[index];
            match local {
                Local::Idle if (0..index).all(|i| is_next(i) || locals[i] != Local::Idle) => {
                    steps.push(Step::Arrive(index));
                }
                Local::Waiting(_) if setup.cancels => steps.push(Step::Cancel(index)),
                Local::Holding(_) => steps.push(Step::Release(index)),
                Local::Idle | Local::Waiting(_) | Local::Done => {}
            }
        }
        let any = 0..self.process.answers.len();
        let wire = 0..self.process.answers.len().min(1);
        let range = if setup.in_wire_order { wire } else { any };
        steps.extend(range.filter(|index| self.process.may_handle(*index)).map(Step::Handle));
    }

    fn link_steps(&self, steps: &mut Vec<Step>) {
        let process = &self.process;
        if process.is_connected && !process.pipe.is_empty() {
            steps.push(Step::Serve);
        }
        if !process.ghosts.is_empty() {
            steps.push(Step::Befall(Event::ServeGhost));
        }
        if !process.is_connected {
            steps.push(Step::Befall(Event::Reattach));
        }
        let is_settled = process.dying.is_none();
        if !is_settled {
            steps.push(Step::Befall(Event::Vanish));
        }
        if self.faults > 0 && self.cuts > 0 && is_settled && process.is_connected {
            for kept in 0..=process.answers.len() {
                steps.extend(
                    (0..=process.pipe.len()).map(|failed| Step::Befall(Event::Cut(kept, failed))),
                );
            }
        }
        if self.faults > 0 && self.expiries > 0 && is_settled && self.has_begun() {
            steps.push(Step::Expire);
        }
    }

    /// An expiry before anything has happened is none.
    fn has_begun(&self) -> bool {
        self.process.locals.iter().any(|local| *local != Local::Idle)
    }

    fn foreign_steps(&self, index: usize, setup: &Setup, steps: &mut Vec<Step>) {
        let is_twin = |twin: &usize| setup.foreign[*twin] == setup.foreign[index];
        let comes_first = |twin: usize| self.foreign[twin] != Foreign::Idle;
        match self.foreign[index] {
            Foreign::Idle if (0..index).filter(is_twin).all(comes_first) => {
                steps.push(Step::Foreign(index, Move::Arrive));
            }
            Foreign::Waiting => {
                if self.node_of(index).is_some_and(|node| self.server.is_first(node)) {
                    steps.push(Step::Foreign(index, Move::Grant));
                }
                if setup.foreign_cancels {
                    steps.push(Step::Foreign(index, Move::Cancel));
                }
            }
            Foreign::Holding => {
                steps.push(Step::Foreign(index, Move::Release));
                if setup.foreign[index] == Contestant::Downgrader {
                    steps.push(Step::Foreign(index, Move::Downgrade));
                }
            }
            Foreign::Downgrading => steps.push(Step::Foreign(index, Move::DropWriter)),
            Foreign::Downgraded => steps.push(Step::Foreign(index, Move::Release)),
            Foreign::Expired => steps.push(Step::Foreign(index, Move::Vanish)),
            Foreign::Idle | Foreign::Done => {}
        }
        let has_nodes =
            !matches!(self.foreign[index], Foreign::Idle | Foreign::Expired | Foreign::Done);
        if has_nodes && self.faults > 0 && self.foreign_expiries > 0 {
            steps.push(Step::Foreign(index, Move::Expire));
        }
    }

    /// Takes a step and says what it broke.
    pub(super) fn take(&mut self, step: Step, setup: &Setup) -> Result<(), String> {
        let granted = match step {
            Step::Arrive(index) => self.process.arrive(index, setup)?,
            Step::Cancel(index) | Step::Release(index) => self.process.leave(index, setup)?,
            Step::Handle(index) => self.process.handle(index, setup)?,
            Step::Expire => {
                self.expiries -= 1;
                self.faults -= 1;
                self.server.watches.clear();
                self.process.expire(setup)?
            }
            Step::Serve => {
                self.process.serve(&mut self.server)?;
                Vec::new()
            }
            Step::Befall(event) => {
                self.befall(event);
                Vec::new()
            }
            Step::Foreign(index, act) => {
                self.move_foreign(index, act, setup)?;
                Vec::new()
            }
        };
        for index in granted {
            self.check_local_grant(index, setup)?;
        }
        self.check_tries(setup)?;
        self.check_first_waiter()?;
        self.process.normalize(&mut self.server);
        Ok(())
    }

    fn befall(&mut self, event: Event) {
        match event {
            Event::ServeGhost => self.process.serve_ghost(&mut self.server),
            Event::Cut(kept, failed) => {
                self.cuts -= 1;
                self.faults -= 1;
                self.process.cut(kept, failed, &mut self.server);
            }
            Event::Reattach => self.process.reattach(&mut self.server),
            Event::Vanish => {
                if let Some(epoch) = self.process.dying.take() {
                    self.process.ghosts.clear();
                    self.delete(|node| node.owner == Owner::Process(epoch));
                }
            }
            Event::Remove(index) => {
                self.removals -= 1;
                let id = self.server.nodes[index].id;
                self.removed.insert(id);
                self.delete(|node| node.id == id);
                self.process.miss(id);
            }
            Event::Write => {
                self.writes -= 1;
                let events = self.server.write_watched();
                self.process.fire(events);
            }
            Event::Reap => self.server.reap(),
        }
    }

    fn move_foreign(&mut self, index: usize, act: Move, setup: &Setup) -> Result<(), String> {
        self.foreign[index] = match act {
            Move::Arrive => {
                let id = NodeId::from_u128(0xF000_0000 + index as u128);
                self.server.create(id, owner(index), setup.foreign[index].kind());
                Foreign::Waiting
            }
            Move::Grant => {
                let node = self.node_of(index).cloned().expect("a waiter has its node");
                self.check_grant(&node, None, Some(index), setup)?;
                Foreign::Holding
            }
            Move::Downgrade => {
                self.server.downgrade(owner(index));
                Foreign::Downgrading
            }
            Move::DropWriter => {
                self.delete(|node| node.owner == owner(index) && node.kind == Kind::Exclusive);
                Foreign::Downgraded
            }
            Move::Cancel | Move::Release | Move::Vanish => {
                self.delete(|node| node.owner == owner(index));
                Foreign::Done
            }
            Move::Expire => {
                self.foreign_expiries -= 1;
                self.faults -= 1;
                Foreign::Expired
            }
        };
        Ok(())
    }

    fn delete(&mut self, is_doomed: impl Fn(&Node) -> bool) {
        let events = self.server.delete(is_doomed);
        self.process.fire(events);
    }

    fn node_of(&self, index: usize) -> Option<&Node> {
        self.server.nodes.iter().find(|node| node.owner == owner(index))
    }

    fn check_local_grant(&mut self, index: usize, setup: &Setup) -> Result<(), String> {
        let Local::Holding(id) = self.process.locals[index] else { return Ok(()) };
        self.excused[index] = true;
        if self.removed.contains(&id) {
            return Ok(());
        }
        let node = self.server.find(id).cloned();
        let node = node.ok_or_else(|| format!("{id} was granted without a node"))?;
        if node.owner != Owner::Process(self.process.epoch) {
            return Err(format!("{id} was granted with a node of another session"));
        }
        self.check_grant(&node, Some(index), None, setup)
    }

    /// Exclusion, and tokens that rise, at the grant of a local or a foreign contender.
    fn check_grant(
        &mut self,
        node: &Node,
        local: Option<usize>,
        foreign: Option<usize>,
        setup: &Setup,
    ) -> Result<(), String> {
        let is_exclusive = node.kind == Kind::Exclusive;
        let locals = self.process.locals.iter().enumerate();
        let holds_here = locals.filter_map(|(index, held)| match held {
            Local::Holding(id) if !self.removed.contains(id) && Some(index) != local => {
                Some(setup.locals[index].kind)
            }
            Local::Holding(_) | Local::Idle | Local::Waiting(_) | Local::Done => None,
        });
        let elsewhere =
            self.foreign.iter().enumerate().filter(|(index, _)| Some(*index) != foreign);
        let holds_elsewhere = elsewhere.filter_map(|(index, held)| match held {
            Foreign::Holding | Foreign::Downgrading => Some(setup.foreign[index].kind()),
            Foreign::Downgraded => Some(Kind::Shared),
            Foreign::Idle | Foreign::Waiting | Foreign::Expired | Foreign::Done => None,
        });
        if holds_here.chain(holds_elsewhere).any(|kind| kind.conflicts(node.kind)) {
            return Err(format!("{} was granted beside another hold", node.name));
        }
        let below = if is_exclusive { self.highest } else { self.highest_exclusive };
        if node.token <= below {
            return Err(format!("{} has token {} after {below}", node.name, node.token));
        }
        self.highest = self.highest.max(node.token);
        if is_exclusive {
            self.highest_exclusive = self.highest_exclusive.max(node.token);
        }
        Ok(())
    }

    /// A try may fail only if something conflicted with it at some time since it arrived. One
    /// that was cancelled, or met a hold of ours that is void, proves nothing.
    fn check_tries(&mut self, setup: &Setup) -> Result<(), String> {
        if setup.cancels || setup.removals > 0 {
            return Ok(());
        }
        for (index, local) in self.process.locals.iter().enumerate() {
            let acquisition = setup.locals[index];
            if acquisition.mode != Mode::Try || *local == Local::Idle || self.excused[index] {
                continue;
            }
            let is_rival = |node: &Node| {
                node.kind.conflicts(acquisition.kind) && *local != Local::Waiting(node.id)
            };
            self.excused[index] = self.server.nodes.iter().any(is_rival);
            if *local == Local::Done && !self.excused[index] {
                return Err(format!("try {index} failed though nothing was in its way"));
            }
        }
        Ok(())
    }

    /// The invariant that no state leaves a first waiter with nobody to wake it.
    fn check_first_waiter(&self) -> Result<(), String> {
        let mirror = &self.process.mirror;
        let Some(first) = mirror.own.first_waiter() else { return Ok(()) };
        let is_cared_for =
            mirror.listing.is_some() || mirror.watch.is_some() || mirror.own.conflicts_ahead(first);
        if is_cared_for { Ok(()) } else { Err(format!("{first:?} is left alone")) }
    }

    /// What must hold where nothing is left to do.
    pub(super) fn check_end(&self, setup: &Setup) -> Result<(), String> {
        let waits = |local: &Local| matches!(local, Local::Waiting(_));
        if self.process.locals.iter().any(waits) || self.foreign.contains(&Foreign::Waiting) {
            return Err("a waiter is stuck".to_owned());
        }
        if let Some(node) = self.server.nodes.first() {
            return Err(format!("{} is left behind", node.name));
        }
        let mirror = &self.process.mirror;
        let blank =
            Mirror { next_stamp: mirror.next_stamp, ..Mirror::new(setup.family, setup.bound) };
        if *mirror != blank {
            return Err("the mirror remembers something at the end".to_owned());
        }
        Ok(())
    }
}

fn owner(index: usize) -> Owner {
    Owner::Foreign(index as u8)
}
