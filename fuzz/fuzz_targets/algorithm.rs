//! Any text: an algorithm that is printed as text that is read as the same algorithm and decides,
//! or an error that says where.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::algorithm::{ChangeQuota, Settings};
use tollgate::clock::NoClock;
use tollgate::error::ParseAlgorithmError;
use tollgate::{AnyAlgorithm, Limiter};
use tollgate_fuzz::{begins_full_or_with_its_initial, decides};

fuzz_target!(|text: &str| {
    match text.parse::<AnyAlgorithm>() {
        Ok(algorithm) => {
            let shown = algorithm.to_string();
            assert_eq!(shown.parse(), Ok(algorithm), "{shown}");
            assert!(algorithm.is_sound(), "{shown}");
            assert_eq!(
                algorithm
                    .with_quota(algorithm.quota())
                    .map(|same| same.quota()),
                Ok(algorithm.quota())
            );
            begins_full_or_with_its_initial(&algorithm);
            let limiter = Limiter::unstarted(algorithm, NoClock);
            decides(|now| limiter.at(now));
        }
        Err(ParseAlgorithmError::Text(error)) => {
            assert!(text.get(error.span()).is_some(), "{:?}", error.span());
            assert!(!error.to_string().is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
