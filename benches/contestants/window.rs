//! The multiword windows: 60 slots, and a log of 1000 permits; and a mutex around such a log.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use tollgate::clock::{NoClock, SystemClock};
use tollgate::error::LimiterError;
use tollgate::{Quota, SlidingLog, SlottedWindow, Tick};

use super::timing::{Contestant, Handle, Handled, Kind};

const SLOTS: usize = 60;

/// The number of permits in a log.
const LOG: u64 = 1000;

/// A window that takes a tick, or reads its clock.
pub(crate) trait Window: Sync {
    fn is_allowed_at(&self, now: Tick) -> bool;
}

impl<C: Sync> Window for SlottedWindow<C> {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        self.at(now).try_acquire().is_ok()
    }
}

impl<C: Sync> Window for SlidingLog<C> {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        self.at(now).try_acquire().is_ok()
    }
}

/// Returns a window with more permits a minute than a measurement requests; or with a few a day,
/// which the caller takes before the measurement.
pub(crate) fn slots<C>(kind: Kind, clock: C) -> Result<SlottedWindow<C>, LimiterError> {
    let quota = match kind {
        Kind::Allowed => Quota::per_minute(u64::from(u32::MAX)),
        Kind::Denied => Quota::per_day(SLOTS as u64),
    };
    SlottedWindow::with_clock(quota, SLOTS, clock)
}

/// Returns a log whose permits are refilled faster than they are taken, so every decision advances
/// a full log by one; or with the same number of permits a day, which the caller takes before the
/// measurement.
pub(crate) fn log<C>(kind: Kind, clock: C) -> Result<SlidingLog<C>, LimiterError> {
    SlidingLog::with_clock(Quota::per(LOG, log_period(kind)), clock)
}

const fn log_period(kind: Kind) -> Duration {
    match kind {
        Kind::Allowed => Duration::from_nanos(100),
        Kind::Denied => Duration::from_secs(86_400),
    }
}

/// A mutex around the ticks of the last permits. It decides as a log does.
pub(crate) struct LockedLog {
    ticks: Mutex<VecDeque<u64>>,
    period: u64,
}

#[allow(dead_code, reason = "not every bench compares logs")]
impl LockedLog {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            ticks: Mutex::new(VecDeque::with_capacity(LOG as usize)),
            period: log_period(kind).as_nanos() as u64,
        }
    }
}

impl Window for LockedLog {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        let Ok(mut ticks) = self.ticks.lock() else {
            return false;
        };
        let now = now.as_nanos().max(ticks.back().copied().unwrap_or(0));
        if ticks.len() == LOG as usize {
            match ticks.front() {
                Some(oldest) if oldest + self.period > now => return false,
                _ => ticks.pop_front(),
            };
        }
        ticks.push_back(now);
        true
    }
}

/// Empties a window for denied decisions.
fn exhaust(window: &impl Window, kind: Kind) {
    if kind == Kind::Denied {
        while window.is_allowed_at(now()) {}
    }
}

fn now() -> Tick {
    tollgate::clock::Clock::now(&SystemClock)
}

/// A slotted window with the system clock.
pub(crate) struct Slots(SlottedWindow, Kind);

impl Slots {
    pub(crate) fn new(kind: Kind) -> Result<Self, LimiterError> {
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

/// A log with the system clock.
pub(crate) struct Log(SlidingLog, Kind);

impl Log {
    pub(crate) fn new(kind: Kind) -> Result<Self, LimiterError> {
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

/// A mutex around a log, with the system clock.
#[allow(dead_code, reason = "not every bench compares logs")]
pub(crate) struct LockedLogNow(pub(crate) LockedLog);

impl Contestant for LockedLogNow {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.is_allowed_at(now())
    }
}

/// A window that takes ticks. A full log needs ticks that advance, nearly alike for all threads. So
/// each thread reads the clock from time to time, and passes that tick to the next decisions.
pub(crate) struct Told<W>(pub(crate) W, pub(crate) Kind);

impl Told<SlottedWindow<NoClock>> {
    pub(crate) fn slots(kind: Kind) -> Result<Self, LimiterError> {
        Ok(Self(slots(kind, NoClock)?, kind))
    }
}

impl Told<SlidingLog<NoClock>> {
    pub(crate) fn log(kind: Kind) -> Result<Self, LimiterError> {
        Ok(Self(log(kind, NoClock)?, kind))
    }
}

impl<W: Window> Handled for Told<W> {
    type Handle<'a>
        = TellingTime<'a, W>
    where
        W: 'a;

    fn handle(&self, threads: usize) -> TellingTime<'_, W> {
        // With one tick, all threads together make about half as many decisions as a log has
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

/// A thread's current tick.
pub(crate) struct TellingTime<'a, W> {
    window: &'a W,
    tick: Tick,
    /// One less than the number of turns between two clock readings, which is a power of two.
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
