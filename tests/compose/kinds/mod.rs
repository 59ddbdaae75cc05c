//! Compositions of limits of every kind, with keys of tables among them.

mod concurrency;
mod keys;
mod limits;
mod model;
mod reserve;
mod run;
