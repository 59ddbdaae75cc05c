//! pyrate-limiter, in milliseconds: its GCRA, its fixed windows aligned to the Unix epoch (a
//! [`FixedWindow`]) and its sliding log (a [`SlidingLog`](tollgate::SlidingLog)).
//!
//! Several rates are several limiters: a call is admitted if all admit it, otherwise the grants of
//! the first ones are returned. `failing` is the first rate that refused. Waits are rounded up to
//! milliseconds.
//!
//! The GCRA's interval is rounded up to whole microseconds, which is our argument. A TAT that is
//! null or in the past means a full limiter, so the time until full is compared instead.
//!
//! The others keep a log of what they admitted. `stored` is its length. A leak removes the entries
//! that are older than the longest window. The log here holds what we granted. An interval of the
//! sliding log includes both ends: an entry exactly a second old still counts within a second. In
//! whole milliseconds that is a window of 1001 ms, which is our argument.

use serde_json::Value as Json;
use tollgate::algorithm::{Forecast, Gauge, GiveBack};
use tollgate_replay::Answer;
use tollgate_replay::prelude::*;

use super::log_limiter::LogLimiter;
use super::{Begun, MILLISECOND};

const TAT: [&str; 2] = ["tat_us[0]", "tat_us[1]"];

pub(super) fn gcra(header: &Header) -> Begun {
    let rates = Rates::new(&header.config, |config, limit, interval_ms| {
        let emission_us = interval_ms.saturating_mul(1000).div_ceil(limit);
        let tolerance_us = emission_us.saturating_mul(config.positive("burst")? - 1);
        let [emission, tolerance] = [emission_us, tolerance_us].map(Duration::from_micros);
        ReplayedLimiter::new(Gcra::from_interval(emission, tolerance))
    })?;
    if rates.0.len() > TAT.len() {
        return Err(Malformed("more than two rates".to_owned()));
    }
    Ok(Box::new(GcraTrace(rates)))
}

pub(super) fn window(header: &Header) -> Begun {
    // Our ticks begin where the recorded times begin.
    let origin = header.origin()?;
    let rates = Rates::new(&header.config, |_, limit, interval_ms| {
        let quota = Quota::per(limit, Duration::from_millis(interval_ms));
        ReplayedLimiter::new(FixedWindow::new(quota).map(|window| window.aligned_to_unix(origin)))
    })?;
    Ok(Box::new(WindowTrace { rates, log: 0 }))
}

pub(super) fn log(header: &Header) -> Begun {
    let rates = Rates::new(&header.config, |_, limit, interval_ms| {
        LogLimiter::new(limit, Duration::from_millis(interval_ms + 1))
    })?;
    Ok(Box::new(WindowTrace { rates, log: 0 }))
}

/// One of our limiters.
trait One {
    fn ask(&self, n: u64, t_ns: u64) -> Answer;

    /// Returns a grant that was just made.
    fn undo(&self, granted: Granted) -> Result<(), Malformed>;

    /// Returns the permits in its window at this time.
    fn counted(&self, t_ns: u64) -> u64;
}

impl<A: Forecast + Gauge + GiveBack> One for ReplayedLimiter<A> {
    fn ask(&self, n: u64, t_ns: u64) -> Answer {
        Self::ask(self, n, t_ns)
    }

    fn undo(&self, granted: Granted) -> Result<(), Malformed> {
        Self::undo(self, granted);
        Ok(())
    }

    fn counted(&self, t_ns: u64) -> u64 {
        self.set_time(t_ns);
        self.limiter().level().floor()
    }
}

impl One for LogLimiter {
    fn ask(&self, n: u64, t_ns: u64) -> Answer {
        Self::ask(self, n, t_ns)
    }

    fn undo(&self, granted: Granted) -> Result<(), Malformed> {
        self.take_out(granted)
    }

    fn counted(&self, t_ns: u64) -> u64 {
        self.set_time(t_ns);
        Self::counted(self)
    }
}

struct Rate<G> {
    limit: u64,
    interval_ms: u64,
    limiter: G,
}

struct Rates<G>(Vec<Rate<G>>);

