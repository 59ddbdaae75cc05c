//! The trace runner, and one adapter for each recorded limiter.
//!
//! An adapter is a file in `sources/`: a [`Source`](runner::Source) that knows its traces by their
//! headers, and a [`Replay`](runner::Replay) that translates units and arguments, and nothing else.
//! An adapter that repeated what the recorded limiter gets wrong would test itself. To add one,
//! write the file and name it in [`sources::all`].

pub(crate) mod comparison;
pub(crate) mod format;
pub(crate) mod gate;
pub(crate) mod level;
mod proofs;
pub(crate) mod report;
pub(crate) mod runner;
pub(crate) mod sources;

pub(crate) use proofs::own_copy;
