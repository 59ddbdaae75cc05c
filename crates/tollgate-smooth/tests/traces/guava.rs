//! Guava's `SmoothBursty` and `SmoothWarmingUp`: microseconds and doubles. Ours counts whole
//! microseconds and truncates each cost as they do.
//!
//! Every value is compared exactly: the next turn to the microsecond, and the stored permits as
//! doubles. There are no ties, and no state is adopted except for the one defect that has a class.

use std::time::Duration;

use tollgate::Tick;
use tollgate::clock::NoClock;
use tollgate_replay::{Class, Comparison, Direction, Header, Malformed, Op, Replay, Source};
use tollgate_smooth::{SmoothBursty, SmoothError, SmoothWarmingUp};

/// In theirs, a request for 0 or fewer permits is an error. Ours takes nothing for 0, and negative
/// requests are impossible.
static NO_PERMITS: Class = Class {
    name: "a request for no permits: theirs fails, ours takes nothing",
    directions: &[Direction::OtherValue],
};

/// With a warm-up of 0 they divide 0 by 0. The stored permits become NaN, and each call is free
/// from then on, until the rate is set. Ours charges an interval for a permit.
static FREE_FOR_EVER: Class = Class {
    name: "a warm-up of 0: theirs stops limiting, ours keeps the steady rate",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

/// The adapter. It translates units and arguments, and nothing else.
pub(super) struct Guava;

impl Source for Guava {
    fn knows(&self, header: &Header) -> bool {
        let algorithms = ["SmoothBursty", "SmoothWarmingUp"];
        header.source.starts_with("guava ") && algorithms.contains(&header.algorithm.as_str())
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let start = header.time_zero()?;
        let limiter = Smooth::new(header, start)?;
        let initial = (
            header.initial.f64("stored")?,
            header.initial.f64("max")?,
            header.initial.u64("next_free")?,
        );
        let ours = (limiter.stored(), limiter.max_stored(), limiter.next_free());
        if initial != ours {
            return Err(Malformed(format!("it begins with {ours:?}: {initial:?}")));
        }
        let theirs = Theirs {
            is_free: false,
            next_free: start,
        };
        Ok(Box::new(Trace {
            limiter,
            has_no_warm_up: header.config.get("warmup_us").is_some_and(|it| it == 0),
            before: theirs,
            after: theirs,
        }))
    }
}

/// Our limiter of either kind.
enum Smooth {
    Bursty(SmoothBursty<NoClock>),
    WarmingUp(SmoothWarmingUp<NoClock>),
}

macro_rules! either {
    ($limiter:expr, $it:ident => $what:expr) => {
        match $limiter {
            Smooth::Bursty($it) => $what,
            Smooth::WarmingUp($it) => $what,
        }
    };
}

fn refused(error: SmoothError) -> Malformed {
    Malformed(error.to_string())
}

fn tick(micros: u64) -> Tick {
    Tick::from_nanos(micros * 1_000)
}

impl Smooth {
    fn new(header: &Header, start: u64) -> Result<Self, Malformed> {
        let (config, start) = (&header.config, tick(start));
        let rate = config.f64("rate")?;
        if header.algorithm == "SmoothBursty" {
            let max_burst = Duration::from_secs_f64(config.f64("max_burst_seconds")?);
            let limiter = SmoothBursty::started_at(rate, NoClock, start).map_err(refused)?;
            let limiter = limiter.max_burst(max_burst).map_err(refused)?;
            return Ok(Self::Bursty(limiter.in_whole_micros()));
        }
        let warm_up = Duration::from_micros(config.u64("warmup_us")?);
        let limiter = SmoothWarmingUp::started_at(rate, warm_up, NoClock, start);
        let limiter = limiter.map_err(refused)?;
        let limiter = limiter.cold_factor(config.f64("cold_factor")?);
        Ok(Self::WarmingUp(limiter.map_err(refused)?.in_whole_micros()))
    }

    fn max_stored(&self) -> f64 {
        either!(self, it => it.max_stored())
    }

    /// Returns the stored permits after the last call. At an older tick no permits have been added
    /// since.
    fn stored(&self) -> f64 {
        either!(self, it => it.stored_at(Tick::ZERO))
    }

    fn next_free(&self) -> u64 {
        either!(self, it => it.next_free_at(Tick::ZERO)).as_nanos() / 1_000
    }
}

/// Their state, as far as the defect needs it.
#[derive(Clone, Copy)]
struct Theirs {
    /// Whether the stored permits are NaN.
    is_free: bool,
    next_free: u64,
}

struct Trace {
    limiter: Smooth,
    has_no_warm_up: bool,
    before: Theirs,
    after: Theirs,
}

/// Returns the stored permits, printed by the recorder as a double.
fn stored(op: &Op) -> Result<f64, Malformed> {
    match op.result.get("stored") {
        Some(value) if value == "NaN" => Ok(f64::NAN),
        _ => op.result.f64("stored"),
    }
}

impl Replay for Trace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t = op.args.u64("t")?;
        let limiter = &self.limiter;
        let comparison = match op.name.as_str() {
            "set_rate" => {
                let rate = op.args.f64("rate")?;
                either!(limiter, it => it.set_rate_at(rate, tick(t))).map_err(refused)?;
                let ours = either!(limiter, it => it.rate());
                Comparison::without_decision()
                    .and("get_rate", op.result.f64("get_rate")?, ours)
                    .and("max", op.result.f64("max")?, limiter.max_stored())
            }
            "acquire" => turn(limiter, op, None)?,
            "try_acquire" => turn(limiter, op, Some(op.args.i64("timeout_us")?))?,
            _ => return Err(op.unknown()),
        };
        // Exact to the last bit. Levels would be compared within a millionth.
        let (theirs, ours) = (stored(op)?, limiter.stored());
        self.before = self.after;
        self.after = Theirs {
            is_free: theirs.is_nan(),
            next_free: op.result.u64("next_free")?,
        };
        Ok(comparison
            .and("stored", theirs, ours)
            .and("stored, its bits", theirs.to_bits(), ours.to_bits())
            .and("next_free", self.after.next_free, self.limiter.next_free()))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        if field == "error" {
            // The stored permits are compared as well.
            return (op.args.i64("n").ok()? <= 0).then_some(&NO_PERMITS);
        }
        // They answer every request at once, and no later call pays for it.
        let t = op.args.u64("t").ok()?;
        let is_call = op.result.get("wait_us").is_some();
        let (is_free, next_free) = match op.name.as_str() {
            "set_rate" => (self.before.is_free, self.before.next_free.max(t)),
            _ if is_call => (self.after.is_free, self.before.next_free.max(t)),
            _ => (self.after.is_free, self.before.next_free),
        };
        let goes = !is_call || (op.result.u64("wait_us").ok() == Some(0) && was_let_in(op));
        let (theirs, ours) = comparison.numbers("next_free")?;
        let fits = self.has_no_warm_up && is_free && goes;
        let fits = fits && theirs == i128::from(next_free) && ours >= theirs;
        (fits && !["get_rate", "max"].contains(&field)).then_some(&FREE_FOR_EVER)
    }

    /// Setting the rate replaces the NaN with a number, and they limit until they are idle again.
    /// So our limiter continues from their turn then. Before that it continues from its own.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        if op.name != "set_rate" {
            return Ok(false);
        }
        let rate = op.args.f64("rate")?;
        let start = tick(self.after.next_free);
        let limiter = SmoothWarmingUp::started_at(rate, Duration::ZERO, NoClock, start);
        self.limiter = Smooth::WarmingUp(limiter.map_err(refused)?.in_whole_micros());
        Ok(true)
    }
}

