//! Fields of an answer that is not there yet.

use std::time::SystemTime;

use http::HeaderMap;

use super::fields::Fields;
use super::generations::{Numbers, Said};
use crate::LimitState;

/// The values of an answer's fields, which [`Answers::values`](super::Answers::values) returns.
///
/// They need neither the limits nor the settings any more. Values of [`Fields::LIST`] alone need no
/// memory besides those of the headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct FieldValues {
    said: Said,
    numbers: Option<Box<Numbers>>,
}

impl FieldValues {
    pub(super) fn of<'a>(
        fields: Fields,
        limits: impl Iterator<Item = LimitState<'a>> + Clone,
        now: SystemTime,
    ) -> Self {
        let (said, numbers) = Said::of(fields, limits, now);
        let numbers = numbers.map(Box::new);
        Self { said, numbers }
    }

    /// Returns whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.said.is_empty() && self.numbers.is_none()
    }

    /// Writes the fields, as [`Answers::write`](super::Answers::write) does.
    pub fn write(self, headers: &mut HeaderMap) {
        self.said.write(self.numbers.as_deref(), headers);
    }
}
