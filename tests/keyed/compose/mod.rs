//! Compositions of limits of every kind, with keys of tables among them.

mod keys;
mod limits;
mod model;
mod reserve;
mod run;
