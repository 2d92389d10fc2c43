//! The exhaustive search: breadth first, so that a violation comes with a shortest trace.

use std::collections::VecDeque;
use std::collections::hash_map::{DefaultHasher, Entry, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};

use super::Setup;
use super::step::Step;
use super::world::World;

/// What a search without violation has covered.
#[derive(Debug)]
pub(super) struct Coverage {
    pub(super) states: usize,
    pub(super) transitions: usize,
    pub(super) depth: usize,
}

/// Visits every reachable state of the model.
///
/// Fails with what is broken and the steps that lead there: a property of a step, a state in
/// which nothing is left to do though somebody waits, or steps of progress that lead in a circle.
pub(super) fn search(setup: &Setup) -> Result<Coverage, String> {
    let mut search = Search::default();
    let start = World::new(setup);
    search.visit(&start, None);
    let mut frontier = VecDeque::from([(0, start)]);
    let mut transitions = 0;
    while let Some((at, world)) = frontier.pop_front() {
        if search.origins.len() > setup.bound_of_states {
            return Err(format!("more than {} states", setup.bound_of_states));
        }
        let mut ends_here = true;
        for step in world.steps(setup) {
            let mut next = world.clone();
            next.take(step, setup).map_err(|broken| search.trace(at, Some(step), &broken))?;
            transitions += 1;
            let (to, is_new) = search.visit(&next, Some((at, step)));
            if step.is_progress() {
                ends_here = false;
                search.progress.push((at, to));
            }
            if is_new {
                frontier.push_back((to, next));
            }
        }
        if ends_here {
            world.check_end(setup).map_err(|broken| search.trace(at, None, &broken))?;
        }
    }
    search.check_progress()?;
    let depth = search.depths.last().map_or(0, |depth| *depth as usize);
    Ok(Coverage { states: search.origins.len(), transitions, depth })
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, transitions, depth } = self;
        write!(f, "{states} states, {transitions} transitions, depth {depth}")
    }
}

type State = u32;

#[derive(Debug, Default)]
struct Search {
    /// States by a hash of 128 bits.
    states: HashMap<(u64, u64), State>,
    origins: Vec<Option<(State, Step)>>,
    depths: Vec<u32>,
    progress: Vec<(State, State)>,
}

impl Search {
    fn visit(&mut self, world: &World, origin: Option<(State, Step)>) -> (State, bool) {
        let new = self.origins.len() as State;
        match self.states.entry((fingerprint(world, 0), fingerprint(world, 1))) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(place) => {
                place.insert(new);
                let depth = origin.map_or(0, |(from, _)| self.depths[from as usize] + 1);
                self.origins.push(origin);
                self.depths.push(depth);
                (new, true)
            }
        }
    }

    fn trace(&self, mut at: State, last: Option<Step>, broken: &str) -> String {
        let mut steps = Vec::from_iter(last);
        while let Some((from, step)) = self.origins[at as usize] {
            steps.push(step);
            at = from;
        }
        steps.reverse();
        format!("{broken}, after {} steps: {steps:?}", steps.len())
    }

    /// Takes away states that no step of progress leads to, until none is left: a circle would.
    fn check_progress(&self) -> Result<(), String> {
        let mut arrivals = vec![0_u32; self.origins.len()];
        let mut ways: Vec<Vec<State>> = vec![Vec::new(); self.origins.len()];
        for (from, to) in &self.progress {
            arrivals[*to as usize] += 1;
            ways[*from as usize].push(*to);
        }
        let all = 0..self.origins.len() as State;
        let mut open: Vec<State> = all.filter(|state| arrivals[*state as usize] == 0).collect();
        let mut removed = 0;
        while let Some(state) = open.pop() {
            removed += 1;
            for to in &ways[state as usize] {
                arrivals[*to as usize] -= 1;
                if arrivals[*to as usize] == 0 {
                    open.push(*to);
                }
            }
        }
        match arrivals.iter().position(|count| *count > 0) {
            None => Ok(()),
            Some(state) => {
                let left = arrivals.len() - removed;
                let broken = format!("progress may go in circles among {left} states");
                Err(self.trace(state as State, None, &broken))
            }
        }
    }
}

fn fingerprint(world: &World, seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    world.hash(&mut hasher);
    hasher.finish()
}
