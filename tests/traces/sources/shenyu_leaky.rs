//! ShenYu's leaky bucket script on redis, in whole seconds and doubles: a [`LeakyBucket::meter`].
//!
//! It answers with the level that the request would produce, truncated to whole permits, admitted
//! or not. It stores the level and second of the last admitted call, or nothing once that level has
//! leaked and its key has expired. Of the variants only `backwards` matters.

use tollgate_replay::prelude::*;
use tollgate_replay::{TIE as NEAR, quota};

use super::classes::{LEAKS_TWICE, TIE};
use super::redis_bucket::{State, asked, whole};
use super::{Begun, SECOND};

pub(super) fn begin(header: &Header) -> Begun {
    let quota = quota(&header.config)?;
    Ok(Box::new(LeakyTrace {
        limiter: ReplayedLimiter::new(LeakyBucket::meter(quota))?,
        rate: quota.permits() as f64 / quota.period().as_secs_f64(),
        may_go_back: header.variant.as_deref() == Some("backwards"),
        ours: None,
        theirs: None,
        before: None,
        now: Now::default(),
    }))
}

/// Our state at the last call.
#[derive(Clone, Copy, Default)]
struct Now {
    n: u64,
    t: u64,
    /// The level of our bucket before the call.
    level: f64,
    granted: bool,
}

struct LeakyTrace {
    limiter: ReplayedLimiter<LeakyBucket>,
    /// Permits a second.
    rate: f64,
    may_go_back: bool,
    /// The states after our last admission, after theirs, and after theirs before the last call.
    ours: Option<State>,
    theirs: Option<State>,
    before: Option<State>,
    now: Now,
}

impl Replay for LeakyTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        self.limiter.set_time(t * SECOND);
        let before = self.limiter.limiter().level();
        let granted = self.limiter.ask(n, t * SECOND).ok();
        let level = before.as_f64();
        self.now = Now {
            n,
            t,
            level,
            granted,
        };
        if granted {
            let level = self.limiter.limiter().level().as_f64();
            self.ours = Some(State { t, level });
        }
        let (ok, theirs) = (op.result.flag("ok")?, &op.result);
        let stored = theirs.get("stored").map(|_| theirs.f64("stored"));
        let stored = stored.transpose()?;
        let stored_t = theirs.optional_u64("stored_t")?;
        self.before = self.theirs;
        let reported = theirs.u64("level")?;
        let comparison =
            Comparison::decision(ok, granted).and("level", reported, before.floor() + n);
        if let Some(stored) = stored.filter(|_| ok) {
            // The state before the call, which shows whether both limiters were in one state.
            self.theirs = Some(State { t, level: stored });
            return Ok(comparison
                .and("level before", stored - n as f64, level)
                .and("stored_t", stored_t, t));
        }
        let ours = self.ours.filter(|_| stored.is_some() || !before.is_zero());
        Ok(comparison
            .and("stored", stored, ours.map(|state| state.level))
            .and("stored_t", stored_t, ours.map(|state| state.t)))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let theirs = self.theirs_before();
        let (ours, n) = (self.now.level, self.now.n as f64);
        let is_near = |level: f64| (level - theirs).abs() <= NEAR;
        // The reported and the stored level must match the level that they held.
        let reported = whole(theirs + n).contains(&op.result.u64("level").ok()?);
        let held = comparison.levels("level before").map_or(theirs, |it| it.0);
        if !["ok", "level", "level before"].contains(&field) || !reported || !is_near(held) {
            return None;
        }
        if self.went_back() > 0.0 {
            let most = theirs + self.went_back() * self.rate + NEAR;
            return (theirs - NEAR..=most)
                .contains(&ours)
                .then_some(&LEAKS_TWICE);
        }
        let tie = match field {
            "ok" => (ours + n - self.limiter.capacity() as f64).abs() <= NEAR,
            "level" => (ours - ours.round()).abs() <= NEAR,
            _ => false,
        };
        // Their doubles are exact at whole rates.
        (tie && self.rate.fract() != 0.0 && is_near(ours)).then_some(&TIE)
    }

    /// A refusal changes nothing there, so nothing is adopted unless we admitted.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let ok = op.result.flag("ok")?;
        if ok || self.now.granted {
            let n = if ok { self.now.n } else { 0 };
            let level = self.theirs_before() + n as f64;
            let left = self.limiter.capacity() as f64 - level;
            self.limiter.hold(left, self.rate, self.now.t * SECOND)?;
            self.ours = self.theirs;
        }
        Ok(ok || self.now.granted)
    }
}

impl LeakyTrace {
    /// Returns the seconds by which the call is older than their stored state.
    fn went_back(&self) -> f64 {
        let since = self.before.filter(|_| self.may_go_back);
        since.map_or(0, |state| state.t.saturating_sub(self.now.t)) as f64
    }

    /// Returns the level of their bucket before the last call: the stored level minus the leak.
    fn theirs_before(&self) -> f64 {
        self.before.map_or(0.0, |State { t, level }| {
            let since = self.now.t.saturating_sub(t) as f64;
            (level - since * self.rate).max(0.0)
        })
    }
}
