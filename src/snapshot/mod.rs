//! Snapshots: the state of one limiter as bytes, for the next process. Snapshots of tables share
//! some of its parts.
//!
//! All numbers have 64 bits, lowest byte first.
//!
//! ```text
//! ┌──────────────────────────────────────────────────────────────┐
//! │ magic │ version of the format │ tick │ time of day           │
//! │ length of the algorithm's name │ the name, in 64 bytes       │
//! │ number of parameters │ the parameters, in 15 numbers         │
//! │ word │ checksum of all that is above                         │
//! └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! - The **tick** is that of the limiter's clock at the snapshot. The **time of day** at the same
//!   moment is in nanoseconds since 1970, or 0 if it is unknown.
//! - Unused bytes of the name and unused parameters are 0.
//! - The **checksum** is CRC-64/XZ.

pub(crate) mod crc;
pub(crate) mod elapsed;
pub(crate) mod error;
pub(crate) mod parameters;
pub(crate) mod verbs;

use self::crc::Crc;
use self::elapsed::Elapsed;
use self::error::RestoreError;
use self::parameters::{MAX_NAME, Parameters, name_of};
use crate::algorithm::{ChangeQuota, MAX_SETTINGS, Rebase, Settings};
use crate::clock::Tick;
use crate::store::SNAPSHOT_BYTES;
use crate::store::cell::UNSTARTED;

/// Five numbers before the name, the name, the parameters with their count, the word and the
/// checksum.
const _: () = assert!((5 + MAX_NAME / 8 + 1 + MAX_SETTINGS + 2) * 8 == SNAPSHOT_BYTES);

/// A transfer that treats the file as text changes the last four bytes, so these detect it. The
/// snapshot of a table begins with other bytes.
const MAGIC: [u8; 8] = *b"\x89TGL\r\n\x1a\n";
const VERSION: u64 = 1;

/// A limiter's state at a tick.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saved {
    at: Tick,
    time_of_day: u64,
    parameters: Parameters,
    word: u64,
}

impl Saved {
    /// Creates the state of a limiter with this algorithm and word at this tick.
    pub(crate) fn new<A: Settings>(algorithm: &A, word: u64, at: Tick, time_of_day: u64) -> Self {
        Self {
            at,
            time_of_day,
            parameters: Parameters::of(algorithm),
            word,
        }
    }

    pub(crate) fn to_bytes<A: Settings>(self) -> [u8; SNAPSHOT_BYTES] {
        let (name, parameters) = (name_of::<A>(), self.parameters.numbers());
        let mut padded = [0; MAX_NAME];
        for (place, byte) in padded.iter_mut().zip(name) {
            *place = *byte;
        }
        let length = name.len() as u64;
        let head = [VERSION, self.at.as_nanos(), self.time_of_day, length];
        let (head, count) = (head.map(u64::to_le_bytes), parameters.len() as u64);
        let padding = core::iter::repeat_n(&0, MAX_SETTINGS.saturating_sub(parameters.len()));
        let body = core::iter::once(&count).chain(parameters).chain(padding);
        let body = body.chain(core::iter::once(&self.word));
        let all = MAGIC.into_iter().chain(head.into_iter().flatten());
        let all = all.chain(padded);
        let all = all.chain(body.flat_map(|number| number.to_le_bytes()));

        let mut bytes = [0; SNAPSHOT_BYTES];
        for (place, byte) in bytes.iter_mut().zip(all) {
            *place = byte;
        }
        if let Some((content, sum)) = bytes.split_last_chunk_mut() {
            *sum = checksum(content).to_le_bytes();
        }
        bytes
    }

    /// Reads a snapshot of a limiter with this kind of algorithm.
    pub(crate) fn from_bytes<A: Settings>(bytes: &[u8]) -> Result<Self, RestoreError> {
        let mut input = Input(bytes);
        if input
            .0
            .iter()
            .zip(&MAGIC)
            .any(|(byte, magic)| byte != magic)
        {
            return Err(RestoreError::NotASnapshot);
        }
        let _ = input.number()?;
        let (found, known) = (input.number()?, VERSION);
        if found == 0 || found > known {
            return Err(RestoreError::Version { found, known });
        }
        if bytes.len() > SNAPSHOT_BYTES {
            return Err(RestoreError::TooLong);
        }
        let Some((content, sum)) = bytes.split_last_chunk() else {
            return Err(RestoreError::Truncated);
        };
        if bytes.len() < SNAPSHOT_BYTES {
            return Err(RestoreError::Truncated);
        }
        let (computed, found) = (checksum(content), u64::from_le_bytes(*sum));
        if computed != found {
            return Err(RestoreError::Checksum { computed, found });
        }
        let (at, time_of_day) = (Tick::from_nanos(input.number()?), input.number()?);
        let length = input.number_within("length of the name", MAX_NAME as u64)?;
        let name = input.bytes::<MAX_NAME>()?;
        let name = name.get(..length as usize).unwrap_or(name);
        if name != name_of::<A>() {
            return Err(RestoreError::other_algorithm(name, A::NAME));
        }
        let count = input.number_within("number of parameters", MAX_SETTINGS as u64)?;
        let mut parameters = Parameters::NONE;
        for index in 0..MAX_SETTINGS as u64 {
            let number = input.number()?;
            if index < count {
                parameters.push(number);
            }
        }
        // No limiter stores the word of all ones.
        let word = input.number_within("word", UNSTARTED - 1)?;
        Ok(Self {
            at,
            time_of_day,
            parameters,
            word,
        })
    }

    /// Returns the time since the snapshot.
    pub(crate) const fn elapsed(&self, elapsed: Elapsed) -> core::time::Duration {
        elapsed.since(self.time_of_day)
    }

    /// Returns the word with which this algorithm continues at a tick of its own clock.
    pub(crate) fn word_for<A: ChangeQuota + Rebase + Settings>(
        &self,
        algorithm: &A,
        now: Tick,
        elapsed: core::time::Duration,
    ) -> Result<u64, RestoreError> {
        let from = self.at.saturating_add(elapsed);
        let word = match Parameters::of(algorithm) == self.parameters {
            true => algorithm.rebase(self.word, from, now),
            false => match self.parameters.algorithm::<A>() {
                Some(was) => was.carry_over(was.rebase(self.word, from, now), now, algorithm),
                None => return Err(RestoreError::OtherParameters { plan: None }),
            },
        };
        Ok(word.min(UNSTARTED - 1))
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut crc = Crc::new();
    crc.add(bytes);
    crc.sum()
}

/// The bytes that are still to be read.
struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn bytes<const N: usize>(&mut self) -> Result<&'b [u8; N], RestoreError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(RestoreError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, RestoreError> {
        self.bytes().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn number_within(&mut self, field: &'static str, max: u64) -> Result<u64, RestoreError> {
        RestoreError::unless_within(field, self.number()?, (0, max))
    }
}
