//! Reads a snapshot. Every number is checked before it is used.

use super::crc::Crc;
use super::error::{Range, RestoreError};
use super::parameters::{Parameters, name_of};
use super::{END, KEYS, NAMED_PLANS, OVERRIDDEN_KEYS, PLANS};
use super::{Head, LIMITER, MAGIC, Record, SEEDED_TABLE, TABLE, VERSION};
use super::{KEY_BYTES, MAX_KEYS, MAX_NAME, MAX_PLANS, OVERRIDE_PLAN};
use crate::algorithm::{MAX_SETTINGS, Settings};
use crate::clock::Tick;
use crate::store::cell::UNSTARTED;

/// Where the bytes of a snapshot come from.
pub(crate) trait Source {
    /// Returns the next bytes, as many as this.
    fn take(&mut self, length: usize) -> Result<&[u8], RestoreError>;
}

impl Source for &[u8] {
    fn take(&mut self, length: usize) -> Result<&[u8], RestoreError> {
        let parts = self.split_at_checked(length);
        let (taken, rest) = parts.ok_or(RestoreError::Truncated)?;
        *self = rest;
        Ok(taken)
    }
}

/// What a snapshot is restored into. It is of use only if no error follows.
pub(crate) trait Restore {
    /// Takes a plan. Its name is empty if it has none. A later list of plans replaces this one.
    fn plan(&mut self, index: usize, name: &[u8], parameters: &Parameters) -> Done;

    /// Takes a key of one of these plans, or one that has an algorithm of its own.
    fn key(&mut self, key: &Record, own: Option<&Parameters>) -> Done;
}

/// Nothing, or the reason why a snapshot is not restored.
pub(crate) type Done = Result<(), RestoreError>;

/// A snapshot that is being read. Nothing beyond it is read.
pub(crate) struct Reader<'r> {
    source: &'r mut dyn Source,
    crc: Crc,
}

impl<'r> Reader<'r> {
    pub(crate) fn new(source: &'r mut dyn Source) -> Self {
        let crc = Crc::new();
        Self { source, crc }
    }

    /// Reads the beginning of a snapshot of a table or a limiter with this kind of algorithm.
    pub(crate) fn head<A: Settings>(&mut self, is_of_table: bool) -> Result<Head, RestoreError> {
        if self.take(MAGIC.len())? != MAGIC {
            return Err(RestoreError::NotASnapshot);
        }
        self.number_within("version", (VERSION, VERSION))?;
        let kind = self.number_within("kind", (LIMITER, SEEDED_TABLE))?;
        if is_of_table != (kind >= TABLE) {
            let is_of_table = !is_of_table;
            return Err(RestoreError::OtherKind { is_of_table });
        }
        let head = Head {
            kind,
            at: Tick::from_nanos(self.number()?),
            time_of_day: self.number()?,
            seed: [self.number()?, self.number()?],
            known_hash: self.number()?,
        };
        let name = self.name("length of the name", 0)?;
        match name == name_of::<A>() {
            true => Ok(head),
            false => Err(RestoreError::other_algorithm(name, A::NAME)),
        }
    }

    /// Reads all plans and keys, and the end. Returns the horizon.
    pub(crate) fn blocks(&mut self, into: &mut impl Restore) -> Result<Tick, RestoreError> {
        let mut plans = 0;
        loop {
            // The first block must have plans. Their number does not change.
            let (kinds, counts) = match plans {
                0 => ((PLANS, NAMED_PLANS), (1, MAX_PLANS as u64)),
                known => ((END, OVERRIDDEN_KEYS), (known, known)),
            };
            match self.number_within("kind of the block", kinds)? {
                END => return self.end(),
                kind @ (PLANS | NAMED_PLANS) => {
                    plans = self.number_within("number of plans", counts)?;
                    for index in 0..plans as usize {
                        let parameters = self.parameters()?;
                        let name = match kind {
                            PLANS => &[],
                            _ => self.name("length of a plan's name", 1)?,
                        };
                        into.plan(index, name, &parameters)?;
                    }
                }
                kind => {
                    let keys = self.number_within("number of keys", (1, MAX_KEYS as u64))?;
                    // Bits beyond the last key must be 0.
                    let all = u64::MAX >> (MAX_KEYS as u64).saturating_sub(keys);
                    let protected = self.number_within("protected keys", (0, all))?;
                    let (own, plans) = match kind {
                        KEYS => (None, (0, plans.saturating_sub(1))),
                        _ => (Some(self.parameters()?), (OVERRIDE_PLAN, OVERRIDE_PLAN)),
                    };
                    let keys = self.take(keys as usize * KEY_BYTES)?;
                    for (index, key) in keys.chunks_exact(KEY_BYTES).enumerate() {
                        let (label, word) = key.split_at(KEY_BYTES / 2);
                        let numbers = [label, word].map(number_of);
                        let key = Record::of_numbers(numbers, protected >> index & 1 != 0);
                        RestoreError::unless_within("plan of a key", key.plan.into(), plans)?;
                        // No key has the word of all ones.
                        RestoreError::unless_within("word", key.word, (0, UNSTARTED - 1))?;
                        into.key(&key, own.as_ref())?;
                    }
                }
            }
        }
    }

    fn end(&mut self) -> Result<Tick, RestoreError> {
        let horizon = Tick::from_nanos(self.number()?);
        let computed = self.crc.sum();
        let found = self.number()?;
        match computed == found {
            true => Ok(horizon),
            false => Err(RestoreError::Checksum { computed, found }),
        }
    }

    /// Returns an error if more bytes follow.
    pub(crate) fn is_over(&mut self) -> Done {
        match self.source.take(1) {
            Ok(_) => Err(RestoreError::TooLong),
            Err(RestoreError::Truncated) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, length: usize) -> Result<&[u8], RestoreError> {
        let bytes = self.source.take(length)?;
        self.crc.add(bytes);
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, RestoreError> {
        self.take(8).map(number_of)
    }

    fn number_within(&mut self, field: &'static str, range: Range) -> Result<u64, RestoreError> {
        RestoreError::unless_within(field, self.number()?, range)
    }

    /// Reads a name of at least this length.
    fn name(&mut self, field: &'static str, min: u64) -> Result<&[u8], RestoreError> {
        let length = self.number_within(field, (min, MAX_NAME as u64))?;
        let name = self.take(MAX_NAME)?;
        Ok(name.get(..length as usize).unwrap_or(name))
    }

    fn parameters(&mut self) -> Result<Parameters, RestoreError> {
        let count = self.number_within("number of parameters", (0, MAX_SETTINGS as u64))?;
        let numbers = self.take(8 * MAX_SETTINGS)?.chunks_exact(8);
        let mut parameters = Parameters::NONE;
        for number in numbers.take(count as usize) {
            parameters.push(number_of(number));
        }
        Ok(parameters)
    }
}

/// Returns the number in these eight bytes.
fn number_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}
