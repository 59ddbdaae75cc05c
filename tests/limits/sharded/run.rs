//! Runs a sharded limiter and its model side by side: every verb from any shard, and every returned
//! value.

use tollgate::sharded::ShardedView;

use super::shards::{From, Parts, Said};
use crate::support::algorithms::any_edge;
use crate::support::*;

type View<'a> = ShardedView<'a, AnyAlgorithm>;

struct Run<'a> {
    limiter: &'a Sharded<AnyAlgorithm, ManualClock>,
    model: Parts,
    random: Random,
    now: Tick,
    kept: Vec<(Granted, From)>,
    seen: Seen,
    label: String,
}

impl Run<'_> {
    fn operate(&mut self, moments: u64) {
        for _ in 0..moments {
            self.now = self.moment();
            self.limiter.clock().set(self.now);
            for _ in 0..1 + self.random.below(4) {
                self.any_verb();
            }
        }
    }

    /// Returns the same tick, the next tick with a permit or one beside it, a later one, an earlier
    /// one, or rarely one near the end of time.
    fn moment(&mut self) -> Tick {
        let period = self.limiter.quota().period().as_nanos() as u64;
        let (still, random) = (self.now.as_nanos(), &mut self.random);
        let later = |by: u64| still.saturating_add(by);
        let target = match random.below(20) {
            0..=5 => still,
            6 => later(1),
            7..=10 => {
                let n = 1 + random.upto(self.model.limit() - 1);
                let due = self.model.due(self.now, n).unwrap_or(self.now);
                (due.as_nanos().saturating_add(random.below(3))).saturating_sub(1)
            }
            11 | 12 => later(random.upto(period)),
            13 => later(period.saturating_mul(random.below(3))),
            14 => still.saturating_sub(random.upto(period)),
            15 => still.saturating_sub(random.upto(1000)),
            16 if random.one_in(30) => later(random.below(FIFTY_YEARS / 9)),
            17 if random.one_in(100) => {
                self.seen.note("far away");
                return tick(match random.below(2) {
                    0 => any_edge(random),
                    _ => random.next(),
                });
            }
            _ => later(random.upto(period / 8)),
        };
        tick(match target > FIFTY_YEARS {
            true => random.upto(FIFTY_YEARS),
            false => target,
        })
    }

    fn any_count(&mut self) -> u64 {
        let (limit, available) = (self.model.limit(), self.model.available(self.now));
        match self.random.below(16) {
            0 => 0,
            1 => limit,
            2 => limit + 1,
            3 | 4 => available,
            5 => available + 1,
            6 if self.random.one_in(4) => any_edge(&mut self.random),
            7..=11 => 1 + self.random.upto(limit - 1),
            _ => 1,
        }
    }

    fn any_verb(&mut self) {
        let first = self.random.below(self.limiter.shards() as u64) as usize;
        let view = self.limiter.at(self.now).from_shard(first);
        match self.random.below(32) {
            0..=13 => self.acquire(first, view),
            14..=16 => self.take_up_to(first, view),
            17 | 18 => self.charge(first, view),
            19..=21 => self.undo(view),
            22 | 23 => self.refund(view),
            24..=26 => self.time_until(view),
            27 | 28 => self.look(view),
            29 | 30 => self.level(view),
            31 if self.random.one_in(4) => self.reset(),
            _ => self.acquire(first, view),
        }
    }

    #[track_caller]
    fn right<T: PartialEq + Debug>(&self, what: &str, got: T, right: T) {
        assert!(
            got == right,
            "{}: {what} is {got:?}, but {right:?} is right, at {:?} after {} operations: {:?}",
            self.label,
            self.now,
            self.seen.count("operation"),
            self.model,
        );
    }

    /// Takes `n` from the limiter and from the model, and compares the answers.
    fn take(&mut self, first: usize, n: u64, now: Tick) -> Result<(Granted, From), Denied> {
        let right = self.model.acquire(first, n, now);
        // Shard numbers wrap around after the last.
        let shard = first + self.limiter.shards() * self.random.below(3) as usize;
        let got = self.limiter.at(now).from_shard(shard).try_acquire_n(n);
        self.seen.done("acquire");
        let said = (got.as_ref().map(Said::of), right.as_ref().map(From::said));
        self.right("the answer", said.0, said.1);
        Ok((got?, right?))
    }

    fn acquire(&mut self, first: usize, view: View<'_>) {
        let (n, before) = (self.any_count(), self.model.available(self.now));
        let denied = match self.take(first, n, self.now) {
            Ok((granted, from)) => {
                self.seen.note(match from {
                    From::One(part, ..) if part == first => "from the own shard",
                    From::One(..) => "from another shard",
                    From::Several(said) if said.at > self.now => "from several, ahead",
                    From::Several(_) => "from several",
                });
                return self.keep(granted, from);
            }
            Err(denied) => denied,
        };
        self.right("what is left", view.available(), before);
        let Some(retry_after) = denied.retry_after() else {
            let never = n > self.model.limit();
            return self.seen.note(if never { "never" } else { "stuck" });
        };
        self.seen.note(if n == 0 { "in debt" } else { "later" });
        // A nanosecond earlier every shard denies it. At the due tick every shard grants it.
        let due = self.now.saturating_add(retry_after);
        let early = self.limiter.at(due.saturating_sub(Duration::from_nanos(1)));
        let early = early.from_shard(first).try_acquire_n(n);
        self.right("a grant a nanosecond before", early.is_ok(), false);
        let then = self.limiter.at(due).from_shard(first + 1);
        self.right("the wait then", then.time_until(n), Some(Duration::ZERO));
        if self.random.one_in(4) {
            (self.now, self.kept) = (due, Vec::new());
            self.limiter.clock().set(due);
            let granted = self.take(first, n, due);
            self.right("a grant then", granted.is_ok(), true);
            self.seen.note("acquire at its time");
        }
    }

    fn keep(&mut self, granted: Granted, from: From) {
        let place = self.random.below(8) as usize;
        match self.kept.get_mut(place) {
            Some(kept) => *kept = (granted, from),
            None => self.kept.push((granted, from)),
        }
    }

    fn take_up_to(&mut self, first: usize, view: View<'_>) {
        let n = self.any_count();
        let right = self.model.take_up_to(first, n, self.now);
        let got = view.take_up_to(n);
        self.seen.done("take_up_to");
        self.right("what was taken", Said::of(&got), right.said());
        self.seen.note(match right {
            From::Several(_) => "taken from several",
            From::One(..) => "taken from one",
        });
        self.keep(got, right);
    }

    fn charge(&mut self, first: usize, view: View<'_>) {
        let n = match self.random.below(8) {
            0 => self.random.next() >> self.random.below(64),
            _ => self.any_count(),
        };
        if n > 2 * self.model.limit() && !self.random.one_in(8) {
            return;
        }
        let right = self.model.charge(first, n, self.now);
        let got = view.charge(n);
        self.seen.done("charge");
        self.right("the charge", (got.n(), got.at(), got.debt()), right);
        let owes = got.debt() > 0;
        self.seen.note(if owes { "into debt" } else { "charged" });
        self.right("debt", owes, !got.clear_after().is_zero());
        if owes && got.clear_after() < Duration::MAX {
            // At that tick no shard is in debt. A nanosecond earlier one is.
            let clear = self.now.saturating_add(got.clear_after());
            let early = clear.saturating_sub(Duration::from_nanos(1));
            let owed = |tick| self.model.owes(tick);
            self.right("debt then", (owed(clear), owed(early)), (false, true));
        }
        if got.n() < n {
            self.seen.note("charge cut");
            self.reset();
        }
    }

    fn undo(&mut self, view: View<'_>) {
        let place = self.random.below(self.kept.len() as u64 + 1) as usize;
        let (granted, from) = match place < self.kept.len() {
            true => self.kept.swap_remove(place),
            false => {
                // A grant that no limiter made, which claims to be from the first shard.
                let forged = Granted::new(self.any_count(), self.now);
                let forged = forged.with_mark(any_edge(&mut self.random));
                let from = self.model.forged(&forged);
                (forged, from)
            }
        };
        let right = self.model.undo(&from, self.now);
        let back = view.undo(granted);
        self.seen.done("undo");
        self.right("undone", back, right);
        self.seen.note(match (&from, back) {
            (_, 0) => "none undone",
            (From::One(..), _) => "undone",
            (From::Several(_), _) => "several undone",
        });
    }

    fn refund(&mut self, view: View<'_>) {
        let n = self.any_count();
        let right = self.model.refund(n, self.now);
        let back = view.refund(n);
        self.seen.done("refund");
        self.right("refunded", back, right.min(n));
        self.seen.note(if back == 0 {
            "none refunded"
        } else {
            "refunded"
        });
    }

    fn time_until(&mut self, view: View<'_>) {
        let n = self.any_count();
        let right = match n > self.model.limit() {
            true => None,
            false => self.model.due(self.now, n),
        };
        let right = right.map(|due| due.saturating_since(self.now));
        self.seen.done("time_until");
        self.right("time_until", view.time_until(n), right);
        self.right("time_until", self.limiter.time_until(n), right);
    }

    fn look(&mut self, view: View<'_>) {
        let right = self.model.available(self.now);
        self.seen.done("available");
        self.right("available", view.available(), right);
        self.right("available", self.limiter.available(), right);
        self.right("is_idle", view.is_idle(), self.model.is_idle(self.now));
        let is_shown = format!("{view:?}").starts_with("ShardedView");
        self.right("whether it is shown", is_shown, true);
    }

    fn level(&mut self, view: View<'_>) {
        let (level, (floor, ceil, sum)) = (view.level(), self.model.level(self.now));
        self.seen.done("level");
        let whole = floor..=ceil;
        self.right("the level", whole.contains(&level.floor().into()), true);
        self.right("the level", whole.contains(&level.ceil().into()), true);
        let off = (level.as_f64() - sum).abs();
        self.right("the level as a double", off <= 1e-12 * sum, true);
        self.right("no level", level.is_zero(), sum == 0.0);
    }

    fn reset(&mut self) {
        self.limiter.reset();
        self.seen.done("reset");
        self.model.reset();
        self.kept.clear();
    }
}

/// Runs one history from some tick on.
pub(super) fn run(limiter: &Sharded<AnyAlgorithm, ManualClock>, random: &mut Random) -> Seen {
    let seed = random.next();
    let mut run = Run {
        limiter,
        model: Parts::new(*limiter.algorithm(), limiter.shards(), limiter.now()),
        random: Random(seed),
        now: limiter.now(),
        kept: Vec::new(),
        seen: Seen::default(),
        label: format!("seed {seed:#x}, {limiter:?}"),
    };
    run.operate(100);
    run.seen
}
