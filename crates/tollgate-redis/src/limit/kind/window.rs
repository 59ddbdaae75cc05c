//! Fixed windows, and windows that slide by the counts of two.

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::Granted;
use tollgate::outcome::Charged;

use super::{Taken, tick, wait};
use crate::limit::bounds::SPAN;
use crate::limit::rate::{ORIGIN, Ticks};
use crate::script::packed::{BadReply, Packed, pack};

/// The largest count that a script stores.
pub(crate) const MOST_COUNTED: u64 = (1 << 52) - 1;

/// The latest end of a window.
const LATEST: u64 = 4 * SPAN;

/// How windows follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// They begin at multiples of the period since 1970-01-01 00:00 UTC.
    Aligned,
    /// One begins with the first permit that is taken while none is open.
    FirstHit,
    /// As `Aligned`, but the part of the previous window within the last period counts too.
    Slides,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) limit: u64,
    /// Microseconds.
    pub(crate) period: u64,
    pub(crate) shape: Shape,
}

/// The counts of the window that ends at a tick after now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowSeen {
    count: u64,
    before: u64,
    ends: u64,
}

impl Window {
    pub(super) fn argue(&self, arg: &mut Vec<u8>, n: u64) {
        let n = n.min(MOST_COUNTED);
        pack(arg, &[n, self.limit, self.period]);
        match self.shape {
            Shape::FirstHit => arg.extend((-1.0_f64).to_le_bytes()),
            _ => pack(arg, &[ORIGIN.checked_rem(self.period).unwrap_or(0)]),
        }
        pack(arg, &[u64::from(self.shape == Shape::Slides)]);
    }

    /// Reads what `window.tell` returns.
    pub(super) fn see(
        &self,
        told: &mut Packed<'_>,
        now: u64,
    ) -> Result<(WindowSeen, u64), BadReply> {
        let count = told.next(MOST_COUNTED)?;
        let before = told.next(MOST_COUNTED)?;
        let ends = told.next(LATEST)?;
        let ban = told.next(LATEST)?;
        let slides = self.shape == Shape::Slides;
        match ends <= now || before > 0 && !slides {
            true => Err(BadReply),
            false => Ok((
                WindowSeen {
                    count,
                    before,
                    ends,
                },
                ban,
            )),
        }
    }

    /// Returns the weight of the counted permits. A permit of this period weighs one whole period.
    fn weight(&self, seen: &WindowSeen, now: u64) -> u128 {
        let left = seen.ends.saturating_sub(now).min(self.period);
        u128::from(seen.before) * u128::from(left)
            + u128::from(seen.count) * u128::from(self.period)
    }

    pub(super) fn available(&self, seen: &WindowSeen, now: u64) -> u64 {
        let room = self.most().saturating_sub(self.weight(seen, now));
        to_u64(room / u128::from(self.period.max(1)))
    }

    fn most(&self) -> u128 {
        u128::from(self.limit) * u128::from(self.period)
    }

    /// Returns the first microsecond at which `n` permits will be granted: in this window, in the
    /// next one (where this one's count is weighted), or later.
    pub(super) fn due(&self, seen: &WindowSeen, now: u64, n: u64) -> u64 {
        let next = match self.shape {
            Shape::Slides => seen.count,
            _ => 0,
        };
        let (count, n) = (u128::from(seen.count) + u128::from(n), u128::from(n));
        let after = self.end_after(seen.ends);
        let windows = [
            (now, seen.ends, seen.before, count),
            (seen.ends, after, next, n),
        ];
        for (begins, ends, before, count) in windows {
            let Some(room) = self.most().checked_sub(count * u128::from(self.period)) else {
                continue;
            };
            let left = room.checked_div(before.into()).unwrap_or(u128::MAX);
            match to_u64(left) {
                0 => {}
                left if left >= self.period => return begins,
                left => return ends.saturating_sub(left).max(begins),
            }
        }
        // Not reached by a window that does not slide, because `n` is at most the limit.
        after
    }

    /// Returns the end of the window after one that ends at a tick. This is less than a period
    /// later if the period was changed.
    fn end_after(&self, ends: u64) -> u64 {
        let late = match self.shape {
            Shape::FirstHit => None,
            _ => ends.saturating_add(ORIGIN).checked_rem(self.period),
        };
        let next = ends.saturating_add(self.period);
        next.saturating_sub(late.unwrap_or(0))
    }

    pub(super) fn taken(&self, seen: &WindowSeen, now: u64, n: u64) -> Result<Taken, BadReply> {
        if self.due(seen, now, n) > now {
            return Err(BadReply);
        }
        let after = WindowSeen {
            count: seen.count.saturating_add(n),
            ..*seen
        };
        let mut granted = Granted::new(n, tick(now.max(seen.ends.saturating_sub(self.period))))
            .with_remaining(self.available(&after, now), NonZeroU64::MIN);
        if let Some(reset) = self.forgotten_at(&after) {
            granted = granted.with_reset_at(tick(reset));
        }
        Ok(Taken {
            granted,
            mark: Ticks {
                whole: seen.ends,
                part: 0,
            },
            rate: None,
        })
    }

    /// Returns when no permit is counted any longer, or `None` if none is.
    fn forgotten_at(&self, seen: &WindowSeen) -> Option<u64> {
        match (seen.count, seen.before) {
            (0, 0) => None,
            (0, _) => Some(seen.ends),
            _ if self.shape == Shape::Slides => Some(self.end_after(seen.ends)),
            _ => Some(seen.ends),
        }
    }

    /// Reads what `window.charge` returns.
    pub(super) fn charged(&self, told: &mut Packed<'_>, now: u64) -> Result<Charged, BadReply> {
        let n = told.next(MOST_COUNTED)?;
        let (seen, _) = self.see(told, now)?;
        let over = self.weight(&seen, now).saturating_sub(self.most());
        let owed = over.div_ceil(u128::from(self.period.max(1)));
        let clear_after = match owed {
            0 => Some(Duration::ZERO),
            _ => wait(self.due(&seen, now, 0), now),
        };
        let at = now.max(seen.ends.saturating_sub(self.period));
        Ok(Charged::new(n, tick(at)).with_debt(to_u64(owed), clear_after.unwrap_or(Duration::MAX)))
    }
}

fn to_u64(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
