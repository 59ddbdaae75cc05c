//! The client layer.

mod budget;
mod contract;
mod fleet;
mod holds;
mod idle;
mod own_quota;
mod retries;
mod served;
mod sharing;
mod together;
