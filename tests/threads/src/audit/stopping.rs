//! An algorithm that pauses threads inside its operations, so that other threads run between a read
//! and a write, and between one word and the next.

use std::cell::{Cell, RefCell};

use tollgate::algorithm::{Debt, Forecast, GiveBack, Lend, Split};
use tollgate::error::QuotaError;

use crate::support::*;

#[derive(Debug, Clone, Copy)]
pub(super) struct Stopping(pub(super) AnyAlgorithm);

/// Yields to other threads now and then.
fn stop() {
    thread_local! {
        static STATE: Cell<u32> = const { Cell::new(0x9e37_79b9) };
    }
    let next = STATE
        .get()
        .wrapping_mul(747_796_405)
        .wrapping_add(2_891_336_453);
    STATE.set(next);
    if next >> 24 == 0 {
        thread::yield_now();
    }
}

/// The number of calls of `take_up_to` that this thread makes before the interruption, and the
/// function that then runs.
type Interruption = (u32, Box<dyn FnOnce()>);

thread_local! {
    static INTERRUPTION: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

/// Interrupts this thread before it takes from the second of two shards. Before that it has
/// computed the sum of both and taken from the first.
pub(super) fn interrupt(by: impl FnOnce() + 'static) {
    INTERRUPTION.set(Some((3, Box::new(by))));
}

pub(super) fn was_interrupted() -> bool {
    INTERRUPTION.take().is_none()
}

fn be_interrupted() {
    match INTERRUPTION.take() {
        Some((0, by)) => by(),
        Some((more, by)) => INTERRUPTION.set(Some((more - 1, by))),
        None => {}
    }
}

impl Algorithm for Stopping {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        stop();
        self.0.step(word, now, n)
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
    fn initial_word(&self, now: Tick) -> u64 {
        self.0.initial_word(now)
    }
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        be_interrupted();
        stop();
        self.0.take_up_to(word, now, n)
    }
}

impl GiveBack for Stopping {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        stop();
        self.0.undo(word, now, granted)
    }
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        stop();
        self.0.refund(word, now, n)
    }
}

impl Debt for Stopping {
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        stop();
        self.0.charge(word, now, n)
    }
}

impl Forecast for Stopping {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        self.0.due(word, now, n)
    }
}

impl Split for Stopping {
    fn most_shards(&self) -> u64 {
        self.0.most_shards()
    }
    fn per_shard(&self, parts: u64) -> Option<(Self, u64)> {
        let (part, permit) = self.0.per_shard(parts)?;
        Some((Self(part), permit))
    }
}

impl Lend for Stopping {
    fn most_lent(&self) -> u64 {
        self.0.most_lent()
    }
    fn lending(&self, total: u64) -> Result<Self, QuotaError> {
        self.0.lending(total).map(Self)
    }
}
