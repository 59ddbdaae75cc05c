//! How a rate is changed while others take their turns by it.
//!
//! Two rates are kept: the one in force, and the one before it or the next. The version in the
//! state says which: an even one the first, an odd one the second.
//!
//! - **A thread that takes a turn** loads the state, reads the rate of its version, and exchanges
//!   the state. If that succeeds the state was still the same, so the rate was in force: the rate
//!   of a version is written only while the state has another one, and a next turn and a version
//!   never come together twice (the next turn never goes back, and moves on by a unit when the
//!   versions begin anew).
//! - **A thread that sets a rate** writes it where the next version's is, and then exchanges the
//!   state for one of the next version, with what is stored scaled. Until then it is not in force.
//!   Threads that set rates exclude each other by a mutex.
//!
//! A thread that takes a turn waits for no other: a thread that stops while it sets a rate leaves a
//! state with its old rate, or with the new one. A denial is a question to the next turn alone,
//! which is answered by one load.

use super::Smooth;
use super::curve::{Curve, StoredPermits};
use super::pace::Unit;
use super::state::SmoothState;
use crate::sync::{AtomicU64, Backoff, Ordering, inject_fault};
use std::sync::PoisonError;

impl<K: Curve, C> Smooth<K, C> {
    #[inline]
    pub(super) fn load(&self) -> SmoothState {
        // ORDERING: Acquire. It pairs with the release in `change`, also through the exchanges of
        // others in between: a thread that sees a version sees its rate. Models: smooth::
        SmoothState::unpack(self.state.load(Ordering::Acquire))
    }

    #[inline]
    fn exchange(&self, state: SmoothState, next: SmoothState) -> bool {
        // ORDERING: Relaxed. It publishes nothing, and hands on what the thread that set the rate
        // published. A thread that fails loads the state again. Models: smooth::
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

    /// The rate of the version that the state has. (If the state has gone on it may be another
    /// one's: the exchange will fail.)
    #[inline]
    pub(super) fn rate_of(&self, state: SmoothState) -> f64 {
        // ORDERING: Acquire. It pairs with the release in `change`: a thread that reads a rate that
        // was written over this version's sees that the state has gone on, be it by another look,
        // be it by an exchange (for that it is argued: in a model no thread's operations change
        // places). Models: smooth::
        f64::from_bits(self.place_of(state.version).load(Ordering::Acquire))
    }

    /// The state, and the store at the rate that was in force with it.
    pub(super) fn look(&self) -> (SmoothState, StoredPermits<K>) {
        let mut state = self.load();
        loop {
            let store = self.store(self.rate_of(state));
            match self.load() {
                again if again == state || inject_fault!(TellsWithoutALook) => {
                    return (state, store);
                }
                again => state = again,
            }
        }
    }

    pub(super) fn store(&self, rate: f64) -> StoredPermits<K> {
        StoredPermits::new(self.curve, self.unit, rate)
    }

    /// Changes the state by a step that may run several times, at the rate that is in force; unless
    /// the check of the state, which needs no rate, says no.
    #[inline]
    pub(super) fn step<T, E>(
        &self,
        check: impl Fn(SmoothState) -> Result<(), E>,
        step: impl Fn(SmoothState, &StoredPermits<K>) -> (SmoothState, T),
    ) -> Result<T, E> {
        let mut early =
            inject_fault!(ReadsTheRateFirst => Some(self.rate_of(self.load())), else None);
        let mut backoff = Backoff::new();
        loop {
            let state = self.load();
            check(state)?;
            let rate = early.take().unwrap_or_else(|| self.rate_of(state));
            let (next, answer) = step(state, &self.store(rate));
            if self.exchange(state, next) {
                return Ok(answer);
            }
            backoff.wait();
        }
    }

    /// Puts another rate in force at this moment.
    pub(super) fn change(&self, rate: f64, now: u64) {
        let alone = inject_fault!(SetsTogether => None, else
            Some(self.setting.lock().unwrap_or_else(PoisonError::into_inner)));
        // No other thread changes the version, nor what belongs to it.
        let mut state = self.load();
        let in_force = self.rate_of(state);
        if in_force == rate && self.unit == Unit::Nanos {
            // As where a configuration is read again. (Guava scales what is stored all the same,
            // which may change its last digit.)
            return;
        }
        let (old, new) = (self.store(in_force), self.store(rate));
        let version = inject_fault!(OverwritesTheRate => state.version, else state.version + 1);
        // ORDERING: Release. See `rate_of`. Models: smooth::. A swap, since words change by
        // read-modify-write alone.
        self.place_of(version)
            .swap(rate.to_bits(), Ordering::Release);
        loop {
            let until_now = old.resync(state, now);
            let stored = old.scaled(until_now.stored, &new);
            let moved = state.next < until_now.next;
            let mut next = until_now.next_version(stored, moved || inject_fault!(KeepsTheTurn));
            if inject_fault!(OverwritesTheRate) {
                next.version = state.version;
            }
            // ORDERING: Release on success: it publishes the rate. On failure Relaxed: nothing is
            // read by what was seen. Models: smooth::
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
