//! An algorithm and a key that call back into the test, which then counts, interrupts or panics.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use tollgate::algorithm::{Algorithm, ChangeQuota, GiveBack, Rebase, Settings};
use tollgate::error::QuotaError;
use tollgate::{Denied, Granted, Quota, Tick, TokenBucket};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Step,
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
pub(crate) struct Hooked(pub(crate) TokenBucket);

impl Algorithm for Hooked {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let done = self.0.step(word, now, n);
        called(Call::Step);
        done
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        called(Call::IsIdle);
        self.0.is_idle(word, now)
    }
}

impl GiveBack for Hooked {
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

impl ChangeQuota for Hooked {
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
}

impl Rebase for Hooked {
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        self.0.rebase(word, from, to)
    }
}

impl Settings for Hooked {
    const WORDS: usize = TokenBucket::WORDS;

    fn save(&self, write: &mut impl FnMut(u64)) {
        self.0.save(write);
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        TokenBucket::restore(read).map(Self)
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
