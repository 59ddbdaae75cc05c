//! Stores the parameters of an algorithm as words.

use core::num::NonZeroU64;
use core::time::Duration;

use super::AnyAlgorithm;
use crate::quota::Quota;

/// The most words that an algorithm's parameters may take.
pub const MAX_SETTINGS: usize = 15;

/// Parameters that can be stored in words while other threads write to them.
///
/// An [`Adjustable`](https://docs.rs/tollgate/latest/tollgate/struct.Adjustable.html) limiter
/// stores its parameters in words, and builds an algorithm from them for each decision. So
/// [`save`](Settings::save) only the parameters that decisions read. More than [`MAX_SETTINGS`]
/// words do not compile there.
///
/// A restored algorithm must behave as the saved one does. It must decide, give back, charge and
/// carry words over in the same way, and start with the same word, because a table of keys uses it
/// for all of these. It need not keep data that only describes the algorithm, such as its quota:
/// limiters keep a copy of that.
///
/// ```
/// use tollgate::algorithm::Settings;
///
/// /// At most `limit` permits, out of `all`.
/// struct Total { limit: u64, all: u64 }
///
/// impl Settings for Total {
///     const WORDS: usize = 2;
///
///     fn save(&self, write: &mut impl FnMut(u64)) {
///         write(self.limit);
///         write(self.all);
///     }
///     fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
///         Some(Self { limit: read(), all: read() })
///     }
/// }
///
/// let mut words = Vec::new();
/// Total { limit: 5, all: 7 }.save(&mut |word| words.push(word));
/// assert_eq!(words, [5, 7]);
/// ```
pub trait Settings: Sized {
    /// The most words that [`save`](Self::save) writes.
    const WORDS: usize;

    /// The name under which snapshots store these words, at most 64 bytes long. Words stored under
    /// another name are not read.
    const NAME: &'static str = "";

    /// Writes the words, one after the other.
    fn save(&self, write: &mut impl FnMut(u64));

    /// Reads the words in the same order: as many as were written, or fewer.
    ///
    /// The words may be torn: a mix of two writes. The caller then discards the result, but this
    /// method must not panic. It may return `None` for words that `save` never writes. For the
    /// words of a single write it must return `Some`, or callers retry forever.
    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self>;

    /// Restores the algorithm and passes it to `then`. Keep the default unless `Self` is an enum of
    /// algorithms: if each branch calls `then` itself, the algorithm need not be stored in memory
    /// first.
    #[inline(always)]
    fn restore_and<T: Visit<Self>>(read: &mut impl FnMut() -> u64, then: T) -> Option<T::Output> {
        Some(then.visit(&Self::restore(read)?))
    }

    /// Returns whether a constructor could have made these parameters, so that they are safe to use
    /// with any word at any tick. A snapshot comes from outside, so its words may be arbitrary.
    ///
    /// The default is `false`: a snapshot can then be restored only by a limiter with exactly the
    /// same parameters.
    fn is_sound(&self) -> bool {
        false
    }
}

/// An action on a restored algorithm: see [`Settings::restore_and`]. It is a trait and not a
/// closure, so that it is always inlined.
pub trait Visit<A> {
    /// The result.
    type Output;

    /// Runs with the restored algorithm.
    fn visit(self, algorithm: &A) -> Self::Output;
}

/// A placeholder for the quota, which no decision reads.
pub(super) const NO_QUOTA: Quota = Quota::per(0, Duration::ZERO);

/// Implements [`Settings`] by saving each of these fields in order. The other fields get a value
/// that no decision reads. The parameters are sound if each field is sound and the fields fit
/// together.
macro_rules! settings {
    (
        $type:ty, $words:expr $(, $name:literal)? $(, if $fits:path)?;
        $($field:ident)* $(; $other:ident = $value:expr)*
    ) => {
        impl crate::algorithm::Settings for $type {
            const WORDS: usize = $words;
            const NAME: &'static str = concat!($($name)?);

            #[inline]
            fn save(&self, write: &mut impl FnMut(u64)) {
                $(crate::algorithm::Settings::save(&self.$field, write);)*
            }

            #[inline(always)]
            fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
                Some(Self {
                    $($field: crate::algorithm::Settings::restore(read)?,)*
                    $($other: $value,)*
                })
            }

            fn is_sound(&self) -> bool {
                $(crate::algorithm::Settings::is_sound(&self.$field) &&)* true $(&& $fits(self))?
            }
        }
    };
}
pub(super) use settings;

/// Implements [`Settings`] for an enum: the number of the kind comes first, then the words of that
/// kind.
macro_rules! settings_of_kinds {
    ($kinds:ident, $words:expr $(, $name:literal)?; $($number:literal $kind:ident)*) => {
        impl crate::algorithm::Settings for $kinds {
            const WORDS: usize = $words;
            const NAME: &'static str = concat!($($name)?);

            #[inline]
            fn save(&self, write: &mut impl FnMut(u64)) {
                match self {
                    $(Self::$kind(this) => {
                        write($number);
                        crate::algorithm::Settings::save(this, write);
                    })*
                }
            }

            #[inline(always)]
            fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
                Some(match read() {
                    $($number => Self::$kind(crate::algorithm::Settings::restore(read)?),)*
                    _ => return None,
                })
            }

            #[inline(always)]
            fn restore_and<T: crate::algorithm::Visit<Self>>(
                read: &mut impl FnMut() -> u64,
                then: T,
            ) -> Option<T::Output> {
                Some(match read() {
                    $($number => {
                        let this = crate::algorithm::Settings::restore(read)?;
                        then.visit(&Self::$kind(this))
                    })*
                    _ => return None,
                })
            }

            fn is_sound(&self) -> bool {
                match self {
                    $(Self::$kind(this) => crate::algorithm::Settings::is_sound(this),)*
                }
            }
        }
    };
}
pub(super) use settings_of_kinds;

