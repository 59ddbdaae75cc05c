//! Sliding log: the ticks of all permits within a period.

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::Granted;
use tollgate::outcome::Charged;

use super::{Taken, tick, wait};
use crate::limit::bounds::SPAN;
use crate::limit::rate::Ticks;
use crate::script::packed::{BadReply, Packed, pack};

/// The most permits within a period. Each has an entry on the server, which decides no other call
/// while it writes them: `benches/largest.rs` measures how long.
pub(crate) const MOST_LOGGED: u64 = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Log {
    pub(crate) limit: u64,
    /// Microseconds.
    pub(crate) period: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSeen {
    live: u64,
    last: u64,
    /// When the request that was asked about will fit.
    due: u64,
}

impl Log {
    pub(super) fn argue(&self, arg: &mut Vec<u8>, n: u64) {
        pack(arg, &[n.min(2 * MOST_LOGGED), self.limit, self.period]);
    }

    /// Reads what `log.tell` returns.
    pub(super) fn see(&self, told: &mut Packed<'_>) -> Result<(LogSeen, u64), BadReply> {
        let live = told.next(2 * MOST_LOGGED)?;
        let last = told.next(SPAN)?;
        let due = told.next(2 * SPAN)?;
        let ban = told.next(2 * SPAN)?;
        Ok((LogSeen { live, last, due }, ban))
    }

    pub(super) fn available(&self, seen: &LogSeen) -> u64 {
        self.limit.saturating_sub(seen.live)
    }

    pub(super) fn due(&self, seen: &LogSeen) -> u64 {
        seen.due
    }

    pub(super) fn taken(&self, seen: &LogSeen, now: u64, n: u64) -> Result<Taken, BadReply> {
        let live = seen.live.saturating_add(n);
        if live > self.limit {
            return Err(BadReply);
        }
        let at = now.max(seen.last);
        let room = self.limit.saturating_sub(live);
        let mut granted = Granted::new(n, tick(at)).with_remaining(room, NonZeroU64::MIN);
        if live > 0 {
            let last = if n > 0 { at } else { seen.last };
            granted = granted.with_reset_at(tick(last.saturating_add(self.period)));
        }
        Ok(Taken {
            granted,
            mark: Ticks { whole: at, part: 0 },
            rate: None,
        })
    }

    /// Reads what `log.charge` returns.
    pub(super) fn charged(&self, told: &mut Packed<'_>, now: u64) -> Result<Charged, BadReply> {
        let n = told.next(2 * MOST_LOGGED)?;
        let at = told.next(SPAN)?;
        let live = told.next(2 * MOST_LOGGED)?;
        let clear = told.next(2 * SPAN)?;
        let debt = live.saturating_sub(self.limit);
        let clear_after = wait(clear, now).unwrap_or(Duration::MAX);
        Ok(Charged::new(n, tick(at)).with_debt(debt, clear_after))
    }
}
