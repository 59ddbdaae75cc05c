//! The protocol by which permits get into a log.
//!
//! The next permit replaces the oldest entry, so the thread that exchanges this entry has taken the
//! permit. The *head* is a position at or shortly before the next permit, from which a thread finds
//! the oldest entry. It moves once for each stride of permits.
//!
//! 1. **Look.** A thread loads the head, and reads entries from there to the first one that is of
//!    the lap before: the oldest. Then it loads the head again. If the head has not moved, that
//!    entry was the oldest when it was read. `n` permits may be replaced if the `n`-th oldest has
//!    expired.
//! 2. **Claim.** One exchange of the oldest entry is the decision. For one permit it enters the
//!    permit's tick, `max(now, newest)`, and nothing is left to do. For several it enters a claim
//!    of all `n` permits.
//! 3. **Enter.** The other entries of a claim get its tick, in order, and the claim's own entry
//!    last. Any thread can do this, so a thread that stops after its claim blocks no other. The
//!    first exchange decides which tick that is: `max(now, newest)` of the thread that makes it,
//!    and no less than that of the claimer, who raises `claimed_at` to it before the claim. The
//!    claimer reports the tick that was entered. If the entry is claimed again before the claimer
//!    reads it, the claimer reports the tick at which the claim was admitted, which is no later.
//!
//! **Why the exchange is enough.** An entry changes only after all entries before it, and never
//! gets a value again that it had. So if the oldest entry is unchanged, nothing was claimed since
//! the look, and everything that was read still holds.
//!
//! **Why the parity is enough.** No permit is claimed more than a lap past the head: a thread that
//! would do so moves the head first. So while the head stands, an entry has one of two laps, and
//! its parity says which.
//!
//! **The bound.** Number all permits in the order of their positions. The tick of permit `i` is
//! never below that of permit `i - 1`, and at least a period above that of permit `i - n`, whose
//! entry it replaces. So of `n + 1` consecutive permits the last is at least a period later than
//! the first.

use super::SlidingLog;
use super::shape::{is_claim, kind_of, tick_of, told};
use crate::clock::Tick;
use crate::sync::{AtomicU64, Backoff, Ordering, inject_fault};

/// What a thread has read of the log.
#[derive(Clone, Copy)]
pub(super) struct LogView {
    head: u64,
    /// How many permits after the head have been claimed.
    past: u64,
    /// The position of the next permit.
    next: u64,
    /// The entry there: the oldest, or a claim that has not been entered.
    pub(super) oldest: u64,
    /// The entry before it.
    pub(super) newest: u64,
    /// The tick at which a permit would count now.
    pub(super) now: u64,
}

