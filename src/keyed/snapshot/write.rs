//! Writes a snapshot while other threads decide.

use std::io::{self, Write};
use std::vec::Vec;

use super::numbers::Output;
use super::{CHUNK, END, KEY_BYTES, KEYS, MAGIC, NAMES, OWN_KEY, PLANS, PROTECTED_KEYS};
use super::{ProtectedBits, Record, probe};
use super::{VERSION, VERSION_OF_OVERRIDES};
use crate::algorithm::{Algorithm, Settings};
use crate::clock::Tick;
use crate::keyed::KeyHasher;
use crate::keyed::core::Core;
use crate::keyed::overrides::Overrides;
use crate::keyed::probe_seq::ProbeSeq;
use crate::keyed::slot::PLANS as MOST_PLANS;
use crate::keyed::slot::{SlotKind, SlotState};
use crate::keyed::table::SlotIndex;
use crate::snapshot::parameters::{Parameters, name_of};
use crate::sync::Ordering;

/// A version, and a plan's parameters in it.
type Known = (u64, Parameters);

/// A snapshot that is being written.
struct Snapshot<'s, A> {
    core: &'s Core<A>,
    output: Output<'s>,
    now: Tick,
    /// The plans as they were last written.
    plans: [Option<Known>; MOST_PLANS as usize],
    /// Keys of these plans that are still to be written.
    chunk: Vec<u8>,
    protected: ProtectedBits,
    written: u64,
}

/// Writes all keys that are not idle at this tick, and returns their number.
pub(super) fn write<A: Algorithm + Settings, S: KeyHasher>(
    (core, hasher): (&Core<A>, &S),
    writer: &mut dyn Write,
    now: Tick,
    time_of_day: u64,
) -> io::Result<u64> {
    let mut snapshot = Snapshot {
        core,
        output: Output::new(writer),
        now,
        plans: [None; MOST_PLANS as usize],
        chunk: Vec::with_capacity(CHUNK * KEY_BYTES),
        protected: ProtectedBits::NONE,
        written: 0,
    };
    snapshot.head(hasher, time_of_day)?;
    for bucket in 0..core.table.len() {
        for (at, held) in core.table.slots_of(bucket) {
            snapshot.key(at, held)?;
        }
    }
    snapshot.end()
}

