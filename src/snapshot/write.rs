//! Writes a snapshot.

use super::crc::Crc;
use super::parameters::{Parameters, name_of};
use super::{END, KEYS, NAMED_PLANS, OVERRIDDEN_KEYS, PLANS};
use super::{Head, MAGIC, MAX_NAME, Record, VERSION};
use crate::algorithm::Settings;
use crate::clock::Tick;

/// A snapshot that is being written: first its [`head`](Self::head), then blocks, then its
/// [`end`](Self::end).
pub(crate) struct Writer<'w, E> {
    put: &'w mut dyn FnMut(&[u8]) -> Result<(), E>,
    crc: Crc,
}

impl<'w, E> Writer<'w, E> {
    /// Returns a writer that passes its bytes to `put`.
    pub(crate) fn new(put: &'w mut dyn FnMut(&[u8]) -> Result<(), E>) -> Self {
        let crc = Crc::new();
        Self { put, crc }
    }

    pub(crate) fn head<A: Settings>(&mut self, head: &Head) -> Result<(), E> {
        let (at, [seed, more]) = (head.at.as_nanos(), head.seed);
        self.bytes(&MAGIC)?;
        self.numbers(&[VERSION, head.kind, at, head.time_of_day])?;
        self.numbers(&[seed, more, head.known_hash])?;
        self.name(name_of::<A>())
    }

    /// Writes all plans, which have names unless these are empty.
    pub(crate) fn plans(
        &mut self,
        plans: &[Parameters],
        names: &[impl AsRef<[u8]>],
    ) -> Result<(), E> {
        let kind = if names.is_empty() { PLANS } else { NAMED_PLANS };
        self.numbers(&[kind, plans.len() as u64])?;
        for (index, parameters) in plans.iter().enumerate() {
            self.parameters(parameters)?;
            if let Some(name) = names.get(index) {
                self.name(name.as_ref())?;
            }
        }
        Ok(())
    }

    /// Writes up to [`MAX_KEYS`](super::MAX_KEYS) keys of the plans that were written last, or keys
    /// that have an algorithm of their own.
    pub(crate) fn keys(&mut self, keys: &[Record], own: Option<&Parameters>) -> Result<(), E> {
        let kind = if own.is_some() { OVERRIDDEN_KEYS } else { KEYS };
        let bits = keys.iter().rev().map(|key| u64::from(key.is_protected));
        let protected = bits.fold(0, |all, bit| all << 1 | bit);
        self.numbers(&[kind, keys.len() as u64, protected])?;
        if let Some(parameters) = own {
            self.parameters(parameters)?;
        }
        for key in keys {
            self.numbers(&key.to_numbers())?;
        }
        Ok(())
    }

    pub(crate) fn end(mut self, horizon: Tick) -> Result<(), E> {
        self.numbers(&[END, horizon.as_nanos()])?;
        self.numbers(&[self.crc.sum()])
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), E> {
        self.crc.add(bytes);
        (self.put)(bytes)
    }

    fn numbers(&mut self, numbers: &[u64]) -> Result<(), E> {
        for number in numbers {
            self.bytes(&number.to_le_bytes())?;
        }
        Ok(())
    }

    fn name(&mut self, name: &[u8]) -> Result<(), E> {
        let unused = [0; MAX_NAME];
        self.numbers(&[name.len() as u64])?;
        self.bytes(name)?;
        self.bytes(unused.get(name.len()..).unwrap_or_default())
    }

    fn parameters(&mut self, parameters: &Parameters) -> Result<(), E> {
        self.numbers(&[parameters.numbers().len() as u64])?;
        self.numbers(parameters.padded())
    }
}
