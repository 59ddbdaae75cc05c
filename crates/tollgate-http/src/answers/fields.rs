//! Which fields an answer has.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Which fields say what a client has left. Several generations can be combined with `|`.
///
/// [The guide][fields] shows the fields of each generation, and says what their numbers mean.
///
/// [fields]: https://docs.rs/tollgate-tower/latest/tollgate_tower/guide/http/index.html#fields-of-answers
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
