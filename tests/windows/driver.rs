//! Runs a limiter and a model side by side and compares all that the limiter says.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use tollgate::{
    Algorithm, At, Charged, Debt, Denied, Forecast, Gauge, GiveBack, Granted, Limiter, ManualClock,
    Tick,
};

use crate::budget::FIFTY_YEARS;
use crate::model::{Answers, Model};
use crate::random::Random;

const YEAR: u64 = FIFTY_YEARS / 50;

/// What the limiters of these tests can do: everything.
pub(crate) trait Every: Algorithm + GiveBack + Debt + Forecast + Gauge + Debug {}
impl<A: Algorithm + GiveBack + Debt + Forecast + Gauge + Debug> Every for A {}

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

pub(crate) struct Run<'l, A, M: Model> {
    gate: &'l Limiter<A, ManualClock>,
    pub(crate) model: M,
    random: Random,
    now: u64,
    /// Grants that may be undone, and where the model says that they stand.
    kept: Vec<(Granted, M::Mark)>,
    pub(crate) seen: Seen,
    /// What a failure is reported with.
    label: String,
}

impl<'l, A: Every, M: Model> Run<'l, A, M> {
    pub(crate) fn new(
        gate: &'l Limiter<A, ManualClock>,
        model: M,
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

    /// A few verbs at each of so many moments.
    pub(crate) fn operate(&mut self, moments: u64) {
        for _ in 0..moments {
            self.now = self.moment();
            self.gate.clock().set(Tick::from_nanos(self.now));
            for _ in 0..1 + self.random.below(3) {
                self.any_verb();
            }
        }
    }

    fn at(&self, now: u64) -> At<'l, A> {
        self.gate.at(Tick::from_nanos(now))
    }

    /// The next moment: the same, one that matters or one beside it, a later one, an earlier one; and
    /// seldom one from the far end of time.
    fn moment(&mut self) -> u64 {
        let (still, period) = (self.now, self.model.period());
        let target = match self.random.below(24) {
            0..=5 => still,
            6 => still.saturating_add(1),
            7 => still.saturating_add(self.random.upto(1_000_000)),
            8..=11 => self.beside(self.model.edge(still)),
            12 | 13 => {
                let n = self.random.upto(self.model.limit());
                self.beside(self.model.due(still, n).unwrap_or(still))
            }
            14 => self.beside(self.model.as_new_at(still).max(still)),
            15 => self.beside(still.saturating_add(period)),
            16 | 17 => still.saturating_add(self.random.upto(period.saturating_mul(3))),
            18 => still.saturating_sub(self.random.upto(1000)),
            19 => still.saturating_sub(self.random.upto(period.saturating_mul(2))),
            20 => still.saturating_add(self.random.upto(period / 8)),
            21 if self.random.one_in(40) => still.saturating_add(self.random.below(9 * YEAR)),
            22 if self.random.one_in(60) => self.random.below(FIFTY_YEARS),
            23 if self.random.one_in(150) => return self.far_away(),
            _ => still.saturating_add(self.random.upto(period)),
        };
        if target > FIFTY_YEARS {
            self.seen.note("fifty years are over");
            return self.random.upto(FIFTY_YEARS);
        }
        target
    }

    fn far_away(&mut self) -> u64 {
        self.seen.note("far away");
        match self.random.below(4) {
            0 => u64::MAX - self.random.below(2),
            1 => self.beside(self.model.horizon()),
            2 => self.random.next(),
            _ => 0,
        }
    }

    fn beside(&mut self, tick: u64) -> u64 {
        tick.saturating_add(self.random.below(3)).saturating_sub(1)
    }

    fn any_count(&mut self) -> u64 {
        let limit = self.model.limit();
        let available = self.model.available(self.now);
        match self.random.below(16) {
            0 => 0,
            1 => limit,
            2 => limit + 1,
            3 | 4 => available,
            5 => available + 1,
            6 if self.random.one_in(8) => u64::MAX,
            7..=10 => 1 + self.random.upto(limit - 1),
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
            18 | 19 => self.refund(),
            20 | 21 => {
                let n = self.any_count().min(self.model.room(self.now));
                self.charge(n);
            }
            22 => {
                let n = self.random.next() >> self.random.below(64);
                if n > self.model.limit() && !self.random.one_in(8) {
                    return;
                }
                self.charge(n);
            }
            23..=25 => self.level(),
            26..=28 => self.time_until(),
            29 | 30 => self.is_idle(),
            _ if self.random.one_in(4) => self.reset(),
            _ => self.acquire(1),
        }
    }

