//! ShenYu's leaky bucket script on redis, whole seconds and doubles: a [`LeakyBucket::meter`].
//!
//! It answers with the level that there would be with the request, cut off to whole permits, whether
//! it was admitted or not. What it stores is what the last admitted call left, and at which second;
//! nothing, if that has run out and its key has expired. Of the variants only `backwards` matters.

use tollgate::LeakyBucket;
use tollgate_replay::{
    Class, Comparison, Direction, Gate, Header, Malformed, Op, Replay, Source, TIE as NEAR, Value,
    quota,
};

use super::redis_bucket::{TIE, asked, nanos, whole};

/// Where time goes back they keep the level, and the earlier time with it once they admit, so that
/// the same seconds leak a second time. We count at the latest time seen, where there is more in the
/// bucket by at most what went back. The recorded level is then taken over.
static WENT_BACK: Class = Class {
    name: "time went back: the seconds since leak twice",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

pub(crate) struct ShenYuLeaky;

impl Source for ShenYuLeaky {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("shenyu@") && header.algorithm == "leaky_bucket"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let quota = quota(&header.config)?;
        Ok(Box::new(LeakyTrace {
            gate: Gate::new(LeakyBucket::meter(quota))?,
            rate: quota.permits() as f64 / quota.period().as_secs_f64(),
            may_go_back: header.variant.as_deref() == Some("backwards"),
            ours: None,
            theirs: None,
            before: None,
            now: Now::default(),
        }))
    }
}

/// What an admitted call left.
#[derive(Clone, Copy)]
struct State {
    t: u64,
    level: f64,
}

/// What we saw at the last call.
#[derive(Clone, Copy, Default)]
struct Now {
    n: u64,
    t: u64,
    /// What was in our bucket before it.
    level: f64,
    granted: bool,
}

struct LeakyTrace {
    gate: Gate<LeakyBucket>,
    /// Permits a second.
    rate: f64,
    may_go_back: bool,
    /// What our last admission left, and theirs, and theirs before the last call.
    ours: Option<State>,
    theirs: Option<State>,
    before: Option<State>,
    now: Now,
}

impl Replay for LeakyTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        self.gate.set_time(nanos(t));
        let before = self.gate.limiter().level();
        let granted = self.gate.ask(n, nanos(t)).ok();
        self.now = Now {
            n,
            t,
            level: before.as_f64(),
            granted,
        };
        if granted {
            let level = self.gate.limiter().level().as_f64();
            self.ours = Some(State { t, level });
        }
        let (ok, theirs) = (op.result.flag("ok")?, &op.result);
        let stored = match theirs.get("stored") {
            Some(_) => Some(theirs.f64("stored")?),
            None => None,
        };
        let stored_t = theirs.optional_u64("stored_t")?;
        self.before = self.theirs;
        let level = theirs.u64("level")?;
        let comparison =
            Comparison::decision(op, ok, granted).and("level", level, before.floor() + n);
        match stored.filter(|_| ok) {
            // As it was before the call: so it can be told whether both were in one state.
            Some(level) => {
                self.theirs = Some(State { t, level });
                Ok(comparison
                    .and("level before", level - n as f64, self.now.level)
                    .and("stored_t", stored_t, t))
            }
            None => {
                let ours = self.ours.filter(|_| stored.is_some() || !before.is_zero());
                Ok(comparison
                    .and("stored", stored, ours.map(|state| state.level))
                    .and("stored_t", stored_t, ours.map(|state| state.t)))
            }
        }
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let theirs = self.theirs_before();
        let (ours, n) = (self.now.level, self.now.n as f64);
        // Whatever they report and store must be what they held.
        let reported = whole(theirs + n).contains(&op.result.u64("level").ok()?);
        let held = comparison.levels("level before").map_or(theirs, |it| it.0);
        if !["ok", "level", "level before"].contains(&field)
            || !reported
            || Value::Level(held) != Value::Level(theirs)
        {
            return None;
        }
        if self.went_back() > 0.0 {
            let most = theirs + self.went_back() * self.rate + NEAR;
            return (theirs - NEAR..=most).contains(&ours).then_some(&WENT_BACK);
        }
        // Their doubles are exact at whole rates.
        let tie = self.rate.fract() != 0.0;
        let tie = tie
            && match field {
                "ok" => (ours + n - self.gate.capacity() as f64).abs() <= NEAR,
                "level" => (ours - ours.round()).abs() <= NEAR,
                _ => false,
            };
        (tie && Value::Level(theirs) == Value::Level(ours)).then_some(&TIE)
    }

    /// A refusal changes nothing there: it needs nothing here unless we admitted.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        if !op.result.flag("ok")? && !self.now.granted {
            return Ok(false);
        }
        let n = if op.result.flag("ok")? { self.now.n } else { 0 };
        let level = self.theirs_before() + n as f64;
        let left = self.gate.capacity() as f64 - level;
        self.gate.hold(left, self.rate, nanos(self.now.t))?;
        self.ours = self.theirs;
        Ok(true)
    }
}

impl LeakyTrace {
    /// By how many seconds the call is older than what they have stored.
    fn went_back(&self) -> f64 {
        let since = self.before.map_or(0, |state| state.t);
        if self.may_go_back {
            since.saturating_sub(self.now.t) as f64
        } else {
            0.0
        }
    }

    /// What was in their bucket before the last call: what they had stored, less what leaked.
    fn theirs_before(&self) -> f64 {
        let Some(State { t, level }) = self.before else {
            return 0.0;
        };
        let since = self.now.t.saturating_sub(t) as f64;
        (level - since * self.rate).max(0.0)
    }
}