impl<G: One> Rates<G> {
    /// Creates a limiter from each rate's limit and interval in milliseconds.
    fn new(
        config: &Fields,
        limiter: impl Fn(&Fields, u64, u64) -> Result<G, Malformed>,
    ) -> Result<Self, Malformed> {
        let rates = config.objects("rates")?;
        let rate = |config: &Fields| {
            let (limit, interval_ms) = (config.positive("limit")?, config.u64("interval_ms")?);
            let limiter = limiter(config, limit, interval_ms)?;
            Ok(Rate {
                limit,
                interval_ms,
                limiter,
            })
        };
        rates.iter().map(rate).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the decision and, for a refusal, the rate that refused and the wait for it.
    fn put(&self, op: &Op) -> Result<(bool, Comparison), Malformed> {
        let refused = self.ask(op.args.u64("n")?, op.t_ns(MILLISECOND)?)?;
        let (ok, granted) = (op.result.flag("ok")?, refused.is_none());
        let comparison = Comparison::decision(ok, granted);
        if ok {
            return Ok((granted, comparison));
        }
        let failing = match op.result.list("failing")? {
            [limit, interval] => limit.as_u64().zip(interval.as_u64()),
            _ => None,
        };
        let failing = failing.ok_or_else(|| Malformed("`failing` is no rate".to_owned()))?;
        let wait = Some(op.result.i64("waiting_ms")?).filter(|&wait| wait != -1);
        let (rate, answer) = refused.unzip();
        let ours = answer.and_then(|answer| answer.retry_ns());
        let interval = rate.map(|rate| rate.interval_ms);
        let comparison = comparison
            .and("failing limit", failing.0, rate.map(|rate| rate.limit))
            .and("failing interval", failing.1, interval)
            .and("waiting_ms", wait, ours.map(|ns| ns.div_ceil(MILLISECOND)));
        Ok((granted, comparison))
    }

    /// Asks all rates or takes from none. Returns the first rate that refused, with its answer.
    fn ask(&self, n: u64, t_ns: u64) -> Result<Option<(&Rate<G>, Answer)>, Malformed> {
        let mut granted: Vec<(&Rate<G>, Granted)> = Vec::new();
        for rate in &self.0 {
            let answer = rate.limiter.ask(n, t_ns);
            let Ok(grant) = answer.decision else {
                for (rate, grant) in granted {
                    rate.limiter.undo(grant)?;
                }
                return Ok(Some((rate, answer)));
            };
            granted.push((rate, grant));
        }
        Ok(None)
    }
}

struct GcraTrace(Rates<ReplayedLimiter<Gcra>>);

impl Replay for GcraTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        op.must_be("put")?;
        let (_, mut comparison) = self.0.put(op)?;
        let tats = op.result.list("tat_us")?;
        if tats.len() != self.0.0.len() {
            return Err(Malformed("`tat_us` is not as long as `rates`".to_owned()));
        }
        for ((rate, tat), field) in self.0.0.iter().zip(tats).zip(TAT) {
            // The rates after the first refusal were not asked, so their clocks stand still.
            rate.limiter.set_time(op.t_ns(MILLISECOND)?);
            // In nanoseconds, so that no fraction of a microsecond is lost.
            let theirs = to_full_us(tat, op.args.u64("t")?)? * 1000;
            comparison = comparison.and(field, Value::Number(theirs), rate.limiter.reset_ns());
        }
        Ok(comparison)
    }
}

fn to_full_us(tat: &Json, t_ms: u64) -> Result<i128, Malformed> {
    let now = i128::from(t_ms) * 1000;
    match (tat, tat.as_i64()) {
        (Json::Null, _) => Ok(0),
        (_, Some(tat)) => Ok((i128::from(tat) - now).max(0)),
        _ => Err(Malformed(format!("a TAT of {tat}"))),
    }
}

struct WindowTrace<G> {
    rates: Rates<G>,
    /// The granted permits that no leak has removed.
    log: u64,
}

impl<G: One> Replay for WindowTrace<G> {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        match op.name.as_str() {
            "put" => {
                let (granted, comparison) = self.rates.put(op)?;
                if granted {
                    self.log += op.args.u64("n")?;
                }
                Ok(comparison.and("stored", op.result.u64("stored")?, self.log))
            }
            "leak" => {
                // Counts the longest window. The rates are in the order of their lengths.
                let longest = self.rates.0.last().map(|rate| &rate.limiter);
                let t_ns = op.t_ns(MILLISECOND)?;
                let left = longest.map_or(0, |limiter| limiter.counted(t_ns));
                let removed = self.log.saturating_sub(left);
                self.log = left;
                let comparison = Comparison::without_decision();
                Ok(comparison.and("removed", op.result.u64("removed")?, removed))
            }
            _ => Err(op.unknown()),
        }
    }
}
