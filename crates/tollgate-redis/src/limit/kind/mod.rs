//! The kinds of limits: what a script is told about each, and what its answer means.

mod bucket;
mod log;
mod slots;
mod window;

use std::time::Duration;

use tollgate::outcome::Charged;
use tollgate::{Denied, Granted, Tick};

use crate::limit::bounds::SPAN;
use crate::limit::rate::{Rate, Ticks};
use crate::script::Kinds;
use crate::script::packed::{BadReply, Packed, pack};

pub(crate) use bucket::Bucket;
pub(crate) use log::{Log, MOST_LOGGED};
pub(crate) use slots::{MOST_SLOTS, Slots};
pub(crate) use window::{MOST_COUNTED, Shape, Window};

/// A limit of one kind, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Bucket(Bucket),
    Window(Window),
    Log(Log),
    Slots(Slots),
}

/// Finds a grant when it is given back: for a bucket, when it was to be idle after the grant; for a
/// window, its end; for a log, the tick of the permits; for slots, the first holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Mark {
    pub(crate) at: Ticks,
    /// Whether nothing comes back while others wait behind the grant.
    pub(crate) is_reserved: bool,
    /// For a bucket, the rate that granted, and the microsecond of the grant.
    pub(crate) by: Option<(Rate, u64)>,
}

/// A granted request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The grant, in ticks since 2026-01-01 00:00 UTC on the server's clock.
    pub(crate) granted: Granted,
    pub(crate) mark: Ticks,
    /// The rate of a bucket.
    pub(crate) rate: Option<Rate>,
}

/// The state of a key at the server's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) now: u64,
    /// When the ban ends, or 0.
    ban: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Bucket(bucket::BucketSeen),
    Window(window::WindowSeen),
    Log(log::LogSeen),
    Slots(slots::SlotsSeen),
}

impl Kind {
    pub(crate) const fn kinds(&self) -> Kinds {
        match self {
            Self::Bucket(_) => Kinds::Bucket,
            Self::Window(_) => Kinds::Window,
            Self::Log(_) => Kinds::Log,
            Self::Slots(_) => Kinds::Slots,
        }
    }