impl<C> SlidingLog<C> {
    #[inline(always)]
    fn load(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `advance`: a thread that sees the head
        // sees all entries before it. If this were Relaxed, an entry could look as it did two laps
        // ago, with the same parity. Models: log::
        self.head.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn entry(&self, position: u64) -> Option<&AtomicU64> {
        self.ring.get(self.shape.index(position) as usize)
    }

    #[inline(always)]
    fn read(&self, position: u64) -> u64 {
        self.entry(position).map_or(0, load)
    }

    /// Exchanges an entry. Returns false if another thread changed it first.
    #[inline(always)]
    fn exchange(&self, position: u64, old: u64, new: u64) -> bool {
        let Some(entry) = self.entry(position) else {
            return false;
        };
        // ORDERING: Release. It publishes the head and the entries that were read, and pairs with
        // the acquire in `read`. Relaxed on failure: the entry is read again. Models: log::
        entry
            .compare_exchange(old, new, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Moves the head. Returns false if another thread has moved it already.
    #[inline(always)]
    fn advance(&self, head: u64, next: u64) -> bool {
        // ORDERING: Release. It publishes the entries before `next`, and pairs with the acquire in
        // `load`. Relaxed on failure, which changes nothing. Models: log::
        self.head
            .compare_exchange(head, next, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Reads the log, from the head to the oldest entry, but at most a stride. `None` if the head
    /// moves meanwhile.
    #[inline(always)]
    fn view(&self, now: Tick) -> Option<LogView> {
        let (shape, head) = (self.shape, self.load());
        let permit = shape.permit(head, 0);
        let mut newest = self.read(shape.before(head));
        let (mut past, mut oldest) = (0, newest);
        let to_the_end = self.ring.get(shape.index(head) as usize..);
        let stride = shape.stride as usize;
        for entry in to_the_end.unwrap_or_default().iter().take(stride) {
            oldest = load(entry);
            let skips = inject_fault!(TakesUnentered) && shape.is_filled(head, oldest); // FAULT
            if kind_of(oldest) != permit && !skips {
                break;
            }
            newest = oldest;
            past += 1;
        }
        let is_steady = self.load() == head || inject_fault!(TrustsAnOldHead); // FAULT
        is_steady.then(|| LogView {
            head,
            past,
            next: shape.after(head, past),
            oldest,
            newest,
            now: told(now).max(tick_of(newest)),
        })
    }

    /// Reads the log in one attempt. `None` if another thread has to be helped or interferes.
    #[inline(always)]
    pub(super) fn glance(&self, now: Tick) -> Option<LogView> {
        let view = self.view(now)?;
        (!self.shape.is_filled(view.head, view.oldest)).then_some(view)
    }

    /// Reads the log. Enters a claim that has not been entered, and moves the head if it has fallen
    /// behind.
    pub(super) fn look(&self, now: Tick) -> LogView {
        loop {
            let Some(view) = self.view(now) else {
                continue;
            };
            if !self.shape.is_filled(view.head, view.oldest) {
                return view;
            }
            if is_claim(view.oldest) {
                // The thread that claimed is probably about to enter it.
                Backoff::new().wait();
                self.help(&view);
            } else {
                self.advance(view.head, view.next);
            }
        }
    }

    /// Enters the claim that was found in place of the oldest entry.
    #[cold]
    #[inline(never)]
    fn help(&self, view: &LogView) {
        // ORDERING: Relaxed. The claim was read with Acquire, and its exchange published this tick.
        let claimed_at = self.claimed_at.load(Ordering::Relaxed);
        let helps = !inject_fault!(NeverHelps); // FAULT
        if helps {
            self.enter_all(view, view.oldest, view.now.max(claimed_at));
        }
    }

    /// Enters those permits of this claim that have not been entered yet. Returns the tick at which
    /// they count. `None` if the claim is no longer there, since all of them were entered before
    /// that.
    fn enter_all(&self, view: &LogView, claim: u64, tick: u64) -> Option<u64> {
        let n = self.shape.claimed(claim);
        let mut tick = tick;
        for i in 1..n {
            let position = self.shape.after(view.next, i);
            loop {
                let entry = self.read(position);
                // While the claim is there, the entry is of this lap or of the one before.
                if self.read(view.next) != claim {
                    return None;
                }
                if self.shape.is_filled(position, entry) {
                    // All permits of a claim have the tick that was entered first.
                    tick = tick_of(entry);
                    break;
                }
                if self.exchange(position, entry, self.shape.permit(position, tick)) {
                    break;
                }
            }
        }
        self.exchange(view.next, claim, self.shape.permit(view.next, tick));
        self.advance(view.head, self.shape.after(view.next, n));
        Some(tick)
    }

    /// Returns the `n`-th oldest entry. `n` is from 1 to the limit.
    #[inline(always)]
    pub(super) fn oldest(&self, view: &LogView, n: u64) -> u64 {
        self.read(self.shape.after(view.next, n - 1))
    }

    /// Returns whether no thread has claimed since that look.
    #[inline(always)]
    pub(super) fn still(&self, view: &LogView) -> bool {
        self.read(view.next) == view.oldest
    }

    /// Claims one permit, in place of the oldest entry, which has expired. Returns the tick at
    /// which it counts. `None` if another thread has claimed since that look.
    #[inline(always)]
    pub(super) fn claim_one(&self, view: &LogView) -> Option<u64> {
        let permit = self.shape.permit(view.next, view.now);
        if !self.exchange(view.next, view.oldest, permit) {
            return None;
        }
        // `view` reads no further than a stride, or than the end of the ring.
        let after = self.shape.after(view.next, 1);
        if view.past + 1 == self.shape.stride || self.shape.index(after) == 0 {
            self.advance(view.head, after);
        }
        Some(view.now)
    }

    /// Claims `n` permits and enters them. The `n`-th oldest entry has expired. Returns the tick at
    /// which they count. `None` if another thread has claimed since that look.
    pub(super) fn claim(&self, view: &LogView, n: u64) -> Option<u64> {
        if n == 1 {
            return self.claim_one(view);
        }
        let laps = view.past + n > self.shape.limit && !inject_fault!(LapsTheHead); // FAULT
        let mut view = *view;
        if laps {
            if !self.advance(view.head, view.next) {
                return None;
            }
            view.head = view.next;
        }
        // ORDERING: Relaxed. The exchange publishes it with the claim. Models: log::
        self.claimed_at.fetch_max(view.now, Ordering::Relaxed);
        let claim = self.shape.claim(view.next, n);
        self.exchange(view.next, view.oldest, claim)
            .then(|| self.entered(&view, claim))
    }

    #[cold]
    #[inline(never)]
    fn entered(&self, view: &LogView, claim: u64) -> u64 {
        if let Some(tick) = self.enter_all(view, claim, view.now) {
            return tick;
        }
        // Another thread has entered the claim. The claim's first entry stays until it is claimed
        // again, a lap later. An entry of the same parity, two laps later, needs a later head.
        let entry = self.read(view.next);
        let is_permit = kind_of(entry) == self.shape.permit(view.next, 0);
        if is_permit && self.shape.between(view.next, self.load()) <= self.shape.limit {
            return tick_of(entry);
        }
        view.now
    }

    /// Returns how many of the oldest permits have expired. It may be more a moment later.
    pub(super) fn expired(&self, view: &LogView) -> u64 {
        let is_expired = |n| self.shape.expiry(self.oldest(view, n)) <= view.now;
        let (mut expired, mut kept) = (0, self.shape.limit + 1);
        // Ticks never decrease along the ring, so this is a binary search.
        while kept - expired > 1 {
            let middle = expired + (kept - expired) / 2;
            match is_expired(middle) {
                true => expired = middle,
                false => kept = middle,
            }
        }
        expired
    }
}

#[inline(always)]
fn load(entry: &AtomicU64) -> u64 {
    // ORDERING: Acquire. It pairs with the release in `exchange`: a thread that reads an entry sees
    // all entries before it, and then loads no older head than the one under which the entry was
    // claimed. Models: log::
    entry.load(Ordering::Acquire)
}
