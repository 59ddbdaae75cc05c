//! Shared helpers of this binary: a random stream, models, and the driver that compares limiters
//! with them.

pub(crate) mod algorithms;
pub(crate) mod defined;
pub(crate) mod driver;
pub(crate) mod edges;
pub(crate) mod model;
pub(crate) mod moment;
#[path = "../../support/random.rs"]
pub(crate) mod random;
pub(crate) mod reference;
pub(crate) mod seen;
pub(crate) mod subject;
