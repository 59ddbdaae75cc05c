//! Writes a snapshot while other threads decide.

use core::hash::{BuildHasher, Hash};
use std::io::{self, Write};
use std::sync::Arc;
use std::vec::Vec;

use super::{ALGORITHM, BANNED, END, KEY, MAGIC, MAX_KEY, NUMBER, PROTECTED, SnapshotKey, VERSION};
use crate::algorithm::{Algorithm, Settings};
use crate::clock::Tick;
use crate::keyed_map::KeyedMap;
use crate::keyed_map::latest::SharedAlgorithm;
use crate::keyed_map::moving::EntryNow;
use crate::snapshot::numbers::Output;
use crate::snapshot::parameters::{Parameters, name_of};
use crate::sync::{Ordering, fence};

/// Writes all keys that are not idle at this tick, and returns how many.
pub(super) fn write<K, A, C, S>(
    map: &KeyedMap<K, A, C, S>,
    writer: &mut dyn Write,
    now: Tick,
    time_of_day: u64,
) -> io::Result<u64>
where
    K: Hash + Eq + SnapshotKey,
    A: Algorithm + Settings,
    S: BuildHasher,
{
    let mut output = Output::new(writer);
    output.bytes(&MAGIC)?;
    output.numbers(&[VERSION, now.as_nanos(), time_of_day])?;
    let name = name_of::<A>();
    output.numbers(&[name.len() as u64])?;
    output.bytes(name)?;

    // The writer may be slow or block. So hold no guard meanwhile: it would keep the memory of keys
    // that leave.
    let guard = map.entries.guard();
    let mut tickets = Vec::with_capacity(map.len());
    tickets.extend(map.entries.all(&guard).map(|found| found.ticket()));
    drop(guard);
    let mut algorithm: Option<SharedAlgorithm<A>> = None;
    let (mut bytes, mut written, mut moved) = (Vec::new(), 0_u64, Tick::ZERO);
    for ticket in tickets {
        let guard = map.entries.guard();
        let Some(found) = map.entries.get(&ticket, &guard) else {
            continue;
        };
        let Some(entry) = map.entry_now(ticket, &guard) else {
            continue;
        };
        if (entry.algorithm).is_idle(entry.word, now.max(entry.since)) {
            // The word of a moved entry says nothing about the time before the move: the key may
            // have spent its burst then. So the horizon must not be earlier.
            if entry.was_moved {
                moved = moved.max(entry.since);
            }
            continue;
        }
        bytes.clear();
        found.key().write_to(&mut bytes);
        drop(guard);
        if !(algorithm.as_ref()).is_some_and(|last| Arc::ptr_eq(last, &entry.algorithm)) {
            let parameters = Parameters::of(&**entry.algorithm);
            output.numbers(&[ALGORITHM, parameters.numbers().len() as u64])?;
            output.numbers(parameters.numbers())?;
            algorithm = Some(Arc::clone(&entry.algorithm));
        }
        if bytes.len() as u64 > MAX_KEY {
            let error = "a key's bytes must be fewer than 4 GiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let label = label(ticket.id, &entry);
        output.numbers(&[KEY, label, entry.word, bytes.len() as u64])?;
        output.bytes(&bytes)?;
        written = written.saturating_add(1);
    }
    // ORDERING: SeqCst. It publishes nothing, and pairs with the fence of `MapEntry::retire`: if a
    // key left during the walk, the horizon that was raised before is read here.
    // Model: keyed_map::a_late_tick_gets_no_second_burst
    fence(Ordering::SeqCst);
    let horizon = map.horizon.tick().max(moved).as_nanos();
    output.numbers(&[END, horizon, written])?;
    output.end()?;
    Ok(written)
}

fn label<A>(number: u64, entry: &EntryNow<A>) -> u64 {
    let banned = if entry.is_banned { BANNED } else { 0 };
    let protected = if entry.is_protected { PROTECTED } else { 0 };
    number & NUMBER | banned | protected
}
