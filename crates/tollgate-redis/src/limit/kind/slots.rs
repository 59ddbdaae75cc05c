//! Concurrency: slots with leases, so that a client that crashes gives its slots back.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::process;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tollgate::Granted;
use tollgate::outcome::Charged;

use super::{Taken, tick, wait};
use crate::limit::bounds::SPAN;
use crate::limit::rate::Ticks;
use crate::script::packed::{BadReply, MOST, Packed, pack};

/// The most slots. Each holder has an entry on the server, which decides no other call while it
/// writes them: `benches/largest.rs` measures how long.
pub(crate) const MOST_SLOTS: u64 = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slots {
    pub(crate) limit: u64,
    /// Microseconds.
    pub(crate) lease: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotsSeen {
    live: u64,
    /// When the last lease ends, or 0. A ban may end later: then nothing is granted.
    last: u64,
    /// The number of the first holder, if the request is granted.
    first: u64,
}

/// What the names of this process's holders begin with.
static BASE: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// Returns the number of the first of `n` holders that were never named before.
fn new_holders(n: u64) -> u64 {
    static NEXT: Mutex<u64> = Mutex::new(0);
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let first = *next;
    *next = first.wrapping_add(n) & MOST;
    first
}

impl Slots {
    /// Appends a request by new holders, or about those of a grant.
    pub(super) fn argue(&self, arg: &mut Vec<u8>, n: u64, first: Option<u64>) {
        let n = n.min(2 * MOST_SLOTS);
        let first = first.unwrap_or_else(|| new_holders(n));
        pack(arg, &[n, self.limit, self.lease, first]);
        // A process that is forked off has the same base and the same numbers, but another id.
        let base = *BASE ^ u64::from(process::id());
        arg.extend(base.to_le_bytes());
    }

    /// Reads what `slots.tell` returns.
    pub(super) fn see(&self, told: &mut Packed<'_>) -> Result<(SlotsSeen, u64), BadReply> {
        let live = told.next(2 * MOST_SLOTS)?;
        let last = told.next(2 * SPAN)?;
        let first = told.next(MOST)?;
        let ban = told.next(2 * SPAN)?;
        Ok((SlotsSeen { live, last, first }, ban))
    }

    pub(super) fn available(&self, seen: &SlotsSeen) -> u64 {
        self.limit.saturating_sub(seen.live)
    }

    /// Returns whether `n` more slots are free.
    pub(super) fn fits(&self, seen: &SlotsSeen, n: u64) -> bool {
        seen.live.saturating_add(n) <= self.limit
    }

    pub(super) fn taken(&self, seen: &SlotsSeen, now: u64, n: u64) -> Result<Taken, BadReply> {
        let live = seen.live.saturating_add(n);
        if live > self.limit {
            return Err(BadReply);
        }
        let room = self.limit.saturating_sub(live);
        let mut granted = Granted::new(n, tick(now)).with_remaining(room, NonZeroU64::MIN);
        if live > 0 {
            let lease = if n > 0 { self.lease } else { 0 };
            granted = granted.with_reset_at(tick(seen.last.max(now.saturating_add(lease))));
        }
        Ok(Taken {
            granted,
            mark: Ticks {
                whole: seen.first,
                part: 0,
            },
            rate: None,
        })
    }

    /// Reads what `slots.charge` returns. A debt is paid at the end of the last lease, if no slot
    /// is given back and no lease is renewed before.
    pub(super) fn charged(&self, told: &mut Packed<'_>, now: u64) -> Result<Charged, BadReply> {
        let n = told.next(2 * MOST_SLOTS)?;
        let live = told.next(2 * MOST_SLOTS)?;
        let last = told.next(2 * SPAN)?;
        let debt = live.saturating_sub(self.limit);
        let clear_after = match debt {
            0 => Some(Duration::ZERO),
            _ => wait(last, now),
        };
        Ok(Charged::new(n, tick(now)).with_debt(debt, clear_after.unwrap_or(Duration::MAX)))
    }
}
