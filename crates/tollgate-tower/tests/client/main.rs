//! The client layer.

mod contract;
mod fleet;
mod holds;
mod own_quota;
mod retries;
mod served;
mod sharing;
mod together;
