//! Runs a limiter and a model side by side, and compares all answers.

use crate::support::moment::any_moment;
use crate::support::reference::{Reference, Span};
use crate::support::subject::{AT, DOORS, Subject};
use crate::support::verbs::{Answer, Verb};
use crate::support::*;

pub(crate) struct Run<'l, S, M: Reference> {
    limiter: &'l S,
    pub(crate) model: M,
    random: Random,
    now: u64,
    /// Grants that may be undone, with their positions in the model.
    kept: Vec<(Granted, M::Mark)>,
    pub(crate) seen: Seen,
    /// Describes the case in a failure message.
    label: String,
}

impl<'l, S: Subject, M: Reference> Run<'l, S, M> {
    pub(crate) fn new(limiter: &'l S, model: M, seed: u64, now: u64, label: String) -> Self {
        Self {
            limiter,
            model,
            random: Random(seed),
            now,
            kept: Vec::new(),
            seen: Seen::default(),
            label,
        }
    }

    /// Calls a few verbs at each of this many moments.
    pub(crate) fn operate(&mut self, moments: u64) {
        for _ in 0..moments {
            let before = self.now;
            self.now = any_moment(&self.model, before, &mut self.random, &mut self.seen);
            self.limiter.set(self.tick());
            if self.model.begins_anew(before, self.now) {
                self.reset();
            }
            for _ in 0..1 + self.random.below(3) {
                self.any_verb();
            }
        }
    }

    fn tick(&self) -> Tick {
        Tick::from_nanos(self.now)
    }

    /// Asks in one of the possible ways.
    fn ask(&mut self, verb: Verb) -> Answer {
        self.ask_with(&mut None, verb)
    }

    fn ask_with(&mut self, granted: &mut Option<Granted>, verb: Verb) -> Answer {
        let door = self.random.below(DOORS);
        self.limiter.ask(door, self.tick(), verb, granted)
    }

