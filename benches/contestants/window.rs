//! The windows that need more memory than a word: 60 slots, and a log of 1000 permits.

use std::time::Duration;

use tollgate::clock::{NoClock, SystemClock};
use tollgate::{ConfigError, Quota, SlidingLog, SlottedWindow, Tick};

use super::timing::{Contestant, Handle, Handled, Kind};

const SLOTS: usize = 60;

/// The permits of a log.
const LOG: u64 = 1000;

/// A window that needs to be told the time, or knows it.
pub(crate) trait Window: Sync {
    fn is_allowed_at(&self, now: Tick) -> bool;
}

impl<C: Sync> Window for SlottedWindow<C> {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        self.try_acquire_at(now).is_ok()
    }
}

impl<C: Sync> Window for SlidingLog<C> {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        self.try_acquire_at(now).is_ok()
    }
}

/// More permits a minute than anybody asks for; or a few a day, which are taken first.
pub(crate) fn slots<C>(kind: Kind, clock: C) -> Result<SlottedWindow<C>, ConfigError> {
    let quota = match kind {
        Kind::Allowed => Quota::per_minute(u64::from(u32::MAX)),
        Kind::Denied => Quota::per_day(SLOTS as u64),
    };
    SlottedWindow::with_clock(quota, SLOTS, clock)
}

/// So many that they are refilled faster than anybody takes them: every decision goes on by one in
/// a full log. Or as many a day, which are taken first.
pub(crate) fn log<C>(kind: Kind, clock: C) -> Result<SlidingLog<C>, ConfigError> {
    let period = match kind {
        Kind::Allowed => Duration::from_nanos(100),
        Kind::Denied => Duration::from_secs(86_400),
    };
    SlidingLog::with_clock(Quota::per(LOG, period), clock)
}

/// Takes what a window has, if it is to deny.
fn exhaust(window: &impl Window, kind: Kind) {
    if kind == Kind::Denied {
        while window.is_allowed_at(now()) {}
    }
}

fn now() -> Tick {
    tollgate::clock::Clock::now(&SystemClock)
}

/// A window on the system's clock.
pub(crate) struct Slots(SlottedWindow, Kind);

impl Slots {
    pub(crate) fn new(kind: Kind) -> Result<Self, ConfigError> {
        Ok(Self(slots(kind, SystemClock)?, kind))
    }
}

impl Contestant for Slots {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }

    fn prepare(&self) {
        exhaust(&self.0, self.1);
    }
}

/// A log on the system's clock.
pub(crate) struct Log(SlidingLog, Kind);

impl Log {
    pub(crate) fn new(kind: Kind) -> Result<Self, ConfigError> {
        Ok(Self(log(kind, SystemClock)?, kind))
    }
}

impl Contestant for Log {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }

    fn prepare(&self) {
        exhaust(&self.0, self.1);
    }
}

/// A window that is told the time. A full log needs a time that goes on, and nearly the same for
/// all threads: each thread reads the clock now and then, and gives that tick to the decisions that
/// follow.
pub(crate) struct Told<W>(pub(crate) W, pub(crate) Kind);

impl Told<SlottedWindow<NoClock>> {
    pub(crate) fn slots(kind: Kind) -> Result<Self, ConfigError> {
        Ok(Self(slots(kind, NoClock)?, kind))
    }
}

impl Told<SlidingLog<NoClock>> {
    pub(crate) fn log(kind: Kind) -> Result<Self, ConfigError> {
        Ok(Self(log(kind, NoClock)?, kind))
    }
}

impl<W: Window> Handled for Told<W> {
    type Handle<'a>
        = TellingTime<'a, W>
    where
        W: 'a;

    fn handle(&self, threads: usize) -> TellingTime<'_, W> {
        // All threads together make about half as many decisions with old ticks as a log has
        // permits.
        let turns = LOG as usize / 2 / threads.next_power_of_two();
        let turns = turns.next_power_of_two() as u64;
        TellingTime {
            window: &self.0,
            tick: now(),
            mask: turns - 1,
        }
    }

    fn prepare(&self) {
        exhaust(&self.0, self.1);
    }
}

/// A thread's time.
pub(crate) struct TellingTime<'a, W> {
    window: &'a W,
    tick: Tick,
    /// A power of two of turns, less one: after so many it looks at the clock.
    mask: u64,
}

impl<W: Window> Handle for TellingTime<'_, W> {
    #[inline(always)]
    fn decide(&mut self, turn: u64) -> bool {
        if turn & self.mask == 0 {
            self.tick = now();
        }
        self.window.is_allowed_at(self.tick)
    }
}
