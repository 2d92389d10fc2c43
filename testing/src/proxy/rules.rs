//! Which frames meet which fault. Pure.
//!
//! A rule waits for the nth frame that fits it, counted over all connections since it was armed,
//! decides the fate of that one and is gone. Of several rules that are due at one frame the oldest
//! has it; the others wait for the next.

use tokio::sync::oneshot;

use super::fault::{Fault, Hold};
use super::frames::Label;
use super::operation::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    Request(Operation),
    Reply(Operation),
    /// A request of the second operation whose predecessor on its connection, pings apart, was one
    /// of the first.
    Follows(Operation, Operation),
}

/// What becomes of a frame.
#[derive(Debug)]
pub(super) enum Fate {
    Pass,
    /// It passes and its connection is reset.
    Last(Fault),
    /// It is lost and its connection is reset.
    Lost(Fault),
    /// It waits until the other end of the channel sends, or is reset with that end.
    Held(Fault, oneshot::Receiver<()>),
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    trigger: Trigger,
    /// How many fitting frames must come, the one that meets the fault included.
    missing: u32,
    action: Action,
    fault: Fault,
}

#[derive(Debug)]
enum Action {
    ResetAfter,
    Lose,
    Hold(oneshot::Receiver<()>),
}

impl Rules {
    pub(super) fn reset_after(&mut self, trigger: Trigger, nth: u32) -> Fault {
        self.arm(trigger, nth, Action::ResetAfter, Fault::new())
    }

    pub(super) fn lose(&mut self, trigger: Trigger, nth: u32) -> Fault {
        self.arm(trigger, nth, Action::Lose, Fault::new())
    }

    pub(super) fn hold(&mut self, trigger: Trigger, nth: u32) -> Hold {
        let fault = Fault::new();
        let (hold, released) = Hold::new(fault.clone());
        let _armed = self.arm(trigger, nth, Action::Hold(released), fault);
        hold
    }

    fn arm(&mut self, trigger: Trigger, nth: u32, action: Action, fault: Fault) -> Fault {
        assert!(nth > 0, "frames are counted from 1 and not from {nth}");
        self.rules.push(Rule { trigger, missing: nth, action, fault: fault.clone() });
        fault
    }

    /// The fate of a frame, given the request before it on its connection.
    pub(super) fn decide(&mut self, label: Label, previous: Option<Operation>) -> Fate {
        self.rules.retain_mut(Rule::is_armed);
        let mut due = None;
        for (index, rule) in self.rules.iter_mut().enumerate() {
            if !rule.trigger.fits(label, previous) {
                continue;
            }
            if rule.missing > 1 {
                rule.missing -= 1;
            } else if due.is_none() {
                due = Some(index);
            }
        }
        due.map_or(Fate::Pass, |index| self.rules.remove(index).fate())
    }
}

impl Rule {
    /// The test has let go of a hold that caught nothing: the rule must not catch anything later.
    fn is_armed(&mut self) -> bool {
        match &mut self.action {
            Action::ResetAfter | Action::Lose => true,
            Action::Hold(released) => {
                matches!(released.try_recv(), Err(oneshot::error::TryRecvError::Empty))
            }
        }
    }

    fn fate(self) -> Fate {
        match self.action {
            Action::ResetAfter => Fate::Last(self.fault),
            Action::Lose => Fate::Lost(self.fault),
            Action::Hold(released) => Fate::Held(self.fault, released),
        }
    }
}

impl Trigger {
    fn fits(self, label: Label, previous: Option<Operation>) -> bool {
        match self {
            Self::Request(operation) => label == Label::Request(operation),
            Self::Reply(operation) => label == Label::Reply(operation),
            Self::Follows(first, second) => {
                label == Label::Request(second) && previous == Some(first)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: Label = Label::Request(Operation::Create);

    fn passes(rules: &mut Rules, label: Label) -> bool {
        matches!(rules.decide(label, None), Fate::Pass)
    }

    #[test]
    fn the_nth_fitting_frame_meets_the_fault_and_no_later_one() {
        let mut rules = Rules::default();
        let _fault = rules.lose(Trigger::Request(Operation::Create), 2);
        assert!(passes(&mut rules, CREATE));
        assert!(passes(&mut rules, Label::Reply(Operation::Create)));
        assert!(passes(&mut rules, Label::Request(Operation::Delete)));
        assert!(matches!(rules.decide(CREATE, None), Fate::Lost(_)));
        assert!(passes(&mut rules, CREATE));
    }

    #[test]
    fn rules_that_are_due_together_take_one_frame_each() {
        let mut rules = Rules::default();
        let _first = rules.lose(Trigger::Request(Operation::Create), 1);
        let _second = rules.reset_after(Trigger::Request(Operation::Create), 1);
        assert!(matches!(rules.decide(CREATE, None), Fate::Lost(_)));
        assert!(matches!(rules.decide(CREATE, None), Fate::Last(_)));
        assert!(passes(&mut rules, CREATE));
    }

    #[test]
    fn a_pair_fits_only_in_its_order_and_without_another_between() {
        let (create, list) = (Operation::Create, Operation::GetChildren);
        let mut rules = Rules::default();
        let _fault = rules.lose(Trigger::Follows(create, list), 1);
        assert!(passes(&mut rules, Label::Request(list)));
        let after_sync = rules.decide(Label::Request(list), Some(Operation::Sync));
        assert!(matches!(after_sync, Fate::Pass));
        let after_create = rules.decide(Label::Request(list), Some(create));
        assert!(matches!(after_create, Fate::Lost(_)));
    }

    #[test]
    fn a_hold_that_was_let_go_catches_nothing() {
        let mut rules = Rules::default();
        drop(rules.hold(Trigger::Request(Operation::Create), 1));
        rules.hold(Trigger::Request(Operation::Create), 1).release();
        assert!(passes(&mut rules, CREATE));
        let _hold = rules.hold(Trigger::Request(Operation::Create), 1);
        assert!(matches!(rules.decide(CREATE, None), Fate::Held(..)));
    }

    #[test]
    #[should_panic(expected = "not from 0")]
    fn the_zeroth_frame_is_refused() {
        let _fault = Rules::default().lose(Trigger::Request(Operation::Create), 0);
    }
}