    /// Asks for permits at another tick.
    fn take_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.limiter
            .ask(AT, now, Verb::Take(n), &mut None)
            .outcome()
    }

    fn any_count(&mut self) -> u64 {
        let limit = self.model.limit();
        let available = self.model.available(self.now).hi as u64;
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

    /// Calls a random verb that the limiter has, or makes a request.
    fn any_verb(&mut self) {
        let every = Verb::every(0);
        let verb = match self.random.below(32) {
            0..=11 => Verb::Take(0),
            12..=14 => Verb::TakeUpTo(0),
            15..=17 => Verb::Undo,
            18 | 19 => Verb::Refund(0),
            20..=22 => Verb::Charge(0),
            23 | 24 => Verb::Available,
            25 => Verb::Level,
            26..=28 => Verb::TimeUntil(0),
            29 | 30 => Verb::IsIdle,
            _ => every[self.random.below(every.len() as u64) as usize].0,
        };
        match verb {
            _ if !S::has(verb) => self.acquire_any(),
            Verb::Take(_) => self.acquire_any(),
            Verb::TakeUpTo(_) => self.take_up_to(),
            Verb::Check(_) => self.check_any(),
            Verb::Undo => self.undo(),
            Verb::Refund(_) => self.refund(),
            Verb::Charge(_) => self.charge_any(),
            Verb::Available => self.available(),
            Verb::Level => self.level(),
            Verb::TimeUntil(_) => self.time_until(),
            Verb::IsIdle => self.is_idle(),
            Verb::Reset => self.reset(),
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
    fn right<T: PartialEq + Debug>(&self, what: &str, got: T, right: T) {
        self.check(got == right, what, &got, &right);
    }

    #[track_caller]
    fn within(&self, what: &str, got: impl Into<u128>, right: Span) {
        let got = got.into();
        self.check(right.has(got), what, got, right);
    }

    fn acquire_any(&mut self) {
        let n = self.any_count();
        self.acquire(n);
    }

    fn acquire(&mut self, n: u64) {
        let answer = self.ask(Verb::Take(n)).outcome();
        self.seen.done("acquire");
        let limit = self.model.limit();
        if n > limit {
            self.right("the answer", answer, Err(Denied::never(n, limit)));
            self.seen.note("never");
            return;
        }
        let wait = self.model.wait(self.now, n);
        match answer {
            Ok(granted) => {
                self.check(wait.span.lo == 0, "the answer", &granted, wait);
                self.seen.note(if n == 0 { "granted 0" } else { "granted" });
                self.granted(granted, Span::only(n));
            }
            Err(denied) => self.denied(n, denied),
        }
    }

    /// Asks what a request would be answered.
    fn check_any(&mut self) {
        let (n, limit) = (self.any_count(), self.model.limit());
        let answer = self.ask(Verb::Check(n));
        self.seen.done("check");
        match answer {
            Answer::Denied(denied) if n > limit => {
                self.right("the answer", denied, Denied::never(n, limit));
            }
            Answer::Denied(denied) => self.denied(n, denied),
            answer => {
                let wait = self.model.wait(self.now, n);
                self.right("the answer", answer, Answer::Done);
                self.check(n <= limit && wait.span.lo == 0, "the answer", n, wait);
            }
        }
    }

    /// Compares the contents of a grant, and keeps some grants to be undone.
    fn granted(&mut self, granted: Granted, n: Span) {
        self.within("n", granted.n(), n);
        let n = granted.n();
        let counted_at = self.model.counted_at(self.now);
        self.model.take(self.now, n);
        self.right("at", granted.at().as_nanos(), counted_at);
        if counted_at > self.now {
            self.seen.note("counted ahead");
        }
        let left = self.model.remaining(self.now);
        self.within("remaining", granted.remaining(), left);
        let reset = self.model.as_new_after(self.now, counted_at);
        self.within("reset_after", granted.reset_after().as_nanos(), reset);
        let delay = self.model.delay(self.now, n);
        self.within("delay", granted.delay().as_nanos(), delay);
        if delay.lo > 0 {
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
        let wait = self.model.wait(self.now, n);
        self.check(wait.span.hi > 0, "the answer", denied, wait);
        let Some(retry_after) = denied.retry_after() else {
            self.right("the denial", denied, Denied::stuck(n));
            self.check(wait.may_be_never, "the denial", denied, wait);
            self.seen.note("stuck");
            return;
        };
        self.right("the denial", denied, Denied::later(n, retry_after));
        self.check(!wait.is_never, "the denial", denied, wait);
        let retry_after = retry_after.as_nanos();
        self.within("retry_after", retry_after, wait.span);
        self.check(retry_after > 0, "retry_after", retry_after, "more than 0");
        self.seen.note(if n == 0 { "in debt" } else { "later" });
        if retry_after as i128 > wait.span.lo {
            self.seen.note("not the earliest");
        }
        // A nanosecond earlier it is denied. At the due tick it is granted.
        let due = self.now + retry_after as u64;
        let [before, due] = [due - 1, due].map(Tick::from_nanos);
        let early = self.take_at(n, before);
        self.right("a grant a nanosecond before", early.is_ok(), false);
        let then = self.limiter.ask(AT, due, Verb::TimeUntil(n), &mut None);
        self.right("the wait then", then, Answer::Wait(Some(Duration::ZERO)));
        self.seen.done("acquire before its time");
    }

    fn take_up_to(&mut self) {
        let n = self.any_count();
        let right = self.model.available(self.now).upto(n);
        let granted = self.ask(Verb::TakeUpTo(n)).outcome();
        let granted = granted.expect("it is never denied");
        self.seen.done("take_up_to");
        let part = granted.n() > 0 && granted.n() < n;
        self.seen.note(if part {
            "some of them taken"
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
        let n = granted.n();
        let Some(right) = self.model.undo(self.now, n, mark) else {
            self.seen.note("can't be told");
            return;
        };
        let back = self.ask_with(&mut Some(granted), Verb::Undo).number();
        self.seen.done("undo");
        self.within("undone", back, right);
        self.seen.note(match back {
            0 => "none undone",
            _ if back < n => "some undone",
            _ => "all undone",
        });
    }

    fn refund(&mut self) {
        let n = self.any_count();
        let right = self.model.refund(self.now, n);
        let back = self.ask(Verb::Refund(n)).number();
        self.seen.done("refund");
        self.within("refunded", back, right);
        self.seen.note(if back < n {
            "refund cut"
        } else {
            "refund whole"
        });
    }

    /// Charges an amount that can usually be recorded, and rarely more.
    fn charge_any(&mut self) {
        let room = self.model.room(self.now).lo as u64;
        let n = match self.random.below(3) {
            0 => self.random.next() >> self.random.below(64),
            _ => self.any_count().min(room),
        };
        if n <= self.model.limit() || n <= room || self.random.one_in(8) {
            self.charge(n);
        }
    }

    /// Charges `n`. After more than the word can hold, both start fresh.
    fn charge(&mut self, n: u64) {
        let room = self.model.room(self.now);
        let knows = self.model.knows_debt(self.now, n);
        let counted_at = self.model.counted_at(self.now);
        let Answer::Charged(charged) = self.ask(Verb::Charge(n)) else {
            unreachable!("the answer of a charge");
        };
        self.seen.done("charge");
        self.right("at", charged.at().as_nanos(), counted_at);
        self.within("charged", charged.n(), room.upto(n));
        if knows {
            self.charged(charged);
        }
        if charged.n() < n {
            self.seen.note("charge cut");
        }
        if i128::from(n) > room.lo {
            if knows {
                self.acquire(1);
            }
            self.reset();
        }
    }

    fn charged(&mut self, charged: Charged) {
        self.model.take(self.now, charged.n());
        self.within("debt", charged.debt(), self.model.debt(self.now));
        let clear = self.model.wait(self.now, 0);
        let owes = charged.debt() > 0;
        let is_never = charged.clear_after() == Duration::MAX;
        if is_never {
            self.check(clear.may_be_never, "clear_after", charged, clear);
        } else {
            self.check(!clear.is_never, "clear_after", charged, clear);
            self.within("clear_after", charged.clear_after().as_nanos(), clear.span);
        }
        self.seen.note(match owes {
            true if is_never => "never cleared",
            true => "into debt",
            false => "charged",
        });
        let waits = !charged.clear_after().is_zero();
        self.check(owes == waits, "debt", charged, "both or neither");
        let free = self.take_at(0, self.tick());
        self.right("whether nothing is granted", free.is_ok(), !owes);
    }

    fn available(&mut self) {
        let available = self.ask(Verb::Available).number();
        self.seen.done("available");
        self.within("available", available, self.model.available(self.now));
    }

    fn level(&mut self) {
        let Some(right) = self.model.level(self.now) else {
            return;
        };
        let Answer::Level(level) = self.ask(Verb::Level) else {
            unreachable!("the answer of a level");
        };
        self.seen.done("level");
        let cut = |permits: u128| u64::try_from(permits).unwrap_or(u64::MAX);
        self.right("the level", level.floor(), cut(right.floor()));
        self.right("the level rounded up", level.ceil(), cut(right.ceil()));
        self.right("no level", level.is_zero(), right.num == 0);
        let off = (level.as_f64() - right.as_f64()).abs();
        self.right("the level as a double", off <= 1e-15 * right.as_f64(), true);
        if level.floor() < level.ceil() {
            self.seen.note("a fraction of a permit");
        }
    }

    fn time_until(&mut self) {
        let n = self.any_count();
        let Answer::Wait(answer) = self.ask(Verb::TimeUntil(n)) else {
            unreachable!("the answer of a forecast");
        };
        self.seen.done("time_until");
        if n > self.model.limit() {
            self.right("time_until", answer, None);
            return;
        }
        let wait = self.model.wait(self.now, n);
        match answer {
            Some(time) => {
                self.check(!wait.is_never, "time_until", answer, wait);
                self.within("time_until", time.as_nanos(), wait.span);
            }
            None => self.check(wait.may_be_never, "time_until", answer, wait),
        }
    }

    fn is_idle(&mut self) {
        let idle = self.ask(Verb::IsIdle) == Answer::Is(true);
        self.seen.done("is_idle");
        let [may, must] = self.model.is_idle(self.now);
        self.check(if idle { may } else { !must }, "is_idle", idle, (may, must));
        self.seen.note(if idle { "idle" } else { "busy" });
    }

    fn reset(&mut self) {
        if !S::has(Verb::Reset) {
            return;
        }
        self.ask(Verb::Reset);
        self.seen.done("reset");
        self.model.reset();
        // A reset has returned all earlier grants.
        self.kept.clear();
    }
}
