//! What pyrate-limiter's algorithms have in common: one rate or several, all or none.
//!
//! Several rates are several limiters: a call is admitted if all admit it, else what the first ones
//! granted is given back; `failing` is the first that refused. Waits are rounded up to milliseconds.

use tollgate::{Forecast, GiveBack, Granted};
use tollgate_replay::{Answer, Comparison, Fields, Gate, Malformed, Op};

use super::log_gate::LogGate;

/// One limiter of ours.
pub(super) trait One {
    fn ask(&self, n: u64, t_ns: u64) -> Answer;

    /// Gives back what it has just granted.
    fn undo(&self, granted: Granted) -> Result<(), Malformed>;
}

impl<A: Forecast + GiveBack> One for Gate<A> {
    fn ask(&self, n: u64, t_ns: u64) -> Answer {
        Self::ask(self, n, t_ns)
    }

    fn undo(&self, granted: Granted) -> Result<(), Malformed> {
        Self::undo(self, granted);
        Ok(())
    }
}

impl One for LogGate {
    fn ask(&self, n: u64, t_ns: u64) -> Answer {
        Self::ask(self, n, t_ns)
    }

    fn undo(&self, granted: Granted) -> Result<(), Malformed> {
        self.take_out(granted)
    }
}

pub(super) struct Rate<G> {
    limit: u64,
    interval_ms: u64,
    pub(super) gate: G,
}

pub(super) struct Rates<G> {
    pub(super) rates: Vec<Rate<G>>,
}

impl<G: One> Rates<G> {
    /// The gate of each rate's limit and interval in milliseconds.
    pub(super) fn new(
        config: &Fields,
        gate: impl Fn(&Fields, u64, u64) -> Result<G, Malformed>,
    ) -> Result<Self, Malformed> {
        let rates = config.objects("rates")?;
        let rate = |config: &Fields| {
            let (limit, interval_ms) = (config.positive("limit")?, config.u64("interval_ms")?);
            Ok(Rate {
                limit,
                interval_ms,
                gate: gate(config, limit, interval_ms)?,
            })
        };
        Ok(Self {
            rates: rates.iter().map(rate).collect::<Result<_, _>>()?,
        })
    }

    /// The decision, and of a refusal which rate it was and how long one must wait for it.
    pub(super) fn put(&self, op: &Op) -> Result<(bool, Comparison), Malformed> {
        let refused = self.ask(op.args.u64("n")?, nanos(op.args.u64("t")?))?;
        let (ok, granted) = (op.result.flag("ok")?, refused.is_none());
        let comparison = Comparison::decision(op, ok, granted);
        if ok {
            return Ok((granted, comparison));
        }
        let (limit, interval) = failing(&op.result)?;
        let wait = match op.result.i64("waiting_ms")? {
            -1 => None,
            wait => Some(wait),
        };
        let rate = refused.as_ref().map(|(rate, _)| rate);
        let ours = refused.as_ref().and_then(|(_, answer)| answer.retry_ns());
        let comparison = comparison
            .and("failing limit", limit, rate.map(|rate| rate.limit))
            .and(
                "failing interval",
                interval,
                rate.map(|rate| rate.interval_ms),
            )
            .and("waiting_ms", wait, ours.map(|ns| ns.div_ceil(1_000_000)));
        Ok((granted, comparison))
    }

    /// All or none: the first rate that refused, and its answer.
    fn ask(&self, n: u64, t_ns: u64) -> Result<Option<(&Rate<G>, Answer)>, Malformed> {
        let mut granted = Vec::new();
        for rate in &self.rates {
            let answer = rate.gate.ask(n, t_ns);
            match answer.decision {
                Ok(grant) => granted.push((rate, grant)),
                Err(_) => {
                    for (rate, grant) in granted {
                        rate.gate.undo(grant)?;
                    }
                    return Ok(Some((rate, answer)));
                }
            }
        }
        Ok(None)
    }
}

/// The rate that refused: its limit and its interval in milliseconds.
fn failing(result: &Fields) -> Result<(u64, u64), Malformed> {
    match result.list("failing")? {
        [limit, interval] => limit.as_u64().zip(interval.as_u64()),
        _ => None,
    }
    .ok_or_else(|| Malformed("`failing` should be a limit and an interval".to_owned()))
}

pub(super) fn nanos(t_ms: u64) -> u64 {
    t_ms.saturating_mul(1_000_000)
}
