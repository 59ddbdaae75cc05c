//! The horizon: the latest tick at which any key that has left the map became idle.

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::sync::{AtomicU64, Ordering};

/// The latest tick at which any key that has left as idle became idle.
#[derive(Default)]
pub(super) struct Horizon(AtomicU64);

impl Horizon {
    #[inline]
    pub(super) fn tick(&self) -> Tick {
        // ORDERING: Relaxed. It publishes nothing by itself: the fences of `MapEntry::begin` and
        // `MapEntry::retire` order it.
        // Model: keyed_map::a_late_tick_gets_no_second_burst
        Tick::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn raise(&self, tick: Tick) {
        // ORDERING: Relaxed, as above. The later of two ticks stays.
        self.0.fetch_max(tick.as_nanos(), Ordering::Relaxed);
    }
}

/// Returns the first tick after `from` at which the word is idle. The word is idle at `to` and not
/// at `from`.
///
/// The horizon is raised to this tick, not to that of the thread that finds the key idle. So a tick
/// far in the future makes keys leave, but new keys are not counted that late.
pub(super) fn first_idle<A: Algorithm>(algorithm: &A, word: u64, from: Tick, to: Tick) -> Tick {
    let (mut busy, mut idle) = (from.as_nanos(), to.as_nanos());
    while idle.saturating_sub(busy) > 1 {
        let middle = busy + (idle - busy) / 2;
        match algorithm.is_idle(word, Tick::from_nanos(middle)) {
            true => idle = middle,
            false => busy = middle,
        }
    }
    Tick::from_nanos(idle)
}

/// Returns a tick at which the word is idle, or `None` if it is not idle at `now`. It is the first
/// such tick, unless the word is idle at `reached`, the horizon: then any tick up to that will do.
pub(super) fn idle_since<A: Algorithm>(
    algorithm: &A,
    word: u64,
    now: Tick,
    reached: Tick,
) -> Option<Tick> {
    if !algorithm.is_idle(word, now) {
        return None;
    }
    if now <= reached || algorithm.is_idle(word, reached) {
        return Some(now.min(reached));
    }
    Some(first_idle(algorithm, word, reached, now))
}
