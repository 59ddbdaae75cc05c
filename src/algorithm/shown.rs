//! Formats algorithms as the text that [`AnyAlgorithm`] parses.

use core::fmt;

use super::alignment::{Alignment, Epoch};
use super::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, Rounding, SlidingWindow, TokenBucket,
};
use crate::algorithm::ChangeQuota;
use crate::quota::write_period;

/// Implements `Display` with the given function, and `Debug` with `Display`.
macro_rules! shown_as_text {
    ($($algorithm:ident: |$this:ident, $f:ident| $write:expr;)*) => {$(
        impl fmt::Display for $algorithm {
            fn fmt(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                $write
            }
        }

        impl fmt::Debug for $algorithm {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

shown_as_text! {
    TokenBucket: |this, f| write!(f, "token-bucket {}", this.quota());
    Gcra: |this, f| {
        let quota = this.quota();
        match this.uneven_tolerance() {
            None => write!(f, "gcra {quota}"),
            Some(tolerance) => {
                f.write_str("gcra 1/")?;
                write_period(f, quota.period(), false)?;
                f.write_str(" tolerance ")?;
                write_period(f, tolerance, true)
            }
        }
    };
    LeakyBucket: |this, f| {
        let quota = this.quota();
        match this.free_permits() {
            None => write!(f, "leaky-meter {quota}"),
            Some(0) => write!(f, "leaky-queue {quota}"),
            Some(free) => write!(f, "leaky-queue {quota} free {free}"),
        }
    };
    FixedWindow: |this, f| {
        let quota = this.quota();
        match this.quantum() {
            Some(_) => write!(f, "fixed-window {quota} first-hit"),
            None => write!(f, "fixed-window {quota}{}", this.alignment()),
        }
    };
    SlidingWindow: |this, f| {
        write!(f, "sliding-window {}{}", this.quota(), this.alignment())?;
        match this.rounds() {
            Rounding::Exact => Ok(()),
            Rounding::Down => f.write_str(" rounding down"),
        }
    };
    Intervals: |this, f| {
        let quota = this.quota();
        match this.is_greedy() {
            true => write!(f, "intervals {quota} greedy"),
            false => write!(f, "intervals {quota}{}", this.alignment()),
        }
    };
    AnyAlgorithm: |this, f| match this {
        Self::TokenBucket(this) => fmt::Display::fmt(this, f),
        Self::Gcra(this) => fmt::Display::fmt(this, f),
        Self::LeakyBucket(this) => fmt::Display::fmt(this, f),
        Self::FixedWindow(this) => fmt::Display::fmt(this, f),
        Self::SlidingWindow(this) => fmt::Display::fmt(this, f),
        Self::Intervals(this) => fmt::Display::fmt(this, f),
    };
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            Epoch::Clock => {}
            Epoch::Utc(_) => f.write_str(" utc")?,
            Epoch::Unix(origin) => {
                f.write_str(" origin ")?;
                write_period(f, origin, true)?;
            }
        }
        if self.offset.is_zero() {
            return Ok(());
        }
        f.write_str(" offset ")?;
        write_period(f, self.offset, true)
    }
}
