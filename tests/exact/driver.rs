//! Runs a limiter and the model side by side and compares all that the limiter says.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use tollgate::{
    Algorithm, At, Debt, Denied, Forecast, GiveBack, Granted, Limiter, ManualClock, Tick,
};

use crate::model::{FIFTY_YEARS, Mark, Model, Span};
use crate::random::Random;

const YEAR: u64 = FIFTY_YEARS / 50;

/// How often each thing was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    pub(crate) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }
}

/// A grant that may be undone, and where the model says that it stands.
struct Kept {
    granted: Granted,
    mark: Mark,
}

pub(crate) struct Run<'l, A> {
    gate: &'l Limiter<A, ManualClock>,
    pub(crate) model: Model,
    random: Random,
    pub(crate) now: u64,
    kept: Vec<Kept>,
    pub(crate) seen: Seen,
    /// What a failure is reported with.
    label: String,
}

impl<'l, A: Algorithm + GiveBack + Debt + Forecast + Debug> Run<'l, A> {
    pub(crate) fn new(
        gate: &'l Limiter<A, ManualClock>,
        model: Model,
        seed: u64,
        now: u64,
        label: String,
    ) -> Self {
        Self {
            gate,
            model,
            random: Random(seed),
            now,
            kept: Vec::new(),
            seen: Seen::default(),
            label,
        }
    }

    /// A few verbs at each of so many moments. Where the limiter is not exact it is fresh for a
    /// clock that has gone back by more than a year: its own clock is slower by up to a third of a
    /// nanosecond in 50 years, and what is given back so much earlier counts by that much more.
    pub(crate) fn operate(&mut self, moments: u64) {
        for _ in 0..moments {
            let before = self.now;
            self.now = self.moment();
            self.gate.clock().set(Tick::from_nanos(self.now));
            if !self.model.exact && self.now < before.saturating_sub(YEAR) {
                self.reset();
            }
            for _ in 0..1 + self.random.below(3) {
                self.any_verb();
            }
        }
    }