fn was_let_in(op: &Op) -> bool {
    op.name == "acquire" || op.result.flag("ok").unwrap_or(false)
}

/// Compares the result of a request for a turn.
fn turn(limiter: &Smooth, op: &Op, timeout: Option<i64>) -> Result<Comparison, Malformed> {
    let (n, now) = (op.args.i64("n")?, tick(op.args.u64("t")?));
    let wait = timeout.map(|us| Duration::from_micros(us.max(0).unsigned_abs()));
    let ours = u64::try_from(n).ok().map(|n| match wait {
        None => either!(limiter, it => it.reserve_at(n, now)),
        Some(wait) => either!(limiter, it => it.reserve_within_at(n, wait, now)),
    });
    if op.result.get("error").is_some() {
        let error = match op.result.text("error")? {
            "IllegalArgumentException" => "refused",
            _ => return Err(Malformed("an error of another kind".to_owned())),
        };
        let ours = ours.map(|answer| answer.map_or("denied", |_| "nothing"));
        return Ok(Comparison::without_decision().and("error", error, ours));
    }
    let ours = ours.ok_or_else(|| Malformed(format!("{n} permits")))?;
    let wait = ours.map_or(0, |turn| turn.delay().as_micros() as u64);
    let theirs = op.result.u64("wait_us")?;
    let decided = match timeout {
        // A caller that waits forever is always admitted.
        None => Comparison::decision(true, ours.is_ok()),
        Some(_) => Comparison::decision(op.result.flag("ok")?, ours.is_ok()),
    };
    Ok(decided.and("wait_us", theirs, wait))
}
