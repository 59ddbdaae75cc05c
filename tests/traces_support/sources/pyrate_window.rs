//! pyrate-limiter's fixed windows, milliseconds, aligned to the Unix epoch: a [`FixedWindow`].
//!
//! It keeps a log of what it admitted, of which `stored` is the length, and from which a leak removes
//! what no window counts any more: all but what the longest counts. The log here is what we granted.
//! For the rest see [`pyrate_rates`](super::pyrate_rates).

use std::time::Duration;

use tollgate::{FixedWindow, Quota};
use tollgate_replay::{Comparison, Gate, Header, Malformed, Op, Replay, Source};

use super::pyrate_rates::{Rates, nanos};

pub(crate) struct PyrateWindow;

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

struct WindowTrace {
    rates: Rates<FixedWindow>,
    /// The permits granted that no leak has removed.
    log: u64,
}

impl Replay for WindowTrace {
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

impl WindowTrace {
    /// What the longest window counts. They stand in the order of their lengths.
    fn counted(&self, t_ns: u64) -> u64 {
        let longest = self.rates.rates.last();
        longest.map_or(0, |rate| {
            rate.gate.set_time(t_ns);
            rate.gate.limiter().level().floor()
        })
    }
}