impl<A: Algorithm + Settings> Snapshot<'_, A> {
    fn head<S: KeyHasher>(&mut self, hasher: &S, time_of_day: u64) -> io::Result<()> {
        let (now, seed) = (self.now.as_nanos(), hasher.seed());
        self.output.bytes(&MAGIC)?;
        let version = match self.core.plans.overrides() {
            Some(_) => VERSION,
            None => VERSION_OF_OVERRIDES - 1,
        };
        self.output.numbers(&[version, now, time_of_day])?;
        self.output.numbers(&[seed.is_some().into()])?;
        self.output.numbers(&seed.unwrap_or_default())?;
        let name = name_of::<A>();
        self.output.numbers(&[probe(hasher), name.len() as u64])?;
        self.output.bytes(name)?;
        self.write_names()?;
        for plan in 0..self.core.plans.count() {
            let _ = self.look_at(plan as u8);
        }
        self.write_plans()
    }

    /// Returns the current version of a plan, or `None` if the plan does not exist. If the version
    /// has changed, writes the keys of the old one, and then the plans.
    fn version_of(&mut self, index: u8) -> io::Result<Option<u64>> {
        match self.look_at(index) {
            Some((version, false)) => Ok(Some(version)),
            Some((version, true)) => {
                self.write_keys()?;
                self.write_plans()?;
                Ok(Some(version))
            }
            None => Ok(None),
        }
    }

    /// Returns the current version of a plan, and whether it has changed.
    fn look_at(&mut self, index: u8) -> Option<(u64, bool)> {
        self.core.plans.get(index)?;
        let known = self.plans.get_mut(usize::from(index))?;
        loop {
            let version = self.core.plans.version();
            if known.is_some_and(|(known, _)| known == version) {
                return Some((version, false));
            }
            // If this version is outdated, a later one exists.
            if let Some(parameters) = self.core.plans.with(index, version, Parameters::of) {
                *known = Some((version, parameters));
                return Some((version, true));
            }
        }
    }

    fn write_names(&mut self) -> io::Result<()> {
        let names = self.core.plans.names();
        if names.is_empty() {
            return Ok(());
        }
        self.output.numbers(&[NAMES, names.len() as u64])?;
        for name in names {
            self.output.numbers(&[name.len() as u64])?;
            self.output.bytes(name.as_bytes())?;
        }
        Ok(())
    }

    fn write_plans(&mut self) -> io::Result<()> {
        let count = self.core.plans.count();
        self.output.numbers(&[PLANS, count as u64])?;
        for (_, parameters) in self.plans.iter().take(count).flatten() {
            let numbers = parameters.numbers();
            self.output.numbers(&[numbers.len() as u64])?;
            self.output.numbers(numbers)?;
        }
        Ok(())
    }

    /// Writes the key of a slot, as it is now.
    fn key(&mut self, at: SlotIndex, mut held: SlotState) -> io::Result<()> {
        while held.is_live() {
            if let Some(overrides) = self.core.plans.overrides_of(held) {
                if self.own_key(overrides, at, held)? {
                    break;
                }
                held = self.core.table.load(at);
                continue;
            }
            // Read after the slot, so the slot's version is no later than this one.
            let Some(version) = self.version_of(held.plan())? else {
                break;
            };
            match self.migrated(held, version) {
                Some((_, true)) => break,
                Some((held, false)) => return self.keep(at, held),
                // The version, or the slot's, is outdated.
                None => held = self.core.table.load(at),
            }
        }
        Ok(())
    }

    /// Returns a live slot migrated to this version, and whether it is idle. Returns `None` if this
    /// version, or the slot's, is outdated.
    fn migrated(&self, held: SlotState, version: u64) -> Option<(SlotState, bool)> {
        let plans = &self.core.plans;
        let held = plans.migrated(held, version)?;
        plans.with(held.plan(), version, |algorithm| {
            (held, algorithm.is_idle(held.word, self.now))
        })
    }

    /// Writes a key with an override, unless it is idle. Returns `false` if its slot has changed.
    fn own_key(
        &mut self,
        overrides: &Overrides<A>,
        at: SlotIndex,
        held: SlotState,
    ) -> io::Result<bool> {
        let Some(record) = self.record(at, held) else {
            return Ok(true);
        };
        let number = overrides.number_in(held, record.hash);
        let now = self.now;
        let asked = number.and_then(|number| {
            overrides.with(record.hash, number, |own| {
                (Parameters::of(own), own.is_idle(held.word, now))
            })
        });
        let Some((parameters, is_idle)) = asked else {
            return Ok(false);
        };
        // The override was looked up after the slot was read. If the slot has changed since, the
        // number's bits may be those of a later override.
        if self.core.table.load(at) != held {
            return Ok(false);
        }
        if !is_idle {
            // The key may be in the chunk already. A reader takes the second record, so write the
            // chunk first.
            self.write_keys()?;
            let ([label, word], numbers) = (record.to_numbers(), parameters.numbers());
            let (protected, count) = (record.is_protected.into(), numbers.len() as u64);
            let head = [OWN_KEY, label, word, protected, count];
            self.output.numbers(&head)?;
            self.output.numbers(numbers)?;
            self.written = self.written.saturating_add(1);
        }
        Ok(true)
    }

    /// Returns the record of a live slot, or `None` if no key can have this slot.
    fn record(&self, at: SlotIndex, held: SlotState) -> Option<Record> {
        let buckets = self.core.table.buckets();
        let probe_seq = ProbeSeq::found(at.bucket, held.tag(), held.is_second(), buckets)?;
        Some(Record {
            hash: probe_seq.hash(),
            plan: held.plan(),
            is_banned: held.state() == SlotKind::Banned,
            is_protected: held.is_protected(),
            word: held.word,
        })
    }

    fn keep(&mut self, at: SlotIndex, held: SlotState) -> io::Result<()> {
        let Some(record) = self.record(at, held) else {
            return Ok(());
        };
        if record.is_protected {
            self.protected.add(self.chunk.len() / KEY_BYTES);
        }
        for number in record.to_numbers() {
            self.chunk.extend_from_slice(&number.to_le_bytes());
        }
        match self.chunk.len() < CHUNK * KEY_BYTES {
            true => Ok(()),
            false => self.write_keys(),
        }
    }

    /// Writes the keys that are still to be written.
    fn write_keys(&mut self) -> io::Result<()> {
        let count = self.chunk.len() / KEY_BYTES;
        if count == 0 {
            return Ok(());
        }
        match self.protected.is_none() {
            true => self.output.numbers(&[KEYS, count as u64])?,
            false => {
                self.output.numbers(&[PROTECTED_KEYS, count as u64])?;
                self.output.numbers(self.protected.numbers(count))?;
                self.protected = ProtectedBits::NONE;
            }
        }
        self.output.bytes(&self.chunk)?;
        self.chunk.clear();
        self.written = self.written.saturating_add(count as u64);
        Ok(())
    }

    fn end(mut self) -> io::Result<u64> {
        self.write_keys()?;
        // ORDERING: Relaxed. A thread that sees that a key has left synchronizes with its eviction,
        // which published the horizon.
        // Model: keyed_turnover::a_late_caller_gets_no_second_burst
        let horizon = self.core.horizon.load(Ordering::Relaxed);
        self.output.numbers(&[END, horizon, self.written])?;
        self.output.end()?;
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::TokenBucket;
    use crate::keyed::Keyed;
    use crate::keyed::slot::VERSIONS;
    use crate::quota::Quota;

    #[test]
    fn a_word_is_written_with_its_own_parameters_though_its_number_comes_again() {
        let now = Tick::from_nanos(1_000_000_000);
        let bucket = |burst| TokenBucket::new(Quota::per_hour(burst)).expect("a bucket");
        let table = Keyed::new(bucket(5), 1).and_then(|table| table.with_overrides(2));
        let table = table.expect("there is memory");
        let set = |key, burst| table.key(key).at(now).set_algorithm(bucket(burst));
        set("key", 1000).expect("a place");
        assert!(table.key("key").at(now).try_acquire_n(999).is_ok());
        let live = || {
            let mut all = table.core.table.all();
            all.find(|(_, held)| held.is_live()).expect("the key")
        };
        let (at, late) = live();
        for _ in 2..VERSIONS {
            set("other", 9).expect("a place");
        }
        set("key", 100).expect("a place");
        set("key", 10).expect("a place");
        assert_eq!(live().1.label(), late.label());

        let overrides = table.core.plans.overrides().expect("some");
        let mut bytes = Vec::new();
        let mut snapshot = Snapshot {
            core: &table.core,
            output: Output::new(&mut bytes),
            now,
            plans: [None; MOST_PLANS as usize],
            chunk: Vec::new(),
            protected: ProtectedBits::NONE,
            written: 0,
        };
        let is_done = snapshot
            .own_key(overrides, at, late)
            .expect("there is memory");
        assert!(!is_done, "the old word with the new parameters");
        let is_done = snapshot.own_key(overrides, at, live().1);
        assert!(is_done.expect("there is memory"));
    }
}
