//! A limit that several processes share: its word lives in a mapped file.
//!
//! ```text
//! cargo run --example mapped_file & cargo run --example mapped_file
//! ```
//!
//! Each run takes up to ten permits. All runs together get 30 at once and 12 a minute. A run that
//! is killed holds no lock and loses only the permits that it was granted. Delete the file to start
//! with a full bucket.
//!
//! A limiter needs only an [`AtomicWord`] from its memory, so a limiter on the mapped file has all
//! methods.

#![allow(
    clippy::disallowed_types,
    reason = "memory of its own, which no model runs on"
)]

use std::error::Error;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use memmap2::MmapRaw;
use tollgate::clock::Clock;
use tollgate::store::AtomicWord;
use tollgate::{Limiter, Quota, Tick, TokenBucket};

/// The first eight bytes of a file. In a new file they are zeros, which is a full bucket.
struct MappedWord(MmapRaw);

impl MappedWord {
    fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path)?;
        let size = size_of::<u64>() as u64;
        if file.metadata()?.len() < size {
            file.set_len(size)?;
        }
        MmapRaw::map_raw(&file).map(Self)
    }

    #[allow(unsafe_code, reason = "memory that other processes write")]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: The mapping begins at a page, so it is aligned. It has eight bytes and lives as
        // long as `self`. Every process accesses the bytes by atomic operations only, and none
        // makes the file shorter.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast()) }
    }
}

/// Relaxed, since the word publishes no other memory.
impl AtomicWord for MappedWord {
    fn load(&self) -> u64 {
        self.word().load(Ordering::Relaxed)
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        let order = Ordering::Relaxed;
        let exchanged = self.word().compare_exchange_weak(word, next, order, order);
        exchanged.map(drop)
    }

    fn swap(&self, next: u64) -> u64 {
        self.word().swap(next, Ordering::Relaxed)
    }
}

/// A clock that all processes agree on: the time of day, counted from 2026-01-01.
struct TimeOfDay;

impl Clock for TimeOfDay {
    fn now(&self) -> Tick {
        let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        let since = SystemTime::now().duration_since(origin).unwrap_or_default();
        Tick::ZERO.saturating_add(since)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join("tollgate-mapped-file-example");
    let bucket = TokenBucket::new(Quota::per_minute(12).burst(30))?;
    let limiter = Limiter::with_cell(bucket, TimeOfDay, MappedWord::open(&path)?);

    let granted = (0..10).filter(|_| limiter.try_acquire().is_ok()).count();
    println!("{granted} of 10 requests, {} left", limiter.available());
    match limiter.reserve_within(1, Duration::ZERO) {
        Ok(reservation) => println!("reserved one more, due at {:?}", reservation.due()),
        Err(denied) => println!("{denied}"),
    }
    println!("the word is in {}", path.display());

    // Another mapping of the file is the same limit. (Another process may take permits in between.)
    let other = Limiter::with_cell(bucket, TimeOfDay, MappedWord::open(&path)?);
    let now = TimeOfDay.now();
    let available = limiter.at(now).available();
    assert!(other.at(now).available() <= available);
    Ok(())
}