    fn at(&self, now: u64) -> At<'l, A> {
        self.gate.at(Tick::from_nanos(now))
    }

    /// The next moment: the same, one that matters or one beside it, a later one, an earlier one.
    fn moment(&mut self) -> u64 {
        let burst = self.model.burst();
        let still = self.now;
        let full = self.model.full_after(still).hi as u64;
        let target = match self.random.below(20) {
            0..=4 => still,
            5 => still + 1,
            6 => still + self.random.upto(1_000_000),
            7..=10 => {
                let n = self.random.upto(burst);
                self.beside(still + self.model.wait(still, n).lo as u64)
            }
            11 => self.beside(self.model.full_tick()),
            12 => self.beside(still + self.model.wait(still, 0).lo as u64),
            13 | 14 => still + self.random.upto(full.saturating_mul(2)),
            15 => still.saturating_sub(self.random.upto(1000)),
            16 => still.saturating_sub(self.random.upto(full)),
            17 => still + full + self.random.upto(1_000_000_000),
            18 if self.random.one_in(50) => self.random.below(FIFTY_YEARS),
            19 if self.random.one_in(50) => 0,
            _ => self.beside(still + self.model.wait(still, 1).lo as u64),
        };
        target.min(FIFTY_YEARS)
    }

    fn beside(&mut self, tick: u64) -> u64 {
        (tick + self.random.below(3)).saturating_sub(1)
    }

    fn any_count(&mut self) -> u64 {
        let burst = self.model.burst();
        let available = self.model.available(self.now).hi as u64;
        match self.random.below(16) {
            0 => 0,
            1 => burst,
            2 => burst + 1,
            3 => available,
            4 => available + 1,
            5 if self.random.one_in(8) => u64::MAX,
            6..=9 => 1 + self.random.upto(burst - 1),
            _ => 1,
        }
    }

    fn any_verb(&mut self) {
        match self.random.below(32) {
            0..=11 => {
                let n = self.any_count();
                self.acquire(n);
            }
            12..=14 => self.take_up_to(),
            15..=17 => self.undo(),
            18..=20 => self.refund(),
            21..=23 => self.charge(),
            24 | 25 => self.available(),
            26..=28 => self.time_until(),
            29 | 30 => self.is_idle(),
            _ if self.random.one_in(8) => self.reset(),
            _ => self.charge_the_moon(),
        }
    }

    #[track_caller]
    fn check(&self, holds: bool, what: &str, got: impl Debug, right: impl Debug) {
        assert!(
            holds,
            "{}: {what} is {got:?}, but {right:?} is right, at {} after {} operations: {:?}",
            self.label,
            self.now,
            self.seen.count("operation"),
            self.model,
        );
    }

    #[track_caller]
    fn within(&self, what: &str, got: impl Into<u128>, right: Span) {
        let got = got.into();
        self.check(right.has(got), what, got, right);
    }

    /// Counts an operation that was compared.
    fn done(&mut self, verb: &'static str) {
        self.seen.note(verb);
        self.seen.note("operation");
    }

    fn decide(&mut self, n: u64) -> Result<Granted, Denied> {
        let now = Tick::from_nanos(self.now);
        match (self.random.below(3), n) {
            (0, 1) => self.gate.try_acquire(),
            (0, _) => self.gate.try_acquire_n(n),
            (1, 1) => self.gate.try_acquire_at(now),
            (1, _) => self.gate.try_acquire_n_at(n, now),
            (_, 1) => self.at(self.now).try_acquire(),
            (_, _) => self.at(self.now).try_acquire_n(n),
        }
    }

    pub(crate) fn acquire(&mut self, n: u64) -> bool {
        let answer = self.decide(n);
        self.done("acquire");
        if n > self.model.burst() {
            let never = Denied::never(n, self.model.burst());
            self.check(answer == Err(never), "the denial", answer, never);
            self.check(never.is_permanent(), "for good", never, "permanent");
            self.seen.note("never");
            return false;
        }
        let wait = self.model.wait(self.now, n);
        match answer {
            Ok(granted) => {
                self.check(wait.lo == 0, "the answer", granted, wait);
                self.check(granted.n() == n, "n", granted.n(), n);
                self.seen.note(if n == 0 { "granted 0" } else { "granted" });
                self.granted(granted);
            }
            Err(denied) => {
                self.check(wait.hi > 0, "the answer", denied, wait);
                self.check(denied.requested() == n, "requested", denied, n);
                self.denied(n, denied, wait);
            }
        }
        answer.is_ok()
    }

    /// Compares what a grant says, and keeps some to be undone.
    fn granted(&mut self, granted: Granted) {
        self.model.take(self.now, granted.n());
        let at = Tick::from_nanos(self.now);
        self.check(granted.at() == at, "at", granted.at(), at);
        let left = self.model.available(self.now);
        self.within("remaining", granted.remaining(), left);
        let full = self.model.full_after(self.now);
        self.within("reset_after", granted.reset_after().as_nanos(), full);
        let mark = self.model.mark();
        let place = self.random.below(8) as usize;
        if place < self.kept.len() {
            self.kept[place] = Kept { granted, mark };
        } else {
            self.kept.push(Kept { granted, mark });
        }
    }

    fn denied(&mut self, n: u64, denied: Denied, wait: Span) {
        let Some(retry_after) = denied.retry_after() else {
            // It may only say that waiting doesn't help if it would take past 50 years.
            let due = i128::from(self.now) + wait.hi;
            let beyond = i128::from(FIFTY_YEARS) < due;
            self.check(beyond, "the denial", denied, wait);
            self.seen.note("stuck");
            return;
        };
        self.check(!denied.is_permanent(), "for good", denied, "no");
        let retry_after = retry_after.as_nanos();
        self.within("retry_after", retry_after, wait);
        self.check(retry_after > 0, "retry_after", retry_after, "more than 0");
        self.seen.note(if n == 0 { "in debt" } else { "later" });
        if retry_after as i128 > wait.lo {
            self.seen.note("a nanosecond late");
        }
        // A nanosecond earlier it is denied, and then it is there.
        let due = self.now + retry_after as u64;
        let before = self.at(due - 1).try_acquire_n(n);
        self.check(before.is_err(), "the answer before", before, "a denial");
        let then = self.at(due).time_until(n);
        self.check(then.is_some_and(|t| t.is_zero()), "the wait then", then, 0);
        self.done("acquire before its time");
    }

    fn take_up_to(&mut self) {
        let n = self.any_count();
        let available = self.model.available(self.now);
        let granted = self.gate.take_up_to(n);
        self.done("take_up_to");
        let right = Span {
            lo: available.lo.min(n.into()),
            hi: available.hi.min(n.into()),
        };
        self.within("n", granted.n(), right);
        let part = granted.n() > 0 && granted.n() < n;
        self.seen.note(if part {
            "a part taken"
        } else {
            "all or none taken"
        });
        self.granted(granted);
    }

    fn undo(&mut self) {
        let Some(last) = self.kept.len().checked_sub(1) else {
            return;
        };
        let place = self.random.below(last as u64 + 1) as usize;
        let Kept { granted, mark } = self.kept.swap_remove(place);
        if !self.model.knows(mark) {
            return;
        }
        let right = self.model.undo(self.now, granted.n(), mark);
        let back = self.gate.undo(granted);
        self.done("undo");
        self.within("undone", back, right);
        self.seen.note(match back {
            0 => "none undone",
            _ if back < granted.n() => "some undone",
            _ => "all undone",
        });
    }

    fn refund(&mut self) {
        let n = self.any_count();
        let right = self.model.refund(self.now, n);
        let back = self.gate.refund(n);
        self.done("refund");
        self.within("refunded", back, right);
        self.seen
            .note(if back < n { "refund cut" } else { "refund" });
    }

    fn charge(&mut self) {
        let n = self.any_count().min(self.model.chargeable(self.now));
        let charged = self.gate.charge(n);
        self.done("charge");
        self.check(charged.n() == n, "charged", charged, n);
        self.charged(charged);
    }

    fn charged(&mut self, charged: tollgate::Charged) {
        let at = Tick::from_nanos(self.now);
        self.check(charged.at() == at, "at", charged.at(), at);
        self.model.take(self.now, charged.n());
        let debt = self.model.debt(self.now);
        self.within("debt", charged.debt(), debt);
        let clear = self.model.wait(self.now, 0);
        if charged.clear_after() == Duration::MAX {
            // Never, it says, as may be said of what is paid past 50 years.
            let beyond = i128::from(FIFTY_YEARS) < i128::from(self.now) + clear.hi;
            self.check(beyond, "clear_after", charged, clear);
            self.seen.note("never cleared");
        } else {
            self.within("clear_after", charged.clear_after().as_nanos(), clear);
        }
        let owes = charged.debt() > 0;
        let free = self.at(self.now).try_acquire_n(0);
        self.check(free.is_ok() != owes, "n = 0", free, charged);
        self.check(
            owes != charged.clear_after().is_zero(),
            "debt",
            charged,
            "both or neither",
        );
        self.seen.note(if owes { "into debt" } else { "charged" });
    }

    /// Charges more than a burst of debt, which the word may not hold in full, and starts again.
    fn charge_the_moon(&mut self) {
        let n = self.random.next() >> self.random.below(64);
        let room = self.model.chargeable(self.now);
        let charged = self.gate.charge(n);
        self.done("charge");
        let all = n.min(room);
        self.check(
            charged.n() >= all && charged.n() <= n,
            "charged",
            charged,
            n,
        );
        if charged.n() < n {
            self.seen.note("charge cut");
        }
        if self.model.exact {
            self.charged(charged);
            self.acquire(1);
        }
        self.reset();
    }

    fn available(&mut self) {
        let available = self.gate.available();
        self.done("available");
        self.within("available", available, self.model.available(self.now));
    }

    fn time_until(&mut self) {
        let n = self.any_count();
        let answer = self.gate.time_until(n);
        self.done("time_until");
        if n > self.model.burst() {
            self.check(answer.is_none(), "time_until", answer, "never");
            return;
        }
        let wait = self.model.wait(self.now, n);
        match answer {
            Some(time) => self.within("time_until", time.as_nanos(), wait),
            None => {
                let due = i128::from(self.now) + wait.hi;
                self.check(i128::from(FIFTY_YEARS) < due, "time_until", answer, wait);
            }
        }
    }

    fn is_idle(&mut self) {
        let idle = self.at(self.now).is_idle();
        self.done("is_idle");
        let (may, must) = self.model.is_full(self.now);
        self.check(if idle { may } else { !must }, "is_idle", idle, (may, must));
        self.seen.note(if idle { "idle" } else { "busy" });
    }

    fn reset(&mut self) {
        self.gate.reset();
        self.done("reset");
        self.model.reset();
        // A reset has given back all that was granted before it.
        self.kept.clear();
    }
}
