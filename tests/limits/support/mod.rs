//! What the tests of this binary share: a random stream, models to compare with, and the driver
//! that compares.

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