    /// Returns the most permits that can be taken at once.
    pub(crate) const fn most(&self) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.rate.burst(),
            Self::Window(window) => window.limit,
            Self::Log(log) => log.limit,
            Self::Slots(slots) => slots.limit,
        }
    }

    /// Returns `wait` in microseconds, or the longest wait of the limit if that is shorter.
    pub(crate) fn capped_wait(&self, wait: Duration) -> u64 {
        match self {
            Self::Bucket(bucket) => {
                let wait = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
                wait.min(bucket.longest_wait())
            }
            _ => 0,
        }
    }

    /// Returns the argument of a request for `n` permits.
    pub(crate) fn argument(&self, n: u64) -> Vec<u8> {
        self.argued(n, None)
    }

    /// Returns the argument of a request for `n` permits of a bucket that are due within `wait`
    /// microseconds.
    pub(crate) fn reserving(&self, n: u64, wait: u64) -> Vec<u8> {
        let mut arg = self.argument(n);
        pack(&mut arg, &[wait]);
        arg
    }

    /// Returns the argument of a request to give `n` permits back: those of a grant, or any.
    pub(crate) fn giving(&self, n: u64, mark: Option<Mark>) -> Vec<u8> {
        let at = mark.map(|mark| mark.at);
        // Without a mark, the slots could be those of another client that still works.
        let n = match (self, at) {
            (Self::Slots(_), None) => 0,
            _ => n,
        };
        if let Self::Bucket(bucket) = self {
            return bucket.giving(n, mark);
        }
        let mut arg = self.argued(n, at.map(|at| at.whole));
        match (self, at) {
            (Self::Slots(_), _) => {}
            (_, Some(at)) => pack(&mut arg, &[at.whole]),
            (_, None) => arg.extend((-1.0_f64).to_le_bytes()),
        }
        arg
    }

    /// Returns the argument of a ban.
    pub(crate) fn banning(&self, long: Duration) -> Vec<u8> {
        let micros = long.as_nanos().div_ceil(1000);
        let micros = u64::try_from(micros).unwrap_or(SPAN).min(SPAN);
        let mut arg = self.argued(0, None);
        pack(&mut arg, &[micros]);
        arg
    }

    /// Returns the argument of a request to renew the leases of a grant.
    pub(crate) fn renewing(&self, n: u64, mark: Mark) -> Vec<u8> {
        self.argued(n, Some(mark.at.whole))
    }

    fn argued(&self, n: u64, first: Option<u64>) -> Vec<u8> {
        let mut arg = Vec::with_capacity(80);
        match self {
            Self::Bucket(bucket) => bucket.argue(&mut arg, n, SPAN, bucket.rate.reach()),
            Self::Window(window) => {
                arg.push(b'W');
                window.argue(&mut arg, n);
            }
            Self::Log(log) => {
                arg.push(b'L');
                log.argue(&mut arg, n);
            }
            Self::Slots(slots) => {
                arg.push(b'C');
                slots.argue(&mut arg, n, first);
            }
        }
        arg
    }

    /// Reads a state, as the kind's `tell` packs it.
    pub(crate) fn see(&self, told: &[u8], now: u64) -> Result<Seen, BadReply> {
        let mut told = Packed::new(told);
        let (state, ban) = match self {
            Self::Bucket(bucket) => {
                let (seen, ban) = bucket.see(&mut told, now)?;
                (State::Bucket(seen), ban)
            }
            Self::Window(window) => {
                let (seen, ban) = window.see(&mut told, now)?;
                (State::Window(seen), ban)
            }
            Self::Log(log) => {
                let (seen, ban) = log.see(&mut told)?;
                (State::Log(seen), ban)
            }
            Self::Slots(slots) => {
                let (seen, ban) = slots.see(&mut told)?;
                (State::Slots(seen), ban)
            }
        };
        told.end(Seen { now, ban, state })
    }

    /// Reads the reply of the script that takes from one bucket: whether it granted `n` permits,
    /// and the state before.
    pub(crate) fn see_one(&self, reply: &[u8], n: u64) -> Result<(bool, Seen), BadReply> {
        let Self::Bucket(bucket) = self else {
            return Err(BadReply);
        };
        let (granted, now, seen, ban) = bucket.see_one(reply, n)?;
        let state = State::Bucket(seen);
        Ok((granted, Seen { now, ban, state }))
    }

    /// Returns how many permits can be taken now.
    pub(crate) fn available(&self, seen: &Seen) -> u64 {
        if seen.ban > seen.now {
            return 0;
        }
        match (self, &seen.state) {
            (Self::Bucket(bucket), State::Bucket(state)) => bucket.available(state, seen.now),
            (Self::Window(window), State::Window(state)) => window.available(state, seen.now),
            (Self::Log(log), State::Log(state)) => log.available(state),
            (Self::Slots(slots), State::Slots(state)) => slots.available(state),
            _ => 0,
        }
    }

    /// Returns the first microsecond at which `n` permits will be granted, or `None` if it is not
    /// known. The state must have been read for the same `n`.
    fn due(&self, seen: &Seen, n: u64) -> Option<u64> {
        let due = match (self, &seen.state) {
            (Self::Bucket(bucket), State::Bucket(state)) => bucket.due(state, n),
            (Self::Window(window), State::Window(state)) => window.due(state, seen.now, n),
            (Self::Log(log), State::Log(state)) => log.due(state),
            (Self::Slots(slots), State::Slots(state)) if slots.fits(state, n) => seen.now,
            _ => return None,
        };
        Some(due.max(seen.ban))
    }

    /// If `n` permits are due more than `wait` microseconds from now, returns the denial, and
    /// before it the time at which they are due, for comparison.
    pub(crate) fn refused(&self, seen: &Seen, n: u64, wait: u64) -> Option<(u64, Denied)> {
        if n > self.most() {
            return Some((u64::MAX, Denied::never(n, self.most())));
        }
        let Some(due) = self.due(seen, n) else {
            let banned = Denied::banned(n, self::wait(seen.ban, seen.now));
            return Some(match seen.ban > seen.now {
                true => (seen.ban, banned),
                false => (seen.now, Denied::busy(n)),
            });
        };
        let banned = seen.ban > seen.now;
        let due = if banned {
            due
        } else {
            due.saturating_sub(wait)
        };
        if due <= seen.now {
            return None;
        }
        let left = self::wait(due, seen.now);
        Some((
            due,
            match (banned, left) {
                (true, left) => Denied::banned(n, left),
                (false, Some(left)) => Denied::later(n, left),
                (false, None) => Denied::stuck(n),
            },
        ))
    }

    /// Returns the grant of `n` permits that were taken from this state.
    pub(crate) fn taken(&self, seen: &Seen, n: u64, wait: u64) -> Result<Taken, BadReply> {
        if seen.ban > seen.now {
            return Err(BadReply);
        }
        match (self, &seen.state) {
            (Self::Bucket(bucket), State::Bucket(state)) => bucket.taken(state, seen.now, n, wait),
            (Self::Window(window), State::Window(state)) => window.taken(state, seen.now, n),
            (Self::Log(log), State::Log(state)) => log.taken(state, seen.now, n),
            (Self::Slots(slots), State::Slots(state)) => slots.taken(state, seen.now, n),
            _ => Err(BadReply),
        }
    }

    /// Reads how many permits were given back.
    pub(crate) fn given(&self, told: &[u8], n: u64) -> Result<u64, BadReply> {
        let mut told = Packed::new(told);
        let given = match self {
            Self::Bucket(bucket) => bucket.given(&mut told)?,
            _ => told.next(n)?,
        };
        match given <= n {
            true => told.end(given),
            false => Err(BadReply),
        }
    }

    /// Reads how many permits were charged.
    pub(crate) fn charged(&self, told: &[u8], n: u64, now: u64) -> Result<Charged, BadReply> {
        let mut told = Packed::new(told);
        let charged = match self {
            Self::Bucket(bucket) => bucket.charged(&mut told, now)?,
            Self::Window(window) => window.charged(&mut told, now)?,
            Self::Log(log) => log.charged(&mut told, now)?,
            Self::Slots(slots) => slots.charged(&mut told, now)?,
        };
        match charged.n() <= n {
            true => told.end(charged),
            false => Err(BadReply),
        }
    }
}

impl Seen {
    /// Returns how long the key is banned from now, or `None` if it is not.
    pub(crate) fn banned_for(&self) -> Option<Duration> {
        let left = self.ban.checked_sub(self.now)?;
        (left > 0).then(|| Duration::from_micros(left))
    }
}

/// Returns how long it is until a tick, or `None` if the tick is beyond 50 years, where the clock
/// stands still.
fn wait(due: u64, now: u64) -> Option<Duration> {
    (due <= SPAN).then(|| Duration::from_micros(due.saturating_sub(now)))
}

fn tick(micros: u64) -> Tick {
    Tick::from_nanos(micros.saturating_mul(1000))
}
