//! The moving window of limits (PyPI), microseconds: a [`SlidingLog`](tollgate::SlidingLog).
//!
//! It has two windows: a hit is refused for what is a window old or younger, and all that it prints
//! (`in_window`, `remaining`, `reset`, and the answer to a test) is of what is younger. Ours is the second.
//! What is in the window and what remains is compared as it was before the call, so that both can be seen to
//! have been in one state when they decide differently.

use std::time::Duration;

use tollgate_replay::{Class, Comparison, Direction, Header, Malformed, Op, Replay, Source};

use super::log_gate::{Entries, LogGate};

/// What is exactly a window old counts, but for a hit alone. What it has admitted is then taken over.
static STILL_COUNTS: Class = Class {
    name: "at a hit, what is exactly a window old still counts",
    directions: &[Direction::TheyAdmitLess],
};

/// It looks for the last hit before the first that is older, and finds none: the last in its list is the
/// first hit that it remembers, and it remembers all.
static FIRST_EVER: Class = Class {
    name: "with nothing in the window its reset is that of the first hit of all",
    directions: &[Direction::TheyAdmitLess, Direction::OtherValue],
};

pub(crate) struct LimitsMovingWindow;

impl Source for LimitsMovingWindow {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("limits ") && header.algorithm == "moving-window"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let window = Duration::from_micros(header.config.positive("window_us")?);
        Ok(Box::new(MovingTrace {
            gate: LogGate::new(header.config.positive("limit")?, window)?,
            theirs: Entries::new(),
        }))
    }
}

struct MovingTrace {
    gate: LogGate,
    /// What they admitted, in our ticks.
    theirs: Entries,
}

impl Replay for MovingTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t_ns = tick(op)?;
        self.gate.set_time(t_ns);
        if op.name == "clear" {
            self.theirs.clear();
            self.gate.hold(Entries::new())?;
            return Ok(Comparison::without_decision(op));
        }
        let before = (self.gate.counted(), self.gate.available());
        let mut taken = 0;
        let comparison = match op.name.as_str() {
            "stats" => Comparison::without_decision(op),
            "test" => {
                let ours = self.gate.has(op.args.u64("n")?);
                Comparison::decision(op, op.result.flag("ok")?, ours)
            }
            "hit" => {
                let (n, ok) = (op.args.u64("n")?, op.result.flag("ok")?);
                let ours = self.gate.ask(n, t_ns).ok();
                if ok {
                    taken = n;
                    self.theirs.push((t_ns, n));
                }
                Comparison::decision(op, ok, ours)
            }
            _ => return Err(op.unknown()),
        };
        let theirs = &op.result;
        let in_window = theirs.u64("in_window")?.checked_sub(taken);
        let reset = self.gate.expires_in().unwrap_or(self.gate.window_ns());
        Ok(comparison
            .and("in_window before", in_window, before.0)
            .and(
                "remaining before",
                theirs.u64("remaining")? + taken,
                before.1,
            )
            .and("reset", theirs.u64("reset")?, (t_ns + reset) / 1000))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let same = ["in_window before", "remaining before"];
        if !same.iter().all(|field| comparison.agrees_on(field)) {
            return None;
        }
        let t_ns = tick(op).ok()?;
        match field {
            "ok" => {
                let old = self.taken_at(t_ns.checked_sub(self.gate.window_ns())?);
                let remaining = op.result.u64("remaining").ok()?;
                let fits = op.args.u64("n").ok()? + old > remaining;
                (op.name == "hit" && old > 0 && fits).then_some(&STILL_COUNTS)
            }
            "reset" => {
                let (first, _) = self.theirs.first()?;
                let reset = op.result.u64("reset").ok()? * 1000;
                let is_first = reset == first + self.gate.window_ns() && reset <= t_ns;
                (is_first && op.result.u64("in_window").ok()? == 0).then_some(&FIRST_EVER)
            }
            _ => None,
        }
    }

    /// After we admitted what they refused.
    fn take_over(&mut self, _op: &Op) -> Result<bool, Malformed> {
        if self.gate.entries() == self.theirs {
            return Ok(false);
        }
        self.gate.hold(self.theirs.clone())?;
        Ok(true)
    }
}

impl MovingTrace {
    /// How many they admitted at this tick.
    fn taken_at(&self, t_ns: u64) -> u64 {
        let then = self.theirs.iter().filter(|(t, _)| *t == t_ns);
        then.map(|(_, n)| n).sum()
    }
}

fn tick(op: &Op) -> Result<u64, Malformed> {
    Ok(op.args.u64("t")?.saturating_mul(1000))
}
