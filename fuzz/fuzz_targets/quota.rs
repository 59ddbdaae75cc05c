//! Any text: a quota that is printed as text that is read as the same quota, or an error that says
//! where.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::Quota;

fuzz_target!(|text: &str| {
    match text.parse::<Quota>() {
        Ok(quota) => assert_eq!(quota.to_string().parse(), Ok(quota), "{quota}"),
        Err(error) => {
            assert!(text.get(error.span()).is_some(), "{:?}", error.span());
            assert!(!error.to_string().is_empty());
        }
    }
});
