//! The protocol that changes the rate while other threads take turns.
//!
//! The limiter keeps two rates: the current one, and the previous or the next one. The version in
//! the state says which is current: the first if it is even, the second if it is odd.
//!
//! - **A thread that takes a turn** loads the state, reads the rate of its version, and exchanges
//!   the state. If that succeeds, the state was still the same, so the rate was current. This holds
//!   for two reasons. The rate of a version is written only while the state has another version.
//!   And a pair of a next turn and a version never occurs twice, because the next turn never
//!   decreases and moves later by a unit when the versions wrap.
//! - **A thread that sets a rate** writes it to the word of the next version. Then it exchanges the
//!   state for one with that version and with the stored permits scaled, which makes the rate
//!   current. Threads that set rates exclude each other by a mutex.
//!
//! A thread that takes a turn waits for no other: a thread that stops while it sets a rate leaves a
//! state with the old rate or with the new one. A denial depends only on the next turn, so one load
//! answers it.

use std::sync::PoisonError;

use crate::Smooth;
use crate::curve::{Curve, StoredPermits};
use crate::pace::Unit;
use crate::state::SmoothState;
use crate::sync::{AtomicU64, Ordering, inject_fault};

impl<K: Curve, C> Smooth<K, C> {
    #[inline]
    pub(crate) fn load(&self) -> SmoothState {
        // ORDERING: Acquire. It pairs with the release in `change`, also through exchanges of other
        // threads in between: a thread that sees a version sees its rate. Models: smooth::
        SmoothState::unpack(self.state.load(Ordering::Acquire))
    }

    #[inline]
    fn exchange(&self, state: SmoothState, next: SmoothState) -> bool {
        // ORDERING: Relaxed. It publishes nothing of its own, and continues the release sequence
        // that the exchange in `change` heads. A thread that fails loads the state again. Models:
        // smooth::
        self.state
            .compare_exchange_weak(
                state.pack(),
                next.pack(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    fn place_of(&self, version: u64) -> &AtomicU64 {
        match version % 2 {
            0 => &self.even,
            _ => &self.odd,
        }
    }

    /// Returns the rate of the state's version. (If the state has changed, it may be the rate of
    /// another version. The exchange will fail then.)
    #[inline]
    pub(crate) fn rate_of(&self, state: SmoothState) -> f64 {
        // ORDERING: Acquire. It pairs with the release of the rate in `change`: a thread that reads
        // a newer rate, written over the rate of this version, then sees a changed state, in its
        // next load as in its exchange. The models check the load. That the exchange fails is not
        // checked, since a model does not reorder the operations of a thread. Models: smooth::
        f64::from_bits(self.place_of(state.version).load(Ordering::Acquire))
    }

    /// Returns the state, and the store at the rate that was current with it.
    pub(crate) fn look(&self) -> (SmoothState, StoredPermits<K>) {
        let mut state = self.load();
        loop {
            let store = self.store(self.rate_of(state));
            let again = self.load();
            let is_same = again == state || inject_fault!(TellsWithoutALook); // FAULT
            if is_same {
                return (state, store);
            }
            state = again;
        }
    }

    pub(crate) fn store(&self, rate: f64) -> StoredPermits<K> {
        StoredPermits::new(self.curve, self.unit, rate)
    }

    /// Checks the state, and then changes it by a step at the current rate. The check needs no
    /// rate; if it fails, nothing changes. The step may run several times.
    #[inline]
    pub(crate) fn step<T, E>(
        &self,
        check: impl Fn(SmoothState) -> Result<(), E>,
        step: impl Fn(SmoothState, &StoredPermits<K>) -> (SmoothState, T),
    ) -> Result<T, E> {
        loop {
            let state = self.load();
            check(state)?;
            let (next, answer) = step(state, &self.store(self.rate_of(state)));
            if self.exchange(state, next) {
                return Ok(answer);
            }
            core::hint::spin_loop();
        }
    }

    /// Makes `rate` the current rate. `now` is the caller's tick, in units.
    pub(crate) fn change(&self, rate: f64, now: u64) {
        let lock = || Some(self.setting.lock().unwrap_or_else(PoisonError::into_inner));
        let alone = inject_fault!(SetsTogether => None, else lock()); // FAULT
        // No other thread changes the version or the rate of the next one.
        let mut state = self.load();
        let in_force = self.rate_of(state);
        if in_force == rate && self.unit == Unit::Nanos {
            // This happens when a configuration is read again. (Guava scales the stored permits
            // even then, which may change the last digit.)
            return;
        }
        let (old, new) = (self.store(in_force), self.store(rate));
        let version = state.version + inject_fault!(OverwritesTheRate => 0, else 1); // FAULT
        // ORDERING: Release. It publishes that the state no longer has the version whose rate is
        // overwritten here, and pairs with the acquire in `rate_of`. It is a swap because words
        // change only by read-modify-writes. Models: smooth::
        self.place_of(version)
            .swap(rate.to_bits(), Ordering::Release);
        loop {
            let until_now = old.resync(state, now);
            let stored = old.scaled(until_now.stored, &new);
            let moved = state.next < until_now.next || inject_fault!(KeepsTheTurn); // FAULT
            let next = until_now.next_version(stored, moved);
            // ORDERING: Release on success. It publishes the rate, and pairs with the acquire in
            // `load`. Relaxed on failure: no other memory is read because of the value. Models:
            // smooth::
            match self.state.compare_exchange_weak(
                state.pack(),
                next.pack(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(seen) => state = SmoothState::unpack(seen),
            }
        }
        drop(alone);
    }
}
