//! pyrate-limiter's GCRA, milliseconds.
//!
//! Its interval is rounded up to whole microseconds, which is our argument, and its waits are
//! rounded up to milliseconds. Several rates are several limiters: a call is admitted if all
//! admit it, else what the first ones granted is given back; `failing` is the first that refused. A
//! TAT that is null or in the past means a full limiter, and so is compared as the time to full.

use std::time::Duration;

use serde_json::Value as Json;
use tollgate::Gcra;

use crate::traces_support::comparison::{Comparison, Value};
use crate::traces_support::format::{Fields, Header, Malformed, Op};
use crate::traces_support::gate::{Answer, Gate};
use crate::traces_support::runner::{Replay, Source};

const TAT: [&str; 2] = ["tat_us[0]", "tat_us[1]"];

pub(crate) struct Pyrate;

impl Source for Pyrate {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("pyrate-limiter ") && header.algorithm == "gcra"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let rates = header.config.objects("rates")?;
        if rates.len() > TAT.len() {
            return Err(Malformed("more than two rates".to_owned()));
        }
        let rates = rates.iter().map(Rate::new);
        Ok(Box::new(PyrateTrace {
            rates: rates.collect::<Result<_, _>>()?,
        }))
    }
}

struct Rate {
    limit: u64,
    interval_ms: u64,
    gate: Gate<Gcra>,
}

impl Rate {
    fn new(config: &Fields) -> Result<Self, Malformed> {
        let (limit, interval_ms) = (config.positive("limit")?, config.u64("interval_ms")?);
        let emission_us = interval_ms.saturating_mul(1000).div_ceil(limit);
        let tolerance_us = emission_us.saturating_mul(config.positive("burst")? - 1);
        Ok(Self {
            limit,
            interval_ms,
            gate: Gate::new(Gcra::from_interval(
                Duration::from_micros(emission_us),
                Duration::from_micros(tolerance_us),
            ))?,
        })
    }
}

struct PyrateTrace {
    rates: Vec<Rate>,
}

impl PyrateTrace {
    /// All or none: the first rate that refused, and its answer.
    fn ask(&self, n: u64, t_ns: u64) -> Option<(&Rate, Answer)> {
        let mut granted = Vec::new();
        for rate in &self.rates {
            let answer = rate.gate.ask(n, t_ns);
            match answer.decision {
                Ok(grant) => granted.push((rate, grant)),
                Err(_) => {
                    granted
                        .iter()
                        .for_each(|(rate, grant)| rate.gate.undo(*grant));
                    return Some((rate, answer));
                }
            }
        }
        None
    }
}

impl Replay for PyrateTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "put" {
            return Err(op.unknown());
        }
        let (n, t) = (op.args.u64("n")?, op.args.u64("t")?);
        let t_ns = t.saturating_mul(1_000_000);
        let refused = self.ask(n, t_ns);
        let ok = op.result.flag("ok")?;
        let mut comparison = Comparison::decision(op, ok, refused.is_none());
        if !ok {
            let (limit, interval) = failing(&op.result)?;
            let ours = refused
                .as_ref()
                .map(|(rate, answer)| (*rate, answer.retry_ns()));
            let wait = match op.result.i64("waiting_ms")? {
                -1 => None,
                wait => Some(wait),
            };
            let ours_wait = ours.and_then(|(_, wait)| wait);
            comparison = comparison
                .and("failing limit", limit, ours.map(|(rate, _)| rate.limit))
                .and(
                    "failing interval",
                    interval,
                    ours.map(|(rate, _)| rate.interval_ms),
                )
                .and(
                    "waiting_ms",
                    wait,
                    ours_wait.map(|ns| ns.div_ceil(1_000_000)),
                );
        }
        let tats = op.result.list("tat_us")?;
        if tats.len() != self.rates.len() {
            return Err(Malformed(
                "`tat_us` has another length than `rates`".to_owned(),
            ));
        }
        for ((rate, tat), field) in self.rates.iter().zip(tats).zip(TAT) {
            // Those behind the first that refused were not asked, and their clocks stand still.
            rate.gate.set_time(t_ns);
            // In nanoseconds, so that no part of a microsecond is overlooked.
            let theirs = Value::Number(to_full_us(tat, t)? * 1000);
            comparison = comparison.and(field, theirs, rate.gate.reset_ns());
        }
        Ok(comparison)
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

fn to_full_us(tat: &Json, t_ms: u64) -> Result<i128, Malformed> {
    let now = i128::from(t_ms) * 1000;
    match (tat, tat.as_i64()) {
        (Json::Null, _) => Ok(0),
        (_, Some(tat)) => Ok((i128::from(tat) - now).max(0)),
        _ => Err(Malformed(format!("a TAT of {tat}"))),
    }
}
