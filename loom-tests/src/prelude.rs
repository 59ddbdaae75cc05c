//! The names that most models use.

pub use std::sync::{Arc, Mutex, PoisonError};
pub use std::time::Duration;

pub use tollgate::algorithm::{Algorithm, ChangeQuota};
pub use tollgate::clock::{Clock, NoClock};
pub use tollgate::compose::All;
pub use tollgate::outcome::Charged;
pub use tollgate::sync::model::Fault;
pub use tollgate::{
    AnyAlgorithm, Concurrency, Denied, FixedWindow, Granted, Intervals, Keep, LeakyBucket, Leases,
    Limiter, ManualClock, Quota, Sharded, SlidingLog, SlidingWindow, SlottedWindow, Tick,
    TokenBucket,
};

pub use crate::source;
pub use crate::words::{self, MakeWord};
pub use crate::{Action as Any, Scenario as AnyScenario};
pub use crate::{
    Answer, Expected, Operation, Run, ScenarioOutcome, Source, Subject, Verb, actor, broken, deep,
    deep_model, deeper, model, on_broken, pairs, samples, suite,
};
