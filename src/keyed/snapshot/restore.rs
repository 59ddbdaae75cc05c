//! Restores a snapshot into a table.

use core::time::Duration;
use std::io;
use std::vec::Vec;

use super::fill::Filling;
use super::{Restored, known_hash};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::clock::Tick;
use crate::keyed::KeyHasher;
use crate::keyed::core::Core;
use crate::keyed::stats::Event;
use crate::keyed::table::Table;
use crate::snapshot::elapsed::Moved;
use crate::snapshot::error::RestoreError;
use crate::snapshot::read::{Reader, Source};
use crate::snapshot::{Head, SEEDED_TABLE};
use crate::sync::Ordering;

/// The bytes of a reader. Nothing beyond those that are taken is read.
struct Stream<'r> {
    reader: &'r mut dyn io::Read,
    buffer: Vec<u8>,
}

impl Source for Stream<'_> {
    fn take(&mut self, length: usize) -> Result<&[u8], RestoreError> {
        self.buffer.resize(length, 0);
        self.reader.read_exact(&mut self.buffer)?;
        Ok(&self.buffer)
    }
}

impl<A: ChangeQuota + Rebase + Settings> Core<A> {
    /// Replaces the content of the table by a snapshot. `elapsed` computes its age at this tick
    /// from its time of day. `is_whole` says whether more bytes after it are an error. On error
    /// nothing changes.
    pub(super) fn restore<S: KeyHasher>(
        &mut self,
        hasher: &mut S,
        reader: &mut dyn io::Read,
        (now, elapsed): (Tick, &dyn Fn(u64) -> Duration),
        is_whole: bool,
    ) -> Result<Restored, RestoreError> {
        let buffer = Vec::new();
        let mut stream = Stream { reader, buffer };
        let mut reader = Reader::new(&mut stream);
        let head = reader.head::<A>(true)?;
        let next_hasher = self.hasher_of(&head, hasher)?;
        let elapsed = elapsed(head.time_of_day);
        let from = head.at.saturating_add(elapsed);
        let mut filling = Filling {
            table: Table::like(&self.table).ok_or(RestoreError::NoMemory)?,
            plans: &self.plans,
            moved: Moved { from, to: now },
            continued: Vec::new(),
            restored: Restored {
                elapsed,
                ..Restored::default()
            },
            no_room_protected: 0,
        };
        let horizon = reader.blocks(&mut filling)?;
        if is_whole {
            reader.is_over()?;
        }
        let mut restored = filling.restored;
        let reports = filling.continued.into_iter().map(|plan| plan.report);
        restored.plans = reports.collect();
        let (keys, no_room) = (restored.keys, restored.no_room);
        let protected = filling.no_room_protected;
        let count = |event, n| self.events.count_many(event, n);
        count(Event::Removed, self.events.tracked());
        count(Event::Inserted, keys.saturating_add(no_room));
        count(Event::Evicted, no_room.saturating_sub(protected));
        count(Event::EvictedProtected, protected);
        self.table = filling.table;
        // A key that is not in the snapshot was idle at `from`, or became idle at the horizon or
        // earlier. A new key starts at the later of these ticks, converted to the table's clock.
        let horizon = now.saturating_add(horizon.saturating_since(from));
        // ORDERING: Relaxed. No other thread uses the table. Sharing it afterwards synchronizes
        // with this.
        let _ = self
            .horizon
            .fetch_max(horizon.as_nanos(), Ordering::Relaxed);
        if let Some(next) = next_hasher {
            *hasher = next;
        }
        Ok(restored)
    }

    /// Returns the hasher with the snapshot's seed, or `None` to keep the present one.
    fn hasher_of<S: KeyHasher>(&self, head: &Head, present: &S) -> Result<Option<S>, RestoreError> {
        let is_seeded = head.kind == SEEDED_TABLE;
        let next = is_seeded.then(|| present.reseeded(head.seed)).flatten();
        if known_hash(next.as_ref().unwrap_or(present)) != head.known_hash {
            return Err(RestoreError::OtherHasher);
        }
        let overrides = self.plans.overrides_in_use();
        match overrides > 0 && known_hash(present) != head.known_hash {
            true => Err(RestoreError::OverridesOfAnotherSeed { overrides }),
            false => Ok(next),
        }
    }
}
