//! Writes and reads the numbers and bytes of a snapshot, with a checksum.

use std::io::{self, Read, Write};
use std::string::String;

use crate::algorithm::MAX_SETTINGS;
use crate::snapshot::crc::Crc;
use crate::snapshot::error::RestoreError;
use crate::snapshot::parameters::Parameters;

/// A writer of numbers, which adds them to the checksum.
pub(super) struct Output<'w> {
    writer: &'w mut dyn Write,
    crc: Crc,
}

impl<'w> Output<'w> {
    pub(super) fn new(writer: &'w mut dyn Write) -> Self {
        let crc = Crc::new();
        Self { writer, crc }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.add(bytes);
        self.writer.write_all(bytes)
    }

    pub(super) fn numbers(&mut self, numbers: &[u64]) -> io::Result<()> {
        for number in numbers {
            self.bytes(&number.to_le_bytes())?;
        }
        Ok(())
    }

    /// Writes the checksum of everything written before.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.numbers(&[self.crc.sum()])?;
        self.writer.flush()
    }
}

/// A reader of numbers, which adds them to the checksum. It reads nothing beyond the snapshot.
pub(super) struct Input<'r> {
    reader: &'r mut dyn Read,
    crc: Crc,
}

impl<'r> Input<'r> {
    pub(super) fn new(reader: &'r mut dyn Read) -> Self {
        let crc = Crc::new();
        Self { reader, crc }
    }

    pub(super) fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), RestoreError> {
        self.reader.read_exact(bytes)?;
        self.crc.add(bytes);
        Ok(())
    }

    pub(super) fn number(&mut self) -> Result<u64, RestoreError> {
        let mut bytes = [0; 8];
        self.bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn number_within(
        &mut self,
        field: &'static str,
        range: (u64, u64),
    ) -> Result<u64, RestoreError> {
        RestoreError::unless_within(field, self.number()?, range)
    }

    /// Reads a name, whose length comes first and must be in this range.
    pub(super) fn name(
        &mut self,
        field: &'static str,
        range: (u64, u64),
    ) -> Result<String, RestoreError> {
        let length = self.number_within(field, range)?;
        let mut name = std::vec![0; length as usize];
        self.bytes(&mut name)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Reads the parameters of an algorithm.
    pub(super) fn parameters(&mut self) -> Result<Parameters, RestoreError> {
        let (field, most) = ("number of parameters", MAX_SETTINGS as u64);
        let count = self.number_within(field, (0, most))?;
        let mut parameters = Parameters::NONE;
        for _ in 0..count {
            parameters.push(self.number()?);
        }
        Ok(parameters)
    }

    /// Returns the checksum of everything read until now.
    pub(super) const fn sum(&self) -> u64 {
        self.crc.sum()
    }

    /// Returns an error if more bytes follow.
    pub(super) fn is_over(&mut self) -> Result<(), RestoreError> {
        match self.reader.read_exact(&mut [0]) {
            Ok(()) => Err(RestoreError::TooLong),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(RestoreError::Io(error)),
        }
    }
}
