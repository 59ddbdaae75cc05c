/// Implements the traits for an algorithm that keeps a `pace`.
macro_rules! runs_on_pace {
    ($algorithm:ty) => {
        impl crate::algorithm::Algorithm for $algorithm {
            #[inline(always)]
            fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
                self.pace.step(word, now, n)
            }

            #[inline]
            fn available(&self, word: u64, now: Tick) -> u64 {
                self.pace.available(word, now)
            }

            #[inline]
            fn is_idle(&self, word: u64, now: Tick) -> bool {
                self.pace.is_idle(word, now)
            }

            #[inline]
            fn initial_word(&self, now: Tick) -> u64 {
                self.pace.initial_word(now)
            }

            #[inline]
            fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
                self.pace.take_up_to(word, now, n)
            }
        }

        impl crate::algorithm::GiveBack for $algorithm {
            #[inline]
            fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
                self.pace.undo(word, now, granted)
            }

            #[inline]
            fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
                self.pace.refund(word, now, n)
            }
        }

        impl crate::algorithm::Debt for $algorithm {
            #[inline]
            fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
                self.pace.charge(word, now, n)
            }
        }

        impl crate::algorithm::Forecast for $algorithm {
            #[inline]
            fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
                self.pace.due(word, now, n)
            }
        }

        impl crate::algorithm::Rebase for $algorithm {
            #[inline]
            fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
                self.pace.rebase(word, from, to)
            }
        }

        impl crate::algorithm::Requota for $algorithm {
            #[inline]
            fn quota(&self) -> Quota {
                self.quota
            }

            fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
                Self::new(quota)
            }

            #[inline]
            fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
                self.pace.carry_over(word, now, &next.pace)
            }
        }
    };
}
pub(crate) use runs_on_pace;
