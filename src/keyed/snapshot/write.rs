//! Writes a snapshot while other threads decide.

use std::io::{self, BufWriter, Write};
use std::vec::Vec;

use super::known_hash;
use crate::algorithm::{Algorithm, Settings};
use crate::clock::Tick;
use crate::keyed::KeyHasher;
use crate::keyed::admit::Keys;
use crate::keyed::find::{SlotIndex, SlotState};
use crate::snapshot::elapsed::time_of_day;
use crate::snapshot::parameters::Parameters;
use crate::snapshot::write::Writer;
use crate::snapshot::{Head, MAX_KEYS, Record, SEEDED_TABLE, TABLE};

/// How many bytes go to the caller's writer at once.
const BUFFER: usize = 1 << 16;

/// A snapshot that is being written.
struct Snapshot<'s, A> {
    table: &'s Keys<A>,
    output: Writer<'s, io::Error>,
    now: Tick,
    /// The version of the plans that were written last.
    version: Option<u64>,
    /// Keys of these plans that are still to be written.
    keys: Vec<Record>,
    written: u64,
}

/// Writes all keys that are not idle at this tick, and returns their number.
pub(super) fn write<A: Algorithm + Settings, S: KeyHasher>(
    (table, hasher): (&Keys<A>, &S),
    writer: &mut dyn Write,
    now: Tick,
) -> io::Result<u64> {
    let mut writer = BufWriter::with_capacity(BUFFER, writer);
    let mut put = |bytes: &[u8]| writer.write_all(bytes);
    let seed = hasher.seed();
    let head = Head {
        kind: if seed.is_some() { SEEDED_TABLE } else { TABLE },
        at: now,
        time_of_day: time_of_day(),
        seed: seed.unwrap_or_default(),
        known_hash: known_hash(hasher),
    };
    let snapshot = Snapshot {
        table,
        output: Writer::new(&mut put),
        now,
        version: None,
        keys: Vec::with_capacity(MAX_KEYS),
        written: 0,
    };
    let written = snapshot.write(&head);
    let written = written.and_then(|written| writer.flush().map(|()| written));
    // After an error nothing more is written.
    let _ = writer.into_parts();
    written
}

impl<A: Algorithm + Settings> Snapshot<'_, A> {
    fn write(mut self, head: &Head) -> io::Result<u64> {
        self.output.head::<A>(head)?;
        let _ = self.plans()?;
        let slots = self.table.table();
        for (at, mut held) in slots.all() {
            while held.is_live() && !self.key(at, held)? {
                held = slots.load(at);
            }
        }
        self.flush(None)?;
        self.output.end(self.table.horizon())?;
        Ok(self.written)
    }

    /// Returns the current version of the plans. If it has changed, writes the keys of the old one,
    /// and then the plans.
    fn plans(&mut self) -> io::Result<u64> {
        let plans = self.table.plans();
        loop {
            let version = plans.version();
            if self.version == Some(version) {
                return Ok(version);
            }
            let each = 0..plans.count() as u8;
            let each = each.map(|plan| plans.with_plan(plan, version, Parameters::of));
            // If this version is outdated, a later one exists.
            if let Some(all) = each.collect::<Option<Vec<_>>>() {
                self.flush(None)?;
                self.output.plans(&all, plans.names())?;
                self.version = Some(version);
            }
        }
    }

    /// Writes the key of a slot, unless it is idle. Returns `false` if the slot or its algorithm
    /// has changed meanwhile.
    fn key(&mut self, at: SlotIndex, held: SlotState) -> io::Result<bool> {
        let (slots, plans, now) = (self.table.table(), self.table.plans(), self.now);
        let hash = || Some(slots.probe_seq_in(at, held)?.hash());
        let asked = if plans.is_override(held) {
            let ask = |_, of: &A| (held, of.is_idle(held.word(), now), Some(Parameters::of(of)));
            let Some(hash) = hash() else {
                // No key can have this slot.
                return Ok(true);
            };
            let asked = plans.with_override(held, hash, ask);
            // The override was looked up after the slot was read. If the slot has changed since,
            // the number's bits may be those of a later override.
            asked.filter(|_| slots.load(at) == held)
        } else {
            // Read after the slot, so the slot's version is no later than this one.
            let version = self.plans()?;
            plans.migrated(held, version).and_then(|held| {
                let ask = |plan: &A| (held, plan.is_idle(held.word(), now), None);
                plans.with_plan(held.plan(), version, ask)
            })
        };
        let Some((held, is_idle, overridden)) = asked else {
            return Ok(false);
        };
        let Some(hash) = hash().filter(|_| !is_idle) else {
            return Ok(true);
        };
        if overridden.is_some() {
            self.flush(None)?;
        }
        self.keys.push(Record {
            hash,
            plan: held.plan(),
            is_banned: held.is_banned(),
            is_protected: held.is_protected(),
            word: held.word(),
        });
        if overridden.is_some() || self.keys.len() == MAX_KEYS {
            self.flush(overridden.as_ref())?;
        }
        Ok(true)
    }

    /// Writes the keys that are still to be written. All have this override, if one
    /// is given.
    fn flush(&mut self, overridden: Option<&Parameters>) -> io::Result<()> {
        if !self.keys.is_empty() {
            self.output.keys(&self.keys, overridden)?;
            self.written = self.written.saturating_add(self.keys.len() as u64);
            self.keys.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::TokenBucket;
    use crate::keyed::Keyed;
    use crate::keyed::find::VERSIONS;
    use crate::quota::Quota;

    #[test]
    fn a_word_is_written_with_its_own_parameters_though_its_number_comes_again() {
        let now = Tick::from_nanos(1_000_000_000);
        let bucket = |burst| TokenBucket::new(Quota::per_hour(burst)).expect("a bucket");
        let table = Keyed::new(bucket(5), 1).and_then(|table| table.with_overrides(2));
        let table = table.expect("there is memory");
        let set = |key, burst| table.key(key).at(now).set_override(bucket(burst));
        set("key", 1000).expect("a place");
        assert!(table.key("key").at(now).try_acquire_n(999).is_ok());
        let live = || {
            let mut all = table.keys.table().all();
            all.find(|(_, held)| held.is_live()).expect("the key")
        };
        let (at, late) = live();
        for _ in 2..VERSIONS {
            set("other", 9).expect("a place");
        }
        set("key", 100).expect("a place");
        set("key", 10).expect("a place");
        assert_eq!(live().1.label(), late.label());

        let mut put = |_: &[u8]| Ok(());
        let mut snapshot = Snapshot {
            table: &table.keys,
            output: Writer::new(&mut put),
            now,
            version: None,
            keys: Vec::new(),
            written: 0,
        };
        let mut is_done = |held| snapshot.key(at, held).expect("no error");
        assert!(!is_done(late), "the old word with the new parameters");
        assert!(is_done(live().1));
    }
}
