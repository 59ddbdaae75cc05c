//! Leases: permits that a node draws ahead of need, and spends without a round trip.
//!
//! ```text
//!  spenders ─ spend ─► pool ◄─ withdraw, answered ─ keeper ◄─ ask, answer ─► server
//!  (many threads)   (one word)                    (one task)               (a script)
//! ```
//!
//! # The protocol
//!
//! The server knows for each key what is *used*, and for each node how many permits are *out* and
//! when its lease ends. A node asks with one message: how many permits it keeps, how many it
//! returns, and how many it wants. The answer says how many it got.
//!
//! - A draw is granted as a request for as many permits. So permits are used when they are drawn.
//! - **Used is never less than what is out.** So permits that are not spent yet are not refilled,
//!   in a bucket; are counted again in the next window; and are held slots of a limit on
//!   concurrency. This keeps the bound: see `docs/DISTRIBUTED.md`.
//! - A node that finds nothing left is told its turn, and what is left is divided among those that
//!   wait. So none takes what another one waits for.
//! - What a node no longer keeps, and does not return, it has spent.
//! - When a lease ends, its permits count as spent, and its slots are free.
//! - The node stops to spend before that: it counts the life from before it asked, on a clock that
//!   counts suspension, and less a margin for clocks that run at different rates.
//! - Messages have numbers. The server answers a message that comes again as before, and ignores
//!   an older one. A node reads the answer to its latest message alone, and once.
//!
//! # Slots
//!
//! Of a limit on concurrency, a node keeps the slots that are idle and those that are in use. Both
//! are in one word ([`slots_held`]). Only messages and answers change their sum, so the node always
//! says exactly what it keeps. Callers enter and leave without a message.
//!
//! ```text
//!  callers ─ enter, leave ─► slots ◄─ withdraw, answered, lapse ─ keeper
//!                       (idle, in use) and (in use, by the time at which they were entered)
//! ```
//!
//! - When the lease ends while slots are in use, or the server does not hold some of them, all of
//!   the key are lost: the word stays so for good, and the key gets a new one.
//! - A guard has its slots until it is dropped. A grant has them for the limit's lease, and then
//!   they are idle again ([`generations`]).
//!
//! # Keys that are asked for seldom
//!
//! They have no lease: the server decides, or first an *allowance* ([`allowance`]), which is a part
//! of the limit that the process has for itself.
//!
//! # Faults
//!
//! What can go wrong costs permits, and never grants one twice: an answer that is lost, a message
//! that comes twice or late, a node that forgets what it holds. `tests/leases` checks this for all
//! orders of events, and that each of these rules is needed.

#![expect(
    clippy::disallowed_types,
    reason = "a model puts loom's in place of the atomics of a pool; the others need none"
)]

mod allowance;
pub(crate) mod demand;
mod generations;
pub(crate) mod held;
pub(crate) mod holder;
pub(crate) mod hot;
mod inside;
pub(crate) mod keeper;
mod node;
mod options;
mod permits;
pub(crate) mod pool;
mod slot_pool;
pub(crate) mod slots_held;
pub(crate) mod stats;
mod sync;
mod terms;
pub(crate) mod time;

pub(crate) use allowance::{Own, divided};
pub(crate) use hot::{GrantedAfter, Said};
pub(crate) use inside::Inside;
pub(crate) use node::Leases;
pub use options::{Allowance, LeaseError, Leasing};
pub use stats::LeaseStats;

#[cfg(test)]
#[path = "../../tests/leases/mod.rs"]
mod tests;
