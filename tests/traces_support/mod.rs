//! One adapter for each recorded limiter, and proofs that the runner can fail.
//!
//! The runner is the package `tollgate-replay` in tests/replay. An adapter is a file in `sources/`: a
//! [`Source`](tollgate_replay::Source) that knows its traces by their headers, and a
//! [`Replay`](tollgate_replay::Replay) that translates units and arguments, and nothing else. An
//! adapter that repeated what the recorded limiter gets wrong would test itself. To add one, write
//! the file and name it in [`sources::all`].

mod proofs;
pub(crate) mod sources;

pub(crate) use proofs::own_copy;
