//! ShenYu's sliding window script on redis, in whole seconds: a
//! [`SlidingLog`](tollgate::SlidingLog).
//!
//! It counts its set before it removes expired entries, so `remain_before` belongs to the last
//! call's window. `zcard_after` is the size of the set at the end. The kept entries are compared as
//! they were before the call, to show that both limiters were in one state even if they decide
//! differently. In the variant `virtual` the set disappears after a window without a call. In
//! `frozen` it stays.

use tollgate_replay::prelude::*;

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
        // redis expires the set in whole seconds.
        expires: header.variant.as_deref() == Some("virtual"),
        expiry: window_s.ceil() as u64,
        theirs: Entries::new(),
        before: None,
        last: None,
    }))
}

/// Their set after a call.
#[derive(Clone, Copy)]
struct Set {
    t: u64,
    zcard: u64,
}

struct LogTrace {
    limiter: LogLimiter,
    expires: bool,
    expiry: u64,
    /// The entries that they admitted, in our ticks.
    theirs: Entries,
    /// The sets after the call before the last one, and after the last.
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
        // They decide by the remaining permits that they print.
        let ok = op.result.flag("ok").ok()?;
        if !comparison.agrees_on("kept before") || ok != (remain > 0) {
            return None;
        }
        let counts_first = remain == self.limiter.limit() - self.counted_first(t);
        let agrees = comparison.agrees_on("remain_before");
        match field {
            "remain_before" => counts_first.then_some(&COUNTS_FIRST),
            // They admit a call that we refuse only if it is for several permits.
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
    /// Returns the size of their set before the call at `t`, including expired entries.
    fn counted_first(&self, t: u64) -> u64 {
        let is_there = |set: &Set| !self.expires || t <= set.t + self.expiry;
        self.before.filter(is_there).map_or(0, |set| set.zcard)
    }
}
