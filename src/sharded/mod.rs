//! A limit in several words, one for each core: [`Sharded`](crate::Sharded) and its view.
//!
//! # Layout
//!
//! ```text
//!  one cache line, or as few as it takes      the next
//! ┌────────────────────────────────────────┬────────────────────────────────────────┬──
//! │ word, and the shard's own parameters   │ word, and the shard's own parameters   │ ...
//! └────────────────────────────────────────┴────────────────────────────────────────┴──
//! ```
//!
//! Each word runs the algorithm on fractions of a permit, so that all shards are equal. There is no
//! word that all share: the shards' bounds add up to the whole's, whatever the threads do.
//!
//! A decision takes from the thread's own shard if that stays seven eighths full, or nearly as full
//! as the fullest was at the last look; else it looks at all shards and takes from one or from
//! several, so that they stay level (`multi_shard.rs`). If none has a permit, a word beside the
//! shards says until when, so that others are denied without such a look (`hint.rs`).

mod hint;
pub(crate) mod limiter;
mod multi_shard;
mod shard;
mod view;

pub use view::ShardedView;