/// Implements [`Settings`] for a type that is sound in itself, by the words that it writes and what
/// it makes of the words that it reads.
macro_rules! settings_of_words {
    ($type:ty, $words:literal, |$this:ident| [$($saved:expr),*], |$($word:ident),*| $restored:expr) => {
        impl Settings for $type {
            const WORDS: usize = $words;

            #[inline]
            fn save(&self, write: &mut impl FnMut(u64)) {
                let $this = *self;
                $(write($saved);)*
            }

            #[inline(always)]
            fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
                $(let $word = read();)*
                $restored
            }

            fn is_sound(&self) -> bool {
                true
            }
        }
    };
}

settings_of_words!(u64, 1, |this| [this], |word| Some(word));
settings_of_words!(u32, 1, |this| [this.into()], |word| Some(word as u32));
settings_of_words!(NonZeroU64, 1, |this| [this.get()], |word| Self::new(word));
settings_of_words!((u64, u64), 2, |this| [this.0, this.1], |a, b| Some((a, b)));

settings_of_kinds!(AnyAlgorithm, 13, "any";
    0 TokenBucket 1 Gcra 2 LeakyBucket 3 FixedWindow 4 SlidingWindow 5 Intervals);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::{AnyAlgorithm, MAX_SETTINGS, Settings};
    use crate::algorithm::{Algorithm, ChangeQuota, Forecast};
    use crate::clock::Tick;

    fn saved(algorithm: &AnyAlgorithm) -> Vec<u64> {
        let mut words = Vec::new();
        algorithm.save(&mut |word| words.push(word));
        words
    }

    fn restored(words: &[u64]) -> Option<AnyAlgorithm> {
        let mut words = words.iter();
        let algorithm = AnyAlgorithm::restore(&mut || *words.next().unwrap_or(&0));
        algorithm.inspect(|_| assert!(words.next().is_none(), "restore must read every word"))
    }

    /// Settings that keep the default of `is_sound`.
    struct Total(u64);

    impl Settings for Total {
        const WORDS: usize = 1;

        fn save(&self, write: &mut impl FnMut(u64)) {
            write(self.0);
        }

        fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
            Some(Self(read()))
        }
    }

    #[test]
    fn settings_are_not_sound_by_default() {
        assert!(!Total(1).is_sound());
        assert!(
            "gcra 1/s"
                .parse::<AnyAlgorithm>()
                .is_ok_and(|gcra| gcra.is_sound())
        );
    }

    #[test]
    fn restored_settings_decide_alike_and_torn_words_do_not_panic() {
        let texts = [
            "token-bucket 13/s burst 40",
            "gcra 1/10ms tolerance 25ms",
            "leaky-queue 7/min burst 5 free 2",
            "leaky-meter 7/min burst 5",
            "fixed-window 5/min offset 7s",
            "fixed-window 5/s first-hit",
            "sliding-window 50/min origin 9s rounding down",
            "intervals 3/h burst 7 offset 1ms",
            "intervals 2/d burst 9 greedy",
            "token-bucket 10/s burst 40 initial 4",
            "intervals 2/d burst 9 initial 1",
            "sliding-window 10/s",
        ];
        let all = texts.map(|text| text.parse::<AnyAlgorithm>().expect(text));
        for algorithm in &all {
            let words = saved(algorithm);
            assert!(words.len() <= AnyAlgorithm::WORDS && AnyAlgorithm::WORDS <= MAX_SETTINGS);
            let same = restored(&words).expect("it was saved");
            let mut word = algorithm.initial_word(Tick::ZERO);
            for nanos in (0..400).map(|i| i * 333_333_331) {
                let now = Tick::from_nanos(nanos);
                let took = algorithm.step(word, now, 1 + nanos % 3);
                assert_eq!(same.step(word, now, 1 + nanos % 3), took, "{algorithm}");
                let short = same.step_fast(word, now, 2);
                assert_eq!(short, algorithm.step_fast(word, now, 2), "{algorithm}");
                let due = algorithm.due(word, now, 2);
                assert_eq!(same.due(word, now, 2), due, "{algorithm}");
                word = took.map_or(word, |(next, _)| next);
                assert_eq!(same.initial_word(now), algorithm.initial_word(now));
                for other in &all {
                    let right = algorithm.carry_over(word, now, other);
                    let other = restored(&saved(other)).expect("it was saved");
                    assert_eq!(same.carry_over(word, now, &other), right, "{algorithm}");
                }
            }
            // The first words of one algorithm and the rest of another.
            for other in &all {
                for cut in 0..=words.len() {
                    let tail = saved(other).into_iter().skip(cut);
                    let torn: Vec<_> = words.iter().copied().take(cut).chain(tail).collect();
                    let mut torn = torn.into_iter();
                    let _ = AnyAlgorithm::restore(&mut || torn.next().unwrap_or(0));
                }
            }
        }
    }
}
