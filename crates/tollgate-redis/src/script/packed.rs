//! Numbers between a client and its scripts, packed as the Lua library `struct` packs them: doubles
//! in which integers below 2^53 are exact.

use std::fmt;

/// A reply that no script gives to this call. Something else answers, or has written the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct BadReply;

impl fmt::Display for BadReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's reply is not one that the script gives")
    }
}

impl std::error::Error for BadReply {}

/// The largest integer that is sent.
pub(crate) const MOST: u64 = (1 << 53) - 1;

/// Appends numbers, each at most [`MOST`].
pub(crate) fn pack(bytes: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        #[allow(
            clippy::cast_precision_loss,
            reason = "at most 2^53 - 1, so it is exact"
        )]
        let number = (*number).min(MOST) as f64;
        bytes.extend(number.to_le_bytes());
    }
}

/// Reads packed numbers one by one.
#[derive(Debug)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the next number, which must be an integer from 0 to `max`.
    pub(crate) fn next(&mut self, max: u64) -> Result<u64, BadReply> {
        let (head, rest) = self.bytes.split_first_chunk::<8>().ok_or(BadReply)?;
        self.bytes = rest;
        let number = f64::from_le_bytes(*head);
        // What is not a number is not in the range.
        let is_integer = (0.0..=9_007_199_254_740_991.0).contains(&number) && number.fract() == 0.0;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an integer from 0 to 2^53 - 1"
        )]
        let integer = number as u64;
        match is_integer && integer <= max {
            true => Ok(integer),
            false => Err(BadReply),
        }
    }

    /// Returns the next integer of four bytes.
    pub(crate) fn short(&mut self) -> Result<u64, BadReply> {
        let (head, rest) = self.bytes.split_first_chunk::<4>().ok_or(BadReply)?;
        self.bytes = rest;
        Ok(u32::from_le_bytes(*head).into())
    }

    /// Returns the result if no byte is left.
    pub(crate) fn end<T>(self, result: T) -> Result<T, BadReply> {
        match self.bytes.is_empty() {
            true => Ok(result),
            false => Err(BadReply),
        }
    }
}
