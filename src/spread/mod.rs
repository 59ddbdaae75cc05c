//! Past one cache line: [`Sharded`] limits, and permits that are lent to a thread by [`Leases`].

mod home;
mod leases;
mod sharded;

pub(crate) use home::Homes;
pub use leases::{Lease, Leases, Lender};
pub use sharded::{MAX_SHARDS, Sharded, ShardedAt};
