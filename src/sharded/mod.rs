//! A limit that is split into shards, about one for each core: [`Sharded`](crate::Sharded) and its
//! view.
//!
//! # Layout
//!
//! ```text
//!  one shard: one or more whole cache lines  the next shard
//! ┌────────────────────────────────────────┬────────────────────────────────────────┬──
//! │ word, and the shard's own parameters   │ word, and the shard's own parameters   │ ...
//! └────────────────────────────────────────┴────────────────────────────────────────┴──
//! ```
//!
//! Each shard has a word of its own and runs the algorithm on fractions of a permit, so that all
//! shards get equal shares. There is no word for the whole limiter: the shards' bounds add up to
//! the limiter's bound, however the threads interleave.
//!
//! A decision takes from the thread's own shard if that leaves it at least seven eighths full, or
//! nearly as full as the fullest shard was at the last scan. Otherwise it scans all shards and
//! takes from one or several, which keeps them level (`multi_shard.rs`). If no shard has a permit,
//! a word beside the shards stores the tick of the next permit. Requests before that tick are
//! denied without a scan (`hint.rs`).

mod hint;
pub(crate) mod limiter;
mod multi_shard;
mod shard;
mod view;

pub use view::ShardedView;
