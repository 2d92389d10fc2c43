//! Larger queues, along random schedules.
//!
//! A failure names its seed; `MIRROR_SEED=<seed>` runs that schedule alone and prints its steps.

use super::Setup;
use super::step::Step;
use super::world::World;

/// More steps of progress than any schedule needs once nothing new happens.
const MOST_STEPS: usize = 5_000;

/// One in so many steps is picked among all; the others are arrivals and progress, or the
/// cancels and faults would end most schedules before anyone holds.
const ONE_IN: u64 = 12;

/// A generator of numbers that look random and follow from their seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Runs one schedule to its end and answers how many steps it had.
fn run(setup: &Setup, seed: u64, trace: &mut Vec<Step>) -> Result<usize, String> {
    let mut dice = Dice(seed);
    let mut world = World::new(setup);
    while trace.len() < MOST_STEPS {
        let mut steps = world.steps(setup);
        let is_eventful = dice.below(ONE_IN) == 0;
        steps.retain(|step| is_eventful || step.is_progress() || step.is_arrival());
        if steps.is_empty() {
            if is_eventful {
                world.check_end(setup)?;
                return Ok(trace.len());
            }
            continue;
        }
        let step = steps[dice.below(steps.len() as u64) as usize];
        trace.push(step);
        world.take(step, setup)?;
    }
    Err(format!("no end after {MOST_STEPS} steps"))
}

fn check(setup: &Setup, schedules: u64) {
    let replayed = std::env::var("MIRROR_SEED").ok();
    let replayed = replayed.map(|seed| seed.parse::<u64>().expect("MIRROR_SEED is a number"));
    let seeds = replayed.map_or(0..schedules, |seed| seed..seed + 1);
    println!("{}: seeds {seeds:?}", setup.name);
    let mut steps = 0;
    for seed in seeds {
        let mut trace = Vec::new();
        match run(setup, seed, &mut trace) {
            Ok(count) => steps += count,
            Err(broken) => panic!("{}: MIRROR_SEED={seed}: {broken}: {trace:?}", setup.name),
        }
        if replayed.is_some() {
            println!("{trace:?}");
        }
    }
    println!("{}: {steps} steps", setup.name);
    assert!(steps > 0, "{} ran nothing", setup.name);
}

fn eventful(name: &'static str) -> Setup {
    Setup {
        cancels: true,
        foreign_cancels: true,
        reaps: true,
        cuts: 3,
        expiries: 2,
        foreign_expiries: 1,
        faults: 4,
        writes: 2,
        ..Setup::new(name)
    }
}

#[test]
fn a_large_mutex_keeps_its_promises_on_every_schedule() {
    check(&eventful("WWWWWw/WWWW"), 2_000);
}

#[test]
fn a_large_read_write_lock_keeps_its_promises_on_every_schedule() {
    check(&eventful("WWRRwr/DDRW"), 2_000);
}

#[test]
fn a_large_queue_above_its_bound_keeps_its_promises_on_every_schedule() {
    check(&Setup { bound: 3, ..eventful("WRWRWr/DRW") }, 1_000);
}
