//! Shared helpers of this binary: a random stream, models, and the driver that compares limiters
//! with them.

pub(crate) mod algorithms;
pub(crate) mod driver;
pub(crate) mod edges;
#[path = "../../support/forged.rs"]
pub(crate) mod forged;
#[path = "../../support/hooks.rs"]
pub(crate) mod hooks;
pub(crate) mod moment;
#[path = "../../support/prelude.rs"]
mod prelude;
#[path = "../../support/random.rs"]
pub(crate) mod random;
#[path = "../../support/reference/mod.rs"]
pub(crate) mod reference;
pub(crate) mod seen;
pub(crate) mod subject;
#[path = "../../support/threads.rs"]
pub(crate) mod threads;
#[path = "../../support/verbs.rs"]
pub(crate) mod verbs;

pub(crate) use crate::deadline::deadline;
pub(crate) use algorithms::algorithms;
pub(crate) use edges::{DAY, YEAR, per_ns};
pub(crate) use moment::any_start;
pub(crate) use prelude::*;
pub(crate) use random::Random;
pub(crate) use reference::FIFTY_YEARS;
pub(crate) use seen::Seen;
