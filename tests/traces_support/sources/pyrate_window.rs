//! pyrate-limiter's fixed windows, milliseconds, aligned to the Unix epoch: a [`FixedWindow`]; and its
//! sliding log: a [`SlidingLog`](tollgate::SlidingLog).
//!
//! Either keeps a log of what it admitted, of which `stored` is the length, and from which a leak removes
//! what no window counts any more: all but what the longest counts. The log here is what we granted.
//!
//! Of the sliding log an interval is closed at both its ends: what is a second old still counts in a second.
//! In its whole milliseconds that is a window of 1001 of them, which is our argument.
//!
//! For the rest see [`pyrate_rates`](super::pyrate_rates).

use std::time::Duration;

use tollgate::{FixedWindow, Quota};
use tollgate_replay::{Comparison, Gate, Header, Malformed, Op, Replay, Source};

use super::log_gate::LogGate;
use super::pyrate_rates::{One, Rates, nanos};

pub(crate) struct PyrateWindow;

pub(crate) struct PyrateLog;

impl Source for PyrateWindow {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("pyrate-limiter ") && header.algorithm == "fixed_window_aligned"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        // Where the recorded times begin our ticks begin too.
        let origin = header.origin()?;
        let rates = Rates::new(&header.config, |_, limit, interval_ms| {
            let quota = Quota::per(limit, Duration::from_millis(interval_ms));
            Gate::new(FixedWindow::new(quota).map(|window| window.aligned_to_unix(origin)))
        })?;
        Ok(Box::new(WindowTrace { rates, log: 0 }))
    }
}

impl Source for PyrateLog {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("pyrate-limiter ") && header.algorithm == "sliding_log"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let rates = Rates::new(&header.config, |_, limit, interval_ms| {
            LogGate::new(limit, Duration::from_millis(interval_ms + 1))
        })?;
        Ok(Box::new(WindowTrace { rates, log: 0 }))
    }
}

/// One that says what it counts.
trait Counts: One {
    /// How many permits are in its window at this time.
    fn counted(&self, t_ns: u64) -> u64;
}

impl Counts for Gate<FixedWindow> {
    fn counted(&self, t_ns: u64) -> u64 {
        self.set_time(t_ns);
        self.limiter().level().floor()
    }
}

impl Counts for LogGate {
    fn counted(&self, t_ns: u64) -> u64 {
        self.set_time(t_ns);
        Self::counted(self)
    }
}

struct WindowTrace<G> {
    rates: Rates<G>,
    /// The permits granted that no leak has removed.
    log: u64,
}

impl<G: Counts> Replay for WindowTrace<G> {
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
                let left = self.counted(nanos(op.args.u64("t")?));
                let removed = self.log.saturating_sub(left);
                self.log = left;
                let comparison = Comparison::without_decision(op);
                Ok(comparison.and("removed", op.result.u64("removed")?, removed))
            }
            _ => Err(op.unknown()),
        }
    }
}

impl<G: Counts> WindowTrace<G> {
    /// What the longest window counts. They stand in the order of their lengths.
    fn counted(&self, t_ns: u64) -> u64 {
        let longest = self.rates.rates.last();
        longest.map_or(0, |rate| rate.gate.counted(t_ns))
    }
}
