//! The value of one field, as it is written.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;
use tollgate::outcome::ceil_secs;

/// The largest number of a structured field.
pub(super) const MAX_NUMBER: u64 = 999_999_999_999_999;

/// The value of one field, as it is written.
#[derive(Default)]
pub(super) struct Value(SmallVec<[u8; 128]>);

impl Value {
    pub(super) fn of_number(number: u64) -> Self {
        let mut value = Self::default();
        value.number(number);
        value
    }

    pub(super) fn text(&mut self, text: impl AsRef<[u8]>) {
        self.0.extend_from_slice(text.as_ref());
    }

    /// Writes a number, at most the largest one of a structured field.
    pub(super) fn number(&mut self, number: u64) {
        self.text(itoa::Buffer::new().format(number.min(MAX_NUMBER)));
    }

    /// Writes what separates the members of a list, unless this is the first one.
    pub(super) fn separate(&mut self) {
        if !self.0.is_empty() {
            self.text(", ");
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value. There is none if it has bytes that no field can have.
    fn finish(&self) -> Option<HeaderValue> {
        HeaderValue::from_bytes(&self.0).ok()
    }

    /// Sets a field to the value.
    pub(super) fn insert(&self, headers: &mut HeaderMap, name: HeaderName) {
        if let Some(value) = self.finish() {
            // If there is no room for another header, it is left out.
            let _ = headers.try_insert(name, value);
        }
    }

    /// Adds a line with the value to a field, unless it is empty.
    pub(super) fn append(&self, headers: &mut HeaderMap, name: HeaderName) {
        if !self.is_empty() {
            if let Some(value) = self.finish() {
                let _ = headers.try_append(name, value);
            }
        }
    }
}

/// Returns a time in whole seconds, rounded up, at most the largest number of a structured field.
pub(super) fn seconds_until(time: Duration) -> u64 {
    ceil_secs(time).min(MAX_NUMBER)
}
