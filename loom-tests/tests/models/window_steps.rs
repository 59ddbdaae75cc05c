//! Fixed windows with faulty steps, on a correct word: the models find each fault. The same window
//! without a fault passes.

use std::num::NonZeroU64;

use tollgate::algorithm::{Debt, GiveBack};
use tollgate_audit::Bound;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::races::FIXED;

/// Two permits in each 4 ns of the clock. The word is the window's number, with the count in its
/// last eight bits.
#[derive(Clone, Copy)]
struct Windows(Option<Fault>);

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// A late caller is counted in its own window, and the word goes back to that window.
    TurnsBack,
    /// A late caller is counted in the word's window, but told its own tick.
    TellsItsOwnTick,
    /// The permits that start a new window are not counted in it.
    ForgetsTheFirst,
    /// A new window begins with the count of the old one.
    KeepsTheCount,
    /// An undo does not check in which window the permit was taken.
    UndoesAcross,
    /// A charge is recorded in the late caller's window.
    ChargesTheOldOne,
}

use self::Fault::*;

const LIMIT: u64 = 2;
const PERIOD: u64 = 4;

/// The state that a word represents at a tick.
struct View {
    window: u64,
    taken: u64,
    at: Tick,
}

impl Windows {
    fn makes(&self, fault: Fault) -> bool {
        self.0 == Some(fault)
    }

    fn view(&self, word: u64, now: Tick) -> View {
        let (window, taken) = (word >> 8, word & 255);
        let current = now.as_nanos() / PERIOD;
        if window < current || window > current && self.makes(TurnsBack) {
            let taken = if self.makes(KeepsTheCount) { taken } else { 0 };
            return View {
                window: current,
                taken,
                at: now,
            };
        }
        let start = Tick::from_nanos(window * PERIOD);
        View {
            window,
            taken,
            at: if self.makes(TellsItsOwnTick) {
                now
            } else {
                now.max(start)
            },
        }
    }

    fn wait(view: &View, now: Tick) -> Duration {
        Tick::from_nanos((view.window + 1) * PERIOD).saturating_since(now)
    }
}

impl Algorithm for Windows {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let view = self.view(word, now);
        if view.taken + n > LIMIT {
            return Err(Denied::later(n, Self::wait(&view, now)));
        }
        let forgets = self.makes(ForgetsTheFirst) && word >> 8 < view.window;
        let counted = if forgets { 0 } else { n };
        let next = if n == 0 {
            word
        } else {
            (view.window << 8) + view.taken + counted
        };
        let granted = Granted::new(n, view.at)
            .with_remaining(LIMIT - view.taken - n, NonZeroU64::MIN)
            .with_mark(next);
        Ok((next, granted))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        LIMIT.saturating_sub(self.view(word, now).taken)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.view(word, now).taken == 0
    }
}

impl GiveBack for Windows {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let is_over = granted.mark() >> 8 != self.view(word, now).window;
        if is_over && !self.makes(UndoesAcross) {
            return (word, 0);
        }
        self.refund(word, now, granted.n())
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        let view = self.view(word, now);
        match n.min(view.taken) {
            0 => (word, 0),
            n => ((view.window << 8) + view.taken - n, n),
        }
    }
}

impl Debt for Windows {
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let current = now.as_nanos() / PERIOD;
        let word = if self.makes(ChargesTheOldOne) && current < word >> 8 {
            current << 8
        } else {
            word
        };
        let view = self.view(word, now);
        let debt = (view.taken + n).saturating_sub(LIMIT);
        let next = (view.window << 8) + view.taken + n;
        let wait = Self::wait(&view, now);
        (next, Charged::new(n, view.at).with_debt(debt, wait))
    }
}

fn subject(fault: Option<Fault>) -> Subject<Windows> {
    let quota = Quota::per(LIMIT, Duration::from_nanos(PERIOD));
    Subject::new(move || Windows(fault))
        .with_give_back()
        .with_debt()
        .promising(Bound::of_windows(quota).expect("a quota"))
        .at(7, 8)
}

fn races(subject: &Subject<Windows>, run: &mut Run) {
    FIXED.explore(subject, run);
}

#[test]
fn windows_without_a_fault() {
    subject(None).holds("window_steps::no fault, races", None, races);
    let name = "window_steps::no fault, different ticks";
    subject(None).holds(name, Some(3), suite::the_bound_at_different_ticks);
}

#[test]
fn each_fault_is_found_at_the_edge() {
    let faults = [
        ("turns back", TurnsBack, "an admission lowered the word"),
        ("tells its own tick", TellsItsOwnTick, "no order"),
        ("forgets the first", ForgetsTheFirst, "no order"),
        ("keeps the count", KeepsTheCount, "no order"),
        ("undoes across", UndoesAcross, "no order"),
        (
            "charges the old one",
            ChargesTheOldOne,
            "an admission lowered the word",
        ),
    ];
    for (name, fault, why) in faults {
        let name = format!("window_steps::races, {name}");
        subject(Some(fault)).fails(&name, why, None, races);
    }
}

#[test]
fn those_that_grant_too_much_break_the_bound() {
    let too_many = "more than was promised";
    let faults = [
        ("turns back", TurnsBack, "an admission lowered the word"),
        ("tells its own tick", TellsItsOwnTick, too_many),
        ("forgets the first", ForgetsTheFirst, too_many),
    ];
    for (name, fault, why) in faults {
        let name = format!("window_steps::different ticks, {name}");
        subject(Some(fault)).fails(&name, why, Some(3), suite::the_bound_at_different_ticks);
    }
}
