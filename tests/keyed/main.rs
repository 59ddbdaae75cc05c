//! Limits for each key: the table of fixed size, its snapshots, and the map that stores its keys.

mod compose;
mod concurrency;
mod counted;
mod keyed;
mod keyed_map;
mod metrics;
mod support;
