//! Which fields an answer has.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Which fields say what a client has left. Several generations can be combined with `|`.
///
/// | generation | fields | limits |
/// |---|---|---|
/// | [`LIST`](Self::LIST) | `RateLimit-Policy: "burst";q=100;w=60`, `RateLimit: "burst";r=50;t=30` | up to 16 |
/// | [`DICTIONARY`](Self::DICTIONARY) | `RateLimit-Policy: 100;w=60`, `RateLimit: limit=100, remaining=50, reset=30` | the tightest |
/// | [`TRIPLE`](Self::TRIPLE) | `RateLimit-Limit: 100`, `RateLimit-Policy: 100;w=60`, `RateLimit-Remaining: 50`, `RateLimit-Reset: 30` | the tightest |
/// | [`X_SECONDS`](Self::X_SECONDS) | `X-RateLimit-Limit: 100`, `X-RateLimit-Remaining: 50`, `X-RateLimit-Reset: 30` | the tightest |
/// | [`X_EPOCH`](Self::X_EPOCH) | the same, with `X-RateLimit-Reset: 1700000030` | the tightest |
/// | [`SPRING`](Self::SPRING) | `X-RateLimit-Remaining: 50`, `X-RateLimit-Replenish-Rate: 10`, `X-RateLimit-Burst-Capacity: 100`, `X-RateLimit-Requested-Tokens: 1` | the tightest |
///
/// If there are more than 16 limits, or if their names are long, a list leaves out those with the
/// most permits left.
///
/// Some generations give one field different meanings. Then the one that comes first in this table
/// is written: [`DICTIONARY`](Self::DICTIONARY) is not written beside [`LIST`](Self::LIST).
///
/// The tightest limit is one that denies the request, if there is one: the one with the longest
/// wait. Otherwise it is the one with the fewest permits left. The reset is left out where it is
/// not known. It is rounded up to a second.
///
/// ```
/// use tollgate_http::Fields;
///
/// let fields = Fields::LIST | Fields::X_SECONDS;
/// assert!(fields.contains(Fields::LIST) && !fields.contains(Fields::SPRING));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fields(u8);

impl Fields {
    /// None. `Retry-After` is always written on a refusal with a known wait.
    pub const OFF: Self = Self(0);
    /// `RateLimit-Policy` and `RateLimit` as lists, as in drafts 08 to 11.
    pub const LIST: Self = Self(1);
    /// `RateLimit-Policy` and `RateLimit` as in draft 07.
    pub const DICTIONARY: Self = Self(2);
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`, as in drafts 00 to 06.
    pub const TRIPLE: Self = Self(4);
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, with the reset in seconds.
    pub const X_SECONDS: Self = Self(8);
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, with the reset as seconds since 1970.
    pub const X_EPOCH: Self = Self(16);
    /// The fields of Spring Cloud Gateway. The rate is in permits per second, rounded down.
    pub const SPRING: Self = Self(32);

    /// Returns whether all of these generations are written.
    #[must_use]
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns whether nothing is written.
    #[must_use]
    pub const fn is_off(self) -> bool {
        self.0 == 0
    }

    /// Returns whether any of these generations is written.
    pub(super) const fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Adds generations: the same as `|`, in a constant.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl BitOr for Fields {
    type Output = Self;

    fn bitor(self, others: Self) -> Self {
        self.and(others)
    }
}

impl BitOrAssign for Fields {
    fn bitor_assign(&mut self, others: Self) {
        *self = self.and(others);
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::LIST, "LIST"),
            (Self::DICTIONARY, "DICTIONARY"),
            (Self::TRIPLE, "TRIPLE"),
            (Self::X_SECONDS, "X_SECONDS"),
            (Self::X_EPOCH, "X_EPOCH"),
            (Self::SPRING, "SPRING"),
        ];
        if self.is_off() {
            return f.write_str("OFF");
        }
        let mut separator = "";
        for (generation, name) in names {
            if self.contains(generation) {
                write!(f, "{separator}{name}")?;
                separator = " | ";
            }
        }
        Ok(())
    }
}
