//! Any bytes, and a snapshot of a limiter that is changed: an error that changes nothing, or a
//! limiter that decides, and whose own snapshot is restored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, Limiter};
use tollgate_fuzz::{ALGORITHMS, NOW, PAUSE, changed, decides, one_of};

/// A limiter that was used.
fn used(algorithm: AnyAlgorithm) -> Limiter<AnyAlgorithm, NoClock> {
    let limiter = Limiter::unstarted(algorithm, NoClock);
    let _ = limiter.at(NOW).take_up_to(3);
    limiter
}

fn restored(algorithm: AnyAlgorithm, bytes: &[u8]) {
    let limiter = used(algorithm);
    let view = limiter.at(NOW);
    let before = view.available();
    match view.restore_after(bytes, PAUSE) {
        Err(error) => {
            assert_eq!(view.available(), before, "{error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(()) => {
            let again = Limiter::unstarted(algorithm, NoClock);
            let same = again
                .at(NOW)
                .restore_after(&view.snapshot(), Duration::ZERO);
            assert!(same.is_ok());
            assert_eq!(again.at(NOW).available(), view.available());
        }
    }
    decides(|now| limiter.at(now));
}

fuzz_target!(|data: &[u8]| {
    let mut input = data;
    let (from, to) = (
        one_of(&ALGORITHMS, &mut input),
        one_of(&ALGORITHMS, &mut input),
    );
    restored(*to, data);
    restored(*to, &changed(&used(*from).at(NOW).snapshot(), input));
});
