//! All models of tollgate's protocols, with a module for each protocol.

#![cfg(tollgate_loom)]

mod adjust;
mod bound;
mod cell;
mod clock;
mod compose;
mod compose_rows;
mod concurrency;
mod concurrency_word;
mod heaviest;
mod hint;
mod keyed;
mod keyed_concurrency;
mod keyed_overrides;
mod keyed_quota;
mod keyed_turnover;
mod leases;
mod line;
mod log;
mod node_leases;
mod node_slots;
mod own_algorithm;
mod reservations;
mod rollover;
mod service;
mod shards;
mod slots;
mod smooth;
mod start;
mod steps;
mod verbs;
mod window_length;
mod window_steps;
mod windows;
mod word;
