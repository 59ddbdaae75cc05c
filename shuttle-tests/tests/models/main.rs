//! Every model that runs under shuttle, a module for each protocol.

#![cfg(tollgate_shuttle)]

mod adjust;
mod cell;
mod concurrency;
mod keyed;
mod keyed_quota;
mod keyed_turnover;
