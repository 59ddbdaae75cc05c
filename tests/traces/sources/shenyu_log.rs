//! ShenYu's sliding window script on redis, whole seconds: a [`SlidingLog`](tollgate::SlidingLog).
//!
//! It counts what is in its set before it removes what has left the window, so `remain_before` is
//! of the last call's window; `zcard_after` is what is in the set at the end. What was kept is
//! compared as it was before the call, so that both can be seen to have been in one state when they
//! decide differently. In the variant `virtual` the set is gone when no call came for a window, in
//! `frozen` it stays.

use std::time::Duration;

use tollgate_replay::{Class, Comparison, Header, Malformed, Op, Replay};

use super::classes::{COUNTS_FIRST, TAKES_ONE};
use super::log_limiter::{Entries, LogLimiter};
use super::redis_bucket::asked;
use super::{Begun, SECOND};

pub(super) fn begin(header: &Header) -> Begun {
    let config = &header.config;
    let (rate, capacity) = (config.f64("rate")?, config.positive("capacity")?);
    let window_s = capacity as f64 / rate;
    if window_s != config.f64("window_s")? {
        return Err(Malformed("`window_s` is no capacity / rate".to_owned()));
    }
    Ok(Box::new(LogTrace {
        limiter: LogLimiter::new(capacity, Duration::from_secs_f64(window_s))?,
        // redis forgets the set in whole seconds.
        expires: header.variant.as_deref() == Some("virtual"),
        expiry: window_s.ceil() as u64,
        theirs: Entries::new(),
        before: None,
        last: None,
    }))
}

/// What a call left in their set.
#[derive(Clone, Copy)]
struct Set {
    t: u64,
    zcard: u64,
}

struct LogTrace {
    limiter: LogLimiter,
    expires: bool,
    expiry: u64,
    /// What they admitted, in our ticks.
    theirs: Entries,
    /// What the call before the last one left, and the last.
    before: Option<Set>,
    last: Option<Set>,
}

impl Replay for LogTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        self.limiter.set_time(t * SECOND);
        let (available, counted) = (self.limiter.available(), self.limiter.counted());
        let granted = self.limiter.ask(n, t * SECOND).ok();
        let ok = op.result.flag("ok")?;
        if ok {
            self.theirs.push((t * SECOND, 1));
        }
        let zcard = op.result.u64("zcard_after")?;
        self.before = self.last.replace(Set { t, zcard });
        let theirs = op.result.u64("remain_before")?;
        let taken = if granted { n } else { 0 };
        Ok(Comparison::decision(ok, granted)
            .and("remain_before", theirs, available)
            .and("kept before", zcard.checked_sub(ok.into()), counted)
            .and("taken", u64::from(ok), taken))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let (n, t) = asked(op).ok()?;
        let remain = op.result.u64("remain_before").ok()?;
        // They decide by what they say that remains.
        let ok = op.result.flag("ok").ok()?;
        if !comparison.agrees_on("kept before") || ok != (remain > 0) {
            return None;
        }
        let counts_first = remain == self.limiter.limit() - self.counted_first(t);
        let agrees = comparison.agrees_on("remain_before");
        match field {
            "remain_before" => counts_first.then_some(&COUNTS_FIRST),
            // What we refuse they admit only because it is several.
            "ok" | "taken" if n != 1 && ok => Some(&TAKES_ONE),
            "ok" | "taken" => (!agrees && counts_first && !ok).then_some(&COUNTS_FIRST),
            _ => None,
        }
    }

    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        self.limiter.follow(&self.theirs)
    }
}

impl LogTrace {
    /// What is in their set before the call at `t`, of the window or not.
    fn counted_first(&self, t: u64) -> u64 {
        let is_there = |set: &Set| !self.expires || t <= set.t + self.expiry;
        self.before.filter(is_there).map_or(0, |set| set.zcard)
    }
}
