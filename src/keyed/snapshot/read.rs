//! Reads a snapshot. Every number is checked before it is used.

use std::io::Read;
use std::string::String;
use std::vec::Vec;

use super::numbers::Input;
use super::{CHUNK, END, KEY_BYTES, KEYS, MAGIC, NAMES, OWN_KEY, PLANS, PROTECTED_KEYS};
use super::{ProtectedBits, Record, probe};
use super::{VERSION, VERSION_OF_NAMES, VERSION_OF_OVERRIDES};
use crate::algorithm::Settings;
use crate::clock::Tick;
use crate::keyed::KeyHasher;
use crate::keyed::overrides::OWN;
use crate::keyed::plans::MAX_PLAN_NAME;
use crate::keyed::slot::PLANS as MOST_PLANS;
use crate::snapshot::error::RestoreError;
use crate::snapshot::parameters::{MAX_NAME, Parameters, name_of};

/// The beginning of a snapshot.
pub(super) struct Head<S> {
    /// The hasher with the snapshot's seed, or `None` to keep the present one.
    pub(super) hasher: Option<S>,
    pub(super) at: Tick,
    pub(super) time_of_day: u64,
}

/// A block of a snapshot.
pub(super) enum Block {
    Plans(Vec<Parameters>),
    /// Keys, which [`Reading::keys`] returns.
    Keys,
    /// A key that has an algorithm of its own, with these parameters.
    OwnKey(Record, Parameters),
    End {
        horizon: Tick,
    },
}

/// A snapshot that is being read.
pub(super) struct Reading<'r> {
    pub(super) input: Input<'r>,
    version: u64,
    /// The names of the plans. Empty if they have none.
    names: Vec<String>,
    /// The number of plans, or 0 before they are read.
    plans: u64,
    keys: u64,
    chunk: Vec<u8>,
    protected: ProtectedBits,
}

impl<'r> Reading<'r> {
    pub(super) fn new(reader: &'r mut dyn Read) -> Self {
        Self {
            input: Input::new(reader),
            version: 0,
            names: Vec::new(),
            plans: 0,
            keys: 0,
            chunk: Vec::new(),
            protected: ProtectedBits::NONE,
        }
    }

    /// Reads the beginning, and checks it against the algorithm and the hasher.
    pub(super) fn head<A: Settings, S: KeyHasher>(
        &mut self,
        present: &S,
    ) -> Result<Head<S>, RestoreError> {
        let mut magic = [0; MAGIC.len()];
        self.input.bytes(&mut magic)?;
        if magic != MAGIC {
            return Err(RestoreError::NotASnapshot);
        }
        let (found, known) = (self.input.number()?, VERSION);
        if found == 0 || found > known {
            return Err(RestoreError::Version { found, known });
        }
        self.version = found;
        let at = Tick::from_nanos(self.input.number()?);
        let time_of_day = self.input.number()?;
        let has_seed = self
            .input
            .number_within("whether there is a seed", (0, 1))?;
        let seed = [self.input.number()?, self.input.number()?];
        let known_hash = self.input.number()?;
        self.name::<A>()?;
        let hasher = (has_seed == 1).then(|| present.reseeded(seed)).flatten();
        if probe(hasher.as_ref().unwrap_or(present)) != known_hash {
            return Err(RestoreError::OtherHasher);
        }
        Ok(Head {
            hasher,
            at,
            time_of_day,
        })
    }

    fn name<A: Settings>(&mut self) -> Result<(), RestoreError> {
        let range = (0, MAX_NAME as u64);
        let found = self.input.name("length of the name", range)?;
        match found.as_bytes() == name_of::<A>() {
            true => Ok(()),
            false => Err(RestoreError::other_algorithm(found.as_bytes(), A::NAME)),
        }
    }

