//! What it has in common with all limiters.

use super::Adjustable;
use crate::algorithm::Algorithm;
use crate::algorithm::Debt;
use crate::algorithm::GiveBack;
use crate::algorithm::Settings;
use crate::clock::Tick;
use crate::gate::{DebtGate, Gate, GiveBackGate};
use crate::outcome::{Charged, Denied, Granted};

impl<A: Algorithm + Settings, C> Gate for Adjustable<A, C> {
    type Clock = C;

    #[inline]
    fn clock(&self) -> &C {
        self.clock()
    }

    #[inline]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.at(now).take_up_to(n)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.at(now).available()
    }
}

impl<A: GiveBack + Settings, C> GiveBackGate for Adjustable<A, C> {
    #[inline]
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.at(now).undo(granted)
    }

    #[inline]
    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.at(now).refund(n)
    }
}

impl<A: Debt + Settings, C> DebtGate for Adjustable<A, C> {
    #[inline]
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        self.at(now).charge(n)
    }
}
