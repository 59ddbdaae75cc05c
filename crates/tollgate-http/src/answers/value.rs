//! The value of one field, as it is written.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate::outcome::ceil_secs;

/// The largest number of a structured field.
pub(super) const MAX_NUMBER: u64 = 999_999_999_999_999;

/// How many bytes need no allocation: the fields of about four limits.
const INLINE: usize = 192;

/// The value of one field, as it is written: on the stack, unless it is long.
#[derive(Clone)]
pub(super) struct Value {
    inline: [u8; INLINE],
    len: usize,
    /// All of the value, if it is long.
    long: Vec<u8>,
}

impl Default for Value {
    fn default() -> Self {
        Self {
            inline: [0; INLINE],
            len: 0,
            long: Vec::new(),
        }
    }
}

impl Value {
    #[inline]
    pub(super) fn text(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        let end = self.len.saturating_add(text.len());
        match self.inline.get_mut(self.len..end) {
            Some(room) if self.long.is_empty() => {
                room.copy_from_slice(text);
                self.len = end;
            }
            _ => self.long_text(text),
        }
    }

    #[cold]
    fn long_text(&mut self, text: &[u8]) {
        if self.long.is_empty() {
            let inline = self.inline.get(..self.len).unwrap_or_default();
            self.long.extend_from_slice(inline);
        }
        self.long.extend_from_slice(text);
    }

    /// Writes a number, at most the largest one of a structured field.
    pub(super) fn number(&mut self, number: u64) {
        match u8::try_from(number) {
            Ok(digit @ 0..=9) => self.text([b'0' + digit]),
            _ => self.text(itoa::Buffer::new().format(number.min(MAX_NUMBER))),
        }
    }

    /// Writes what separates the members of a list, unless this is the first one.
    pub(super) fn separate(&mut self) {
        if !self.as_bytes().is_empty() {
            self.text(", ");
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            self.inline.get(..self.len).unwrap_or_default()
        } else {
            &self.long
        }
    }

    /// Returns the value. There is none if it is empty, or has bytes that no field can have.
    pub(super) fn finish(&self) -> Option<HeaderValue> {
        let bytes = self.as_bytes();
        let value = HeaderValue::from_bytes(bytes).ok();
        value.filter(|_| !bytes.is_empty())
    }

    /// Adds a line with the value to a field, unless it is empty.
    pub(super) fn append(&self, headers: &mut HeaderMap, name: HeaderName) {
        if let Some(value) = self.finish() {
            let _ = headers.try_append(name, value);
        }
    }

    /// Sets a field to the value.
    pub(super) fn insert(&self, headers: &mut HeaderMap, name: HeaderName) {
        if let Some(value) = self.finish() {
            // If there is no room for another header, it is left out.
            let _ = headers.try_insert(name, value);
        }
    }
}

/// Sets a field to a number, at most the largest one of a structured field.
pub(super) fn insert_number(headers: &mut HeaderMap, name: HeaderName, number: u64) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number.min(MAX_NUMBER));
    if let Ok(value) = HeaderValue::from_str(digits) {
        let _ = headers.try_insert(name, value);
    }
}

/// Returns a time in whole seconds, rounded up, at most the largest number of a structured field.
pub(super) fn seconds_until(time: Duration) -> u64 {
    ceil_secs(time).min(MAX_NUMBER)
}
