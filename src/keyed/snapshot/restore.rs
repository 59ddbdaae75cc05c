//! Restores a snapshot into a table.

use core::time::Duration;
use std::io;
use std::vec::Vec;

use super::fill::Filling;
use super::{Restored, known_hash};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::clock::Tick;
use crate::keyed::KeyHasher;
use crate::keyed::admit::Keys;
use crate::snapshot::elapsed::Moved;
use crate::snapshot::error::RestoreError;
use crate::snapshot::read::{Reader, Source};
use crate::snapshot::{Head, SEEDED_TABLE};

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

/// Replaces the keys of a table by a snapshot. `elapsed` computes its age at this tick from its
/// time of day. `is_whole` says whether more bytes after it are an error. On error nothing changes.
pub(super) fn restore<A: ChangeQuota + Rebase + Settings, S: KeyHasher>(
    (keys, hasher): (&mut Keys<A>, &mut S),
    reader: &mut dyn io::Read,
    (now, elapsed): (Tick, &dyn Fn(u64) -> Duration),
    is_whole: bool,
) -> Result<Restored, RestoreError> {
    let buffer = Vec::new();
    let mut stream = Stream { reader, buffer };
    let mut reader = Reader::new(&mut stream);
    let head = reader.head::<A>(true)?;
    let next_hasher = hasher_of(&head, hasher, keys.plans().overrides_in_use())?;
    let elapsed = elapsed(head.time_of_day);
    let from = head.at.saturating_add(elapsed);
    let mut filling = Filling {
        table: keys.table().like().ok_or(RestoreError::NoMemory)?,
        plans: keys.plans(),
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
    let protected = filling.no_room_protected;
    let evicted = [protected, restored.no_room.saturating_sub(protected)];
    // A key that is not in the snapshot was idle at `from`, or became idle at the horizon or
    // earlier. A new key starts at the later of these ticks, converted to the table's clock.
    let horizon = now.saturating_add(horizon.saturating_since(from));
    let table = filling.table;
    keys.replace(table, restored.keys, evicted, horizon);
    if let Some(next) = next_hasher {
        *hasher = next;
    }
    Ok(restored)
}

/// Returns the hasher with the snapshot's seed, or `None` to keep the present one, by which this
/// number of overrides was set.
fn hasher_of<S: KeyHasher>(
    head: &Head,
    present: &S,
    overrides: usize,
) -> Result<Option<S>, RestoreError> {
    let is_seeded = head.kind == SEEDED_TABLE;
    let next = is_seeded.then(|| present.reseeded(head.seed)).flatten();
    if known_hash(next.as_ref().unwrap_or(present)) != head.known_hash {
        return Err(RestoreError::OtherHasher);
    }
    match overrides > 0 && known_hash(present) != head.known_hash {
        true => Err(RestoreError::OverridesOfAnotherSeed { overrides }),
        false => Ok(next),
    }
}