    /// Returns the names of the plans, or an empty slice if they have none.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    fn read_names(&mut self) -> Result<(), RestoreError> {
        let count = self
            .input
            .number_within("number of plans", (1, MOST_PLANS))?;
        for _ in 0..count {
            let range = (1, MAX_PLAN_NAME as u64);
            let name = self.input.name("length of a plan's name", range)?;
            self.names.push(name);
        }
        Ok(())
    }

    /// Reads the next block. If it has keys, [`keys`](Self::keys) returns them.
    pub(super) fn block(&mut self) -> Result<Block, RestoreError> {
        // The first block must have the plans.
        let range = match self.plans {
            0 => (PLANS, PLANS),
            _ => (END, PROTECTED_KEYS),
        };
        let mut kind = self.input.number()?;
        if kind == NAMES && self.plans == 0 && self.version >= VERSION_OF_NAMES {
            self.read_names()?;
            kind = self.input.number()?;
        }
        if kind == OWN_KEY && self.plans > 0 && self.version >= VERSION_OF_OVERRIDES {
            return self.own_key();
        }
        match RestoreError::unless_within("kind of the block", kind, range)? {
            PLANS => Ok(Block::Plans(self.plans()?)),
            kind @ (KEYS | PROTECTED_KEYS) => {
                self.read_keys(kind == PROTECTED_KEYS)?;
                Ok(Block::Keys)
            }
            _ => self.end(),
        }
    }

    fn plans(&mut self) -> Result<Vec<Parameters>, RestoreError> {
        let range = match self.plans {
            0 if self.names.is_empty() => (1, MOST_PLANS),
            0 => (self.names.len() as u64, self.names.len() as u64),
            // The number of plans does not change.
            count => (count, count),
        };
        self.plans = self.input.number_within("number of plans", range)?;
        let mut plans = Vec::new();
        for _ in 0..self.plans {
            plans.push(self.input.parameters()?);
        }
        Ok(plans)
    }

    fn own_key(&mut self) -> Result<Block, RestoreError> {
        let numbers = [self.input.number()?, self.input.number()?];
        let is_protected = self.input.number_within("protected keys", (0, 1))? == 1;
        let record = Record::of_numbers(numbers, is_protected);
        let own = OWN.into();
        check(&record, (own, own))?;
        self.keys = self.keys.saturating_add(1);
        Ok(Block::OwnKey(record, self.input.parameters()?))
    }

    fn read_keys(&mut self, has_protected: bool) -> Result<(), RestoreError> {
        let most = CHUNK as u64;
        let count = self.input.number_within("number of keys", (1, most))?;
        self.keys = self.keys.saturating_add(count);
        self.protected = ProtectedBits::NONE;
        let numbers = count.div_ceil(64) * u64::from(has_protected);
        for (index, bits) in (1..=numbers).zip(&mut self.protected.0) {
            // Bits beyond the last key must be 0.
            let unused = (64 * index).saturating_sub(count);
            let field = "protected keys";
            *bits = self.input.number_within(field, (0, u64::MAX >> unused))?;
        }
        self.chunk.resize(count as usize * KEY_BYTES, 0);
        self.input.bytes(&mut self.chunk)
    }

    /// Iterates over the keys of the last block.
    pub(super) fn keys(&self) -> impl Iterator<Item = Result<Record, RestoreError>> + '_ {
        let most = self.plans.saturating_sub(1);
        let keys = self.chunk.chunks_exact(KEY_BYTES).enumerate();
        keys.map(move |(index, key)| {
            let (label, word) = key.split_at(KEY_BYTES / 2);
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            let numbers = [number(label), number(word)];
            let record = Record::of_numbers(numbers, self.protected.has(index));
            check(&record, (0, most))?;
            Ok(record)
        })
    }

    fn end(&mut self) -> Result<Block, RestoreError> {
        let horizon = Tick::from_nanos(self.input.number()?);
        let keys = (self.keys, self.keys);
        self.input.number_within("number of keys in all", keys)?;
        let computed = self.input.sum();
        let found = self.input.number()?;
        match computed == found {
            true => Ok(Block::End { horizon }),
            false => Err(RestoreError::Checksum { computed, found }),
        }
    }
}

/// Checks the numbers of a key, whose plan must be in this range.
fn check(record: &Record, plans: (u64, u64)) -> Result<(), RestoreError> {
    RestoreError::unless_within("plan of a key", record.plan.into(), plans)?;
    // No key has the word of all ones.
    RestoreError::unless_within("word of a key", record.word, (0, u64::MAX - 1))?;
    Ok(())
}
