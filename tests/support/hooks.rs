//! An algorithm and a key that call back into the test, which then counts, interrupts or panics.

#![allow(dead_code, reason = "each binary uses some of these")]

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use tollgate::algorithm::{Algorithm, ChangeQuota, Forecast, GiveBack, Rebase, Settings, Split};
use tollgate::error::QuotaError;
use tollgate::{Denied, Granted, Quota, Tick, TokenBucket};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Step,
    Look,
    IsIdle,
    CarryOver,
    Hash,
}

/// Returns whether it is to be called again.
type Hook = Box<dyn FnMut(Call) -> bool>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Sets the hook that this thread calls, until it returns `false` or panics. Calls from inside the
/// hook are not reported.
pub(crate) fn on_calls(hook: impl FnMut(Call) -> bool + 'static) {
    HOOK.set(Some(Box::new(hook)));
}

/// Runs `work` once at such a call, after `after` others of its kind.
pub(crate) fn at_call(which: Call, mut after: u64, work: impl FnOnce() + 'static) {
    let mut work = Some(work);
    on_calls(move |call| {
        let is_next = call == which && after == 0;
        after -= u64::from(call == which && after > 0);
        match work.take_if(|_| is_next) {
            Some(work) => work(),
            None => return true,
        }
        false
    });
}

/// Removes the hook. Returns whether it was still set.
pub(crate) fn unhook() -> bool {
    HOOK.take().is_some()
}

fn called(call: Call) {
    if let Some(mut hook) = HOOK.take() {
        if hook(call) {
            HOOK.set(Some(hook));
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hooked<A = TokenBucket>(pub(crate) A);

impl<A: Algorithm> Algorithm for Hooked<A> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let done = self.0.step(word, now, n);
        called(Call::Step);
        done
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        let available = self.0.available(word, now);
        called(Call::Look);
        available
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        called(Call::IsIdle);
        self.0.is_idle(word, now)
    }
}

impl<A: GiveBack> GiveBack for Hooked<A> {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let done = self.0.undo(word, now, granted);
        called(Call::Step);
        done
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        let done = self.0.refund(word, now, n);
        called(Call::Step);
        done
    }
}

impl<A: Forecast> Forecast for Hooked<A> {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        self.0.due(word, now, n)
    }
}

impl<A: Split> Split for Hooked<A> {
    fn most_shards(&self) -> u64 {
        self.0.most_shards()
    }

    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        let (shard, permit) = self.0.per_shard(shards)?;
        Some((Self(shard), permit))
    }

    fn never_falls(&self) -> bool {
        self.0.never_falls()
    }
}

impl<A: ChangeQuota> ChangeQuota for Hooked<A> {
    fn quota(&self) -> Quota {
        self.0.quota()
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        self.0.with_quota(quota).map(Self)
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        called(Call::CarryOver);
        self.0.carry_over(word, now, &next.0)
    }

    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.0.carry_used(word, now, &next.0)
    }
}

impl<A: Rebase> Rebase for Hooked<A> {
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        self.0.rebase(word, from, to)
    }
}

impl<A: Settings> Settings for Hooked<A> {
    const WORDS: usize = A::WORDS;

    fn save(&self, write: &mut impl FnMut(u64)) {
        self.0.save(write);
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        A::restore(read).map(Self)
    }
}

#[derive(Debug)]
pub(crate) struct HookedKey(pub(crate) u64);

impl Hash for HookedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        called(Call::Hash);
        self.0.hash(state);
    }
}