    #[track_caller]
    fn right<T: PartialEq + Debug>(&self, what: &str, got: T, right: T) {
        assert!(
            got == right,
            "{}: {what} is {got:?}, but {right:?} is right, at {} after {} operations: {:?}",
            self.label,
            self.now,
            self.seen.count("operation"),
            self.model,
        );
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

    fn acquire(&mut self, n: u64) {
        let answer = self.decide(n);
        self.done("acquire");
        let limit = self.model.limit();
        if n > limit {
            self.right("the answer", answer, Err(Denied::never(n, limit)));
            self.seen.note("never");
            return;
        }
        let fits = self.model.fits(self.model.clock(self.now), n);
        self.right("whether it is granted", answer.is_ok(), fits);
        match answer {
            Ok(granted) => {
                self.seen.note(if n == 0 { "granted 0" } else { "granted" });
                self.granted(granted, n);
            }
            Err(denied) => self.denied(n, denied),
        }
    }

    /// Compares what a grant says, and keeps some to be undone.
    fn granted(&mut self, granted: Granted, n: u64) {
        let counted_at = self.model.counted_at(self.now);
        self.model.take(self.now, n);
        self.right("n", granted.n(), n);
        self.right("at", granted.at().as_nanos(), counted_at);
        if counted_at > self.now {
            self.seen.note("counted ahead");
        }
        let left = self.model.available(self.now);
        self.right("remaining", granted.remaining(), left);
        let reset = self.model.as_new_at(self.now).saturating_sub(counted_at);
        let reset = Duration::from_nanos(reset);
        self.right("reset_after", granted.reset_after(), reset);
        let delay = if n == 0 {
            0
        } else {
            self.model.delay(self.now)
        };
        let delay = Duration::from_nanos(delay);
        self.right("delay", granted.delay(), delay);
        if delay > Duration::ZERO {
            self.seen.note("delayed");
        }
        let kept = (granted, self.model.mark(self.now));
        let place = self.random.below(8) as usize;
        if place < self.kept.len() {
            self.kept[place] = kept;
        } else {
            self.kept.push(kept);
        }
    }

    fn denied(&mut self, n: u64, denied: Denied) {
        let Some(due) = self.model.due(self.now, n) else {
            self.right("the denial", denied, Denied::stuck(n));
            self.seen.note("stuck");
            return;
        };
        let wait = Duration::from_nanos(due - self.now);
        self.right("the denial", denied, Denied::later(n, wait));
        self.seen.note(if n == 0 { "in debt" } else { "later" });
        // A nanosecond earlier it is denied, and then it is there.
        let before = self.at(due - 1).try_acquire_n(n);
        self.right("a grant a nanosecond before", before.is_ok(), false);
        let then = self.at(due).time_until(n);
        self.right("the wait then", then, Some(Duration::ZERO));
        self.done("acquire before its time");
    }

    fn take_up_to(&mut self) {
        let n = self.any_count();
        let right = n.min(self.model.available(self.now));
        let granted = self.gate.take_up_to(n);
        self.done("take_up_to");
        let part = right > 0 && right < n;
        self.seen.note(if part {
            "a part taken"
        } else {
            "all or none taken"
        });
        self.granted(granted, right);
    }

    fn undo(&mut self) {
        let Some(last) = self.kept.len().checked_sub(1) else {
            return;
        };
        let place = self.random.below(last as u64 + 1) as usize;
        let (granted, mark) = self.kept.swap_remove(place);
        let Some(right) = self.model.undo(self.now, granted.n(), mark) else {
            self.seen.note("can't be told");
            return;
        };
        let back = self.gate.undo(granted);
        self.done("undo");
        self.right("undone", back, right);
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
        self.right("refunded", back, right);
        self.seen.note(if back < n {
            "refund cut"
        } else {
            "refund whole"
        });
    }

    fn charge(&mut self, n: u64) {
        let recorded = n.min(self.model.room(self.now));
        let counted_at = Tick::from_nanos(self.model.counted_at(self.now));
        let charged = self.gate.charge(n);
        self.done("charge");
        self.model.take(self.now, recorded);
        let debt = self.model.debt(self.now);
        let clear_after = match self.model.due(self.now, 0) {
            Some(due) => Duration::from_nanos(due - self.now),
            None => Duration::MAX,
        };
        let right = Charged::new(recorded, counted_at).with_debt(debt, clear_after);
        self.right("charged", charged, right);
        self.seen.note(match debt {
            0 => "charged",
            _ if clear_after == Duration::MAX => "never cleared",
            _ => "into debt",
        });
        if recorded < n {
            self.seen.note("charge cut");
            self.reset();
        }
    }

    fn level(&mut self) {
        let available = self.gate.available();
        self.right("available", available, self.model.available(self.now));
        let (level, right) = (
            self.gate.level(),
            self.model.weight(self.model.clock(self.now)),
        );
        self.done("level");
        let cut = |permits: u128| u64::try_from(permits).unwrap_or(u64::MAX);
        self.right("the level", level.floor(), cut(right.floor()));
        self.right("the level rounded up", level.ceil(), cut(right.ceil()));
        self.right("no level", level.is_zero(), right.num == 0);
        let off = (level.as_f64() - right.as_f64()).abs();
        self.right("the level as a double", off <= 1e-15 * right.as_f64(), true);
        if level.floor() < level.ceil() {
            self.seen.note("a part of a permit");
        }
    }

    fn time_until(&mut self) {
        let n = self.any_count();
        let answer = self.gate.time_until(n);
        self.done("time_until");
        let right = match n {
            _ if n > self.model.limit() => None,
            _ => self.model.due(self.now, n),
        };
        let right = right.map(|due| Duration::from_nanos(due - self.now));
        self.right("time_until", answer, right);
    }

    fn is_idle(&mut self) {
        let idle = self.at(self.now).is_idle();
        self.done("is_idle");
        self.right("is_idle", idle, self.model.is_idle(self.now));
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
