//! pyrate-limiter's GCRA, milliseconds.
//!
//! Its interval is rounded up to whole microseconds, which is our argument. A TAT that is null or in
//! the past means a full limiter, and so is compared as the time to full. For the rest see
//! [`pyrate_rates`](super::pyrate_rates).

use std::time::Duration;

use serde_json::Value as Json;
use tollgate::Gcra;
use tollgate_replay::{Comparison, Fields, Gate, Header, Malformed, Op, Replay, Source, Value};

use super::pyrate_rates::{Rates, nanos};

const TAT: [&str; 2] = ["tat_us[0]", "tat_us[1]"];

pub(crate) struct Pyrate;

impl Source for Pyrate {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("pyrate-limiter ") && header.algorithm == "gcra"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let rates = Rates::new(&header.config, gate)?;
        if rates.rates.len() > TAT.len() {
            return Err(Malformed("more than two rates".to_owned()));
        }
        Ok(Box::new(PyrateTrace(rates)))
    }
}

fn gate(config: &Fields, limit: u64, interval_ms: u64) -> Result<Gate<Gcra>, Malformed> {
    let emission_us = interval_ms.saturating_mul(1000).div_ceil(limit);
    let tolerance_us = emission_us.saturating_mul(config.positive("burst")? - 1);
    Gate::new(Gcra::from_interval(
        Duration::from_micros(emission_us),
        Duration::from_micros(tolerance_us),
    ))
}

struct PyrateTrace(Rates<Gate<Gcra>>);

impl Replay for PyrateTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "put" {
            return Err(op.unknown());
        }
        let t = op.args.u64("t")?;
        let (_, mut comparison) = self.0.put(op)?;
        let tats = op.result.list("tat_us")?;
        if tats.len() != self.0.rates.len() {
            return Err(Malformed(
                "`tat_us` has another length than `rates`".to_owned(),
            ));
        }
        for ((rate, tat), field) in self.0.rates.iter().zip(tats).zip(TAT) {
            // Those behind the first that refused were not asked, and their clocks stand still.
            rate.gate.set_time(nanos(t));
            // In nanoseconds, so that no part of a microsecond is overlooked.
            let theirs = Value::Number(to_full_us(tat, t)? * 1000);
            comparison = comparison.and(field, theirs, rate.gate.reset_ns());
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
