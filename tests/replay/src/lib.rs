//! The trace runner: replays the recorded decisions of other limiters on any tollgate algorithm,
//! including custom ones, and compares every value.
//!
//! A [`Source`] recognizes its traces by their headers and makes a [`Replay`] of each. A replay
//! only translates units and arguments: one that repeated the recorded limiter's mistakes would
//! test itself. It asks a [`ReplayedLimiter`] and pairs the recorded values with the answers in a
//! [`Comparison`]. [`run_folder`] and [`run_text`] judge the comparison. An accepted difference has
//! a [`Class`], and every other one is a failure. [`proof`] shows that a replay notices changes.
//!
//! ```
//! use std::time::Duration;
//!
//! use tollgate::Gcra;
//! use tollgate_replay::{Comparison, ReplayedLimiter, Header, Malformed, Op, Replay, Source, run_text};
//!
//! struct Spaced;
//!
//! impl Source for Spaced {
//!     fn knows(&self, header: &Header) -> bool {
//!         header.source == "spaced 1.0"
//!     }
//!
//!     fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
//!         let interval = Duration::from_millis(header.config.positive("every_ms")?);
//!         Ok(Box::new(Trace(ReplayedLimiter::new(Gcra::from_interval(interval, Duration::ZERO))?)))
//!     }
//! }
//!
//! struct Trace(ReplayedLimiter<Gcra>);
//!
//! impl Replay for Trace {
//!     fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
//!         let ours = self.0.ask(1, op.args.u64("t")? * 1_000_000);
//!         let wait = op.result.optional_u64("wait_ms")?;
//!         Ok(Comparison::decision(op.result.flag("ok")?, ours.ok())
//!             .and("wait_ms", wait, ours.retry_ns().map(|ns| ns / 1_000_000)))
//!     }
//! }
//!
//! let text = r#"{"source":"spaced 1.0","algorithm":"spacing","trace":"10 ms","config":{"every_ms":10},"ops":2}
//! {"t":5,"op":"go","result":{"ok":true}}
//! {"t":9,"op":"go","result":{"ok":false,"wait_ms":6}}
//! "#;
//! let report = run_text("spaced.jsonl", text, &[&Spaced]);
//! assert!(report.failures.is_empty());
//! assert_eq!((report.traces, report.ops, report.fields), (1, 2, 4));
//! ```

mod comparison;
mod format;
mod level;
mod limiter;
pub mod prelude;
pub mod proof;
mod report;
mod runner;

pub use comparison::{Class, Comparison, Direction, TIE, Value};
pub use format::{Fields, Header, Malformed, Op, read_text};
pub use level::{Decided, LevelLimiter, before, is_tie, quota};
pub use limiter::{Answer, ReplayedLimiter, check_forecast, in_nanos};
pub use report::{Difference, Failure, FileReport, Report};
pub use runner::{Replay, Source, run_folder, run_text};
