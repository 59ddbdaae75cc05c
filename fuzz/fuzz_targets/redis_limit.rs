//! Any text: a limit that is parsed from it is parsed from its own text too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_redis::Limit;

fuzz_target!(|text: &str| {
    match text.parse::<Limit>() {
        Ok(limit) => assert_eq!(limit.to_string().parse(), Ok(limit)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
