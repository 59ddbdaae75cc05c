/// Implements the traits that all algorithms of this crate share, by forwarding each call to the
/// core that does the work. `$core!(self, core => call)` must evaluate the call with `core` bound
/// to that core.
macro_rules! runs_on {
    ($algorithm:ty, $core:ident) => {
        impl crate::algorithm::Algorithm for $algorithm {
            #[inline(always)]
            fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
                $core!(self, core => core.step(word, now, n))
            }

            #[inline(always)]
            fn step_fast(
                &self,
                word: u64,
                now: Tick,
                n: u64,
            ) -> Option<Result<(u64, Granted), Denied>> {
                $core!(self, core => core.step_fast(word, now, n))
            }

            #[inline]
            fn available(&self, word: u64, now: Tick) -> u64 {
                $core!(self, core => core.available(word, now))
            }

            #[inline]
            fn is_idle(&self, word: u64, now: Tick) -> bool {
                $core!(self, core => core.is_idle(word, now))
            }

            #[inline]
            fn idle_at(&self, word: u64, now: Tick) -> Tick {
                $core!(self, core => core.idle_at(word, now))
            }

            #[inline]
            fn larger_is_idle_later(&self) -> bool {
                $core!(self, core => core.larger_is_idle_later())
            }

            #[inline]
            fn initial_word(&self, now: Tick) -> u64 {
                $core!(self, core => core.initial_word(now))
            }

            #[inline]
            fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
                $core!(self, core => core.take_up_to(word, now, n))
            }
        }

        impl crate::algorithm::GiveBack for $algorithm {
            #[inline]
            fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
                $core!(self, core => core.undo(word, now, granted))
            }

            #[inline]
            fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
                $core!(self, core => core.refund(word, now, n))
            }

            #[inline]
            fn roll_back(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
                $core!(self, core => core.roll_back(word, now, granted))
            }
        }

        impl crate::algorithm::Debt for $algorithm {
            #[inline]
            fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
                $core!(self, core => core.charge(word, now, n))
            }
        }

        impl crate::algorithm::Forecast for $algorithm {
            #[inline]
            fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
                $core!(self, core => core.due(word, now, n))
            }
        }

        impl crate::algorithm::Rebase for $algorithm {
            #[inline]
            fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
                $core!(self, core => core.rebase(word, from, to))
            }
        }

        impl crate::algorithm::Gauge for $algorithm {
            #[inline]
            fn level(&self, word: u64, now: Tick) -> Level {
                $core!(self, core => core.level(word, now))
            }
        }
    };
}
pub(super) use runs_on;

/// The core is the field `pace`.
macro_rules! its_pace {
    ($this:ident, $core:ident => $call:expr) => {{
        let $core = &$this.pace;
        $call
    }};
}
pub(super) use its_pace;

/// Implements [`ChangeQuota`](crate::algorithm::ChangeQuota) for a bucket that has a `pace` and was
/// made from a quota.
macro_rules! requota_by_pace {
    ($algorithm:ty) => {
        impl crate::algorithm::ChangeQuota for $algorithm {
            #[inline]
            fn quota(&self) -> Quota {
                self.quota
            }

            fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
                if quota == self.quota {
                    // This also keeps what a quota can't express, such as an uneven tolerance.
                    return Ok(*self);
                }
                Self::new(quota)
            }

            #[inline]
            fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
                self.pace.carry_over(word, now, &next.pace)
            }

            #[inline]
            fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
                self.pace.carry_scaled(word, now, &next.pace)
            }

            fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
                self.pace.carry_level(word, now, &next.pace)
            }
        }
    };
}
pub(super) use requota_by_pace;

/// Implements [`Reserve`](crate::algorithm::Reserve) by forwarding each call to the core, as
/// [`runs_on`] does.
macro_rules! reserves_on {
    ($algorithm:ty, $core:ident) => {
        impl crate::algorithm::Reserve for $algorithm {
            crate::algorithm::delegate::reserving_methods!([] $core);
        }
    };
}
pub(super) use reserves_on;

/// Implements the methods of [`Reserve`](crate::algorithm::Reserve), with this visibility.
macro_rules! reserving_methods {
    ([$($visibility:tt)*] $core:ident) => {
        #[inline(always)]
        $($visibility)* fn reserve(
            &self,
            word: u64,
            now: Tick,
            n: u64,
            latest: Tick,
        ) -> Result<(u64, Granted), Denied> {
            $core!(self, core => core.reserve(word, now, n, latest))
        }

        #[inline]
        $($visibility)* fn cancel(
            &self,
            word: u64,
            now: Tick,
            granted: &Granted,
            n: u64,
        ) -> (u64, Granted, u64) {
            $core!(self, core => core.cancel(word, now, granted, n))
        }

        #[inline]
        $($visibility)* fn waiting(&self, word: u64, now: Tick) -> u64 {
            $core!(self, core => core.waiting(word, now))
        }
    };
}
pub(super) use reserving_methods;
