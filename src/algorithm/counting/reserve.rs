//! Permits of windows that are taken before they are available.
//!
//! A reservation has the effect of the same step at the tick at which it is due. How a word records
//! this depends on the algorithm:
//!
//! - A sliding window moves its word to the window in which the permits are due, and counts them
//!   there. The word then has no place for the count that was weighted before, and none is needed:
//!   a caller whose tick is before the word's window is answered as at the window's beginning.
//!   There the previous count has its full weight, and no permit is left: otherwise the reservation
//!   would have been due there, or earlier. So no caller overtakes a reservation.
//! - A bucket that is refilled in steps counts them as debt, which the next refills pay.
//! - A fixed window can't record them. A caller whose tick is before the word's window is granted
//!   permits of that window at once, so that threads whose clocks differ are not denied. The word
//!   does not say whether a later tick or a reservation moved it, so such a caller would overtake
//!   the reservation, and the permits of two windows could be used in one.

use core::num::NonZeroU64;

use super::{Counting, Reservations, Seen, WindowCount};
use crate::algorithm::{Reserve, can_leave_the_line};
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

impl<W: WindowCount> Counting<'_, W> {
    /// Returns the first tick at which a caller may use `n` more permits.
    fn usable_at(&self, seen: Seen<W::More>, now: Tick, n: u64) -> Option<Tick> {
        if !self.0.is_within(seen.with(n)) {
            return self.0.fits_at(seen, now, n);
        }
        match self.0.reservations() {
            // The permits of a later window are due when it begins, whatever moved the word there.
            Reservations::InTheirWindow => Some(self.0.counted_at(seen.word, seen, now)),
            Reservations::None | Reservations::AsDebt => Some(now),
        }
    }

    /// Returns the contents to which `n` permits that are due at `due` can be added. Returns the
    /// tick at which this may be possible if it is not possible now.
    fn reserved(
        &self,
        seen: Seen<W::More>,
        now: Tick,
        n: u64,
        due: Tick,
    ) -> Result<Seen<W::More>, Option<Tick>> {
        match self.0.reservations() {
            Reservations::None => Err(Some(due)),
            // No permits change no word.
            _ if n == 0 => Ok(seen),
            Reservations::InTheirWindow => {
                let then = self.0.until(seen, n, due);
                let least = self.0.least_count(then, now);
                // Windows of a few nanoseconds may leave permits to callers before the window. If
                // the word was in this window before, they have these permits anyway.
                let is_moved = then.word != seen.word;
                match is_moved && then.count + n < least {
                    true => Err(Some(due)),
                    false => Ok(then),
                }
            }
            Reservations::AsDebt => {
                let then = self.0.until(seen, n, due);
                let above = then.with(n).count.saturating_sub(self.0.most(seen));
                if above == 0 {
                    return Ok(then);
                }
                // The debt is as large as the word can record. Wait until that many are refilled.
                let count = self.0.limit().get().saturating_add(above);
                Err(self.0.fits_at(Seen { count, ..seen }, now, 0))
            }
        }
    }
}

impl<W: WindowCount> Reserve for Counting<'_, W> {
    #[inline]
    fn reserve(
        &self,
        word: u64,
        now: Tick,
        n: u64,
        latest: Tick,
    ) -> Result<(u64, Granted), Denied> {
        let limit = self.0.limit().get();
        if n > limit {
            return Err(Denied::never(n, limit));
        }
        let seen = self.0.see(word, now);
        let due = self.usable_at(seen, now, n);
        if due == Some(now) {
            return Ok(self.granted(word, seen, now, n));
        }
        let due = due.ok_or(Denied::stuck(n))?;
        let late = due.saturating_since(latest.max(now));
        let then = match self.reserved(seen, now, n, due) {
            Ok(then) => then,
            Err(Some(tick)) => {
                return Err(Denied::later(n, tick.saturating_since(now).max(late)));
            }
            Err(None) => return Err(Denied::stuck(n)),
        };
        if !late.is_zero() {
            return Err(Denied::later(n, late));
        }
        let (next, after) = (self.next(word, then, n), then.with(n));
        let granted = Granted::new(n, now)
            .with_remaining(self.0.free(after), NonZeroU64::MIN)
            .with_mark(next);
        let granted = match self.0.forgotten_at(after) {
            Some(tick) => granted.with_reset_at(tick),
            None => granted,
        };
        Ok((next, granted.with_ready_at(due)))
    }

    fn cancel(&self, word: u64, now: Tick, granted: &Granted, n: u64) -> (u64, Granted, u64) {
        // The caller's tick may be older than the grant's. Use the later one.
        let now = now.max(granted.at());
        let n = n.min(granted.n());
        let kept = granted.again().with_n(granted.n() - n);
        let seen = self.0.see(word, now);
        let Some(place) = self.0.place_of(seen, granted) else {
            return (word, kept, 0);
        };
        if self.0.reservations() == Reservations::None {
            let (next, back) = self.give_back(word, seen, n.min(place));
            return (next, kept, back);
        }
        let is_last = place == seen.count;
        let someone_waits = self.usable_at(seen, now, 0) != Some(now);
        // A reset, or an `undo` of a reservation that was still waiting, has lowered the count.
        // Other reservations may have the places of this one now.
        let is_gone = granted.due() > now && seen.count < place;
        if is_gone || someone_waits && !can_leave_the_line(is_last) {
            return (word, kept, 0);
        }
        let least = self.0.least_count(seen, now);
        let back = n.min(place).min(seen.count.saturating_sub(least));
        let (next, back) = self.give_back(word, seen, back);
        if !(someone_waits && is_last) {
            return (next, kept, back);
        }
        // The permits that are kept have lower places, and are due when these are.
        let count = place.saturating_sub(n);
        let due = self.usable_at(Seen { count, ..seen }, now, 0);
        let due = due.unwrap_or(Tick::MAX).max(now).min(granted.due());
        (next, kept.with_mark(next).with_ready_at(due), back)
    }

    /// Counts only the permits of the word's window if that window is later.
    fn waiting(&self, word: u64, now: Tick) -> u64 {
        let seen = self.0.see(word, now);
        let none = Seen { count: 0, ..seen };
        match self.usable_at(none, now, 0) == Some(now) {
            true => self.0.debt(seen),
            false => seen.count,
        }
    }
}
