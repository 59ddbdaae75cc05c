//! The part that finds: where a key may be, and what the slots there hold. It knows no algorithm,
//! and uses no other part of the table.
//!
//! | type | the other parts use it to |
//! |---|---|
//! | [`ProbeSeq`] | name a key: its hash, its tag |
//! | [`Table`], by `find`, `found`, `look`, `look_at_labels` | load slots |
//! | [`Table`], by `claim`, `evict`, `establish`, `release`, `migrate`, `decide` | change slots |
//! | [`FoundSlot`] | decide on a slot in place |
//! | [`Probe`], its labels | choose among the slots where a key may be |
//! | [`SlotState`] | read and make the content of a slot |

mod probe;
mod probe_seq;
mod slot;
mod table;

pub(super) use probe::{Lookup, Probe};
pub(super) use probe_seq::{ProbeSeq, tag_of};
pub(super) use slot::{NEWCOMER, PLANS, PROTECTED, SlotState, UNPROTECTED, VERSIONS};
pub(super) use table::{FoundSlot, SlotIndex, Table};
