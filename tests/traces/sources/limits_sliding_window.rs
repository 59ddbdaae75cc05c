//! The sliding window counter of limits (PyPI), in microseconds, aligned to the Unix epoch: a
//! [`SlidingWindow`] that rounds down.
//!
//! It prints its counts as they were before the call: the previous window, the current one, and the
//! estimate. Decisions compare the whole permits of the estimate. Our level gives the same counts:
//! at the start of the window both weigh fully, and at the start of the next one only the current
//! count is left. To give the first window a start, our ticks begin one window before the recorded
//! times. `reset` is when the estimate falls to the next whole permit, to the nearest microsecond.
//!
//! Their time is a double with a precision of a quarter of a microsecond. Where that changes the
//! decision, the trace also records the result of exact arithmetic, which is our decision.

use tollgate::algorithm::Rounding;
use tollgate_replay::TIE as NEAR;
use tollgate_replay::prelude::*;

use super::classes::{AT_THE_BEGINNING, ROUNDED_RESET, SLIDING_TIE};
use super::{Begun, MICROSECOND};

/// The largest error of a time that is rounded to the nearest microsecond after an error of a
/// quarter of one.
const NEAREST_NS: u64 = 750;

pub(super) fn begin(header: &Header) -> Begun {
    let period = Duration::from_micros(header.config.positive("window_us")?);
    let quota = Quota::per(header.config.u64("limit")?, period);
    let origin = header.origin()? - period;
    let window = SlidingWindow::new(quota)
        .map(|window| window.rounding(Rounding::Down).aligned_to_unix(origin));
    Ok(Box::new(SlidingTrace {
        limiter: ReplayedLimiter::new(window)?,
        period_ns: in_nanos(period),
        lead_ns: (origin.as_nanos() % period.as_nanos()) as u64,
        now: Counts::default(),
    }))
}

/// Our counts of the windows at some time.
#[derive(Clone, Copy, Default)]
struct Counts {
    before: u64,
    current: u64,
    estimate: f64,
}

struct SlidingTrace {
    limiter: ReplayedLimiter<SlidingWindow>,
    period_ns: u64,
    /// The time between the start of the window of our tick 0 and that tick.
    lead_ns: u64,
    /// The counts before the last call.
    now: Counts,
}

impl Replay for SlidingTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t = self.tick(op)?;
        self.limiter.set_time(t);
        self.now = self.counts(t);
        let comparison = match op.name.as_str() {
            "clear" => {
                self.limiter.limiter().reset();
                return Ok(Comparison::without_decision());
            }
            "stats" => Comparison::without_decision(),
            "test" => {
                let wait = self.limiter.limiter().time_until(op.args.u64("n")?);
                self.decision(op, wait == Some(Duration::ZERO))?
            }
            "hit" => self.decision(op, self.limiter.ask(op.args.u64("n")?, t).ok())?,
            _ => return Err(op.unknown()),
        };
        let theirs = &op.result;
        let remaining = self.limiter.limiter().available();
        let reset = op.args.u64("t")? + (self.falls_in(t) + 500) / 1000;
        Ok(comparison
            .and("remaining", theirs.u64("remaining")?, remaining)
            .and("reset", theirs.u64("reset")?, reset))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        if self.is_tie(op, comparison, field)? {
            return Some(&SLIDING_TIE);
        }
        if field != "reset" {
            return None;
        }
        let (theirs, t) = (op.result.u64(field).ok()?, op.args.u64("t").ok()?);
        let tick = self.tick(op).ok()?;
        let ours_ns = t * 1000 + self.falls_in(tick);
        if ours_ns.abs_diff(theirs * 1000) <= NEAREST_NS {
            Some(&ROUNDED_RESET)
        } else {
            (theirs == t && self.start(tick) == tick).then_some(&AT_THE_BEGINNING)
        }
    }

    /// Adopts what was counted before the call, plus the call if they admitted it.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        if op.result.get("exact_ok").is_none() {
            return Ok(false);
        }
        let (t, theirs, limiter) = (self.tick(op)?, &op.result, self.limiter.limiter());
        let granted = theirs.flag("ok")?.then(|| op.args.u64("n")).transpose()?;
        let before = (self.start(t) - self.period_ns, theirs.u64("prev")?);
        let now = (t, theirs.u64("cur")? + granted.unwrap_or(0));
        limiter.reset();
        for (t, n) in [before, now] {
            let _ = limiter.at(Tick::from_nanos(t)).charge(n);
        }
        Ok(true)
    }
}

impl SlidingTrace {
    fn tick(&self, op: &Op) -> Result<u64, Malformed> {
        Ok(op.t_ns(MICROSECOND)?.saturating_add(self.period_ns))
    }

    /// Returns the start of the window at this tick.
    fn start(&self, t: u64) -> u64 {
        t - (t + self.lead_ns) % self.period_ns
    }

    fn counts(&self, t: u64) -> Counts {
        let level = |t| self.limiter.limiter().at(Tick::from_nanos(t)).level();
        let start = self.start(t);
        let current = level(start + self.period_ns).floor();
        Counts {
            before: level(start).floor() - current,
            current,
            estimate: level(t).as_f64(),
        }
    }

    /// Returns the time until the estimate falls to the next whole permit.
    fn falls_in(&self, t: u64) -> u64 {
        let limiter = self.limiter.limiter();
        let more = limiter.time_until(limiter.available() + 1);
        match more {
            Some(more) => in_nanos(more),
            None if limiter.level().is_zero() => 0,
            // Less than a permit is left of the previous window.
            None => self.start(t) + self.period_ns - t,
        }
    }

    /// Returns whether the field may differ because both agree that the estimate is whole.
    fn is_tie(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<bool> {
        let whole = self.now.estimate.round();
        let tick = self.tick(op).ok()?;
        // At the start of a window their doubles are exact too.
        let weighs = self.now.before > 0 && self.start(tick) < tick;
        let near = weighs && (self.now.estimate - whole).abs() <= NEAR;
        let agree = ["prev", "cur", "weighted"].map(|field| comparison.agrees_on(field));
        if !near || agree != [true; 3] {
            return Some(false);
        }
        let t = op.args.u64("t").ok()? as f64;
        let (theirs, ours) = comparison.numbers(if field == "ok" { "remaining" } else { field })?;
        Some(match field {
            // In that case the decision of exact arithmetic was recorded, and ours is the same.
            "ok" => comparison.agrees_on("exact_ok"),
            "remaining" => theirs.abs_diff(ours) == 1,
            // The whole permit falls now, or the next one falls after its share of the window.
            "reset" => {
                let share = self.period_ns as f64 / 1000.0 / self.now.before as f64;
                let is_near = |after: f64| (t + after - theirs as f64).abs() <= 1.0;
                is_near(0.0) || is_near(share)
            }
            _ => false,
        })
    }

    fn decision(&self, op: &Op, ours: bool) -> Result<Comparison, Malformed> {
        let (theirs, now) = (&op.result, self.now);
        let comparison = Comparison::decision(theirs.flag("ok")?, ours)
            .and("prev", theirs.u64("prev")?, now.before)
            .and("cur", theirs.u64("cur")?, now.current)
            .and("weighted", theirs.f64("weighted")?, now.estimate);
        Ok(match theirs.get("exact_ok") {
            Some(_) => comparison.and("exact_ok", theirs.flag("exact_ok")?, ours),
            None => comparison,
        })
    }
}
