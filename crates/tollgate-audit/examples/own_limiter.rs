//! Audits a limiter that is not tollgate's. A counter for each second should grant at most ten
//! permits a second, and grants twenty around the beginning of a second.
//!
//! ```text
//! cargo run -p tollgate-audit --example own_limiter
//! ```

use std::error::Error;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tollgate::{Quota, Tick};
use tollgate_audit::{Audit, Bound, Log};

const SECOND: Duration = Duration::from_secs(1);

/// Counts the permits of the current second.
struct Counter(Mutex<(u64, u64)>);

impl Counter {
    fn try_acquire(&self, now: Tick) -> bool {
        let second = now.as_nanos() / SECOND.as_nanos() as u64;
        let mut counted = self.0.lock().expect("no thread panics");
        if counted.0 < second {
            *counted = (second, 0);
        }
        let is_granted = counted.0 == second && counted.1 < 10;
        counted.1 += u64::from(is_granted);
        is_granted
    }
}

/// Four threads ask every 20 ms, for three seconds that begin in the middle of one.
fn recorded() -> Audit {
    let counter = Counter(Mutex::new((0, 0)));
    let log = |thread: u32| {
        let mut log = Log::new();
        for call in 0..150 {
            let now =
                Tick::ZERO.saturating_add(SECOND / 2 + SECOND / 50 * call + SECOND / 999 * thread);
            if counter.try_acquire(now) {
                log.grant(now, 1);
            }
        }
        log
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| scope.spawn(move || log(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let (quota, audit) = (Quota::per_second(10), recorded());
    // What the counter keeps: ten in each second of the clock.
    let summary = audit.check(&Bound::of_windows(quota)?)?;
    println!(
        "{} permits, at most 10 in each second of the clock",
        summary.granted
    );
    assert_eq!(summary.granted, 40);
    // What its users expect: ten in every second, wherever it begins.
    let excess = audit.check(&Bound::of_log(quota)?).unwrap_err();
    println!("in every second: {excess}");
    assert_eq!((excess.granted, excess.allowed), (11, 10));
    Ok(())
}
