//! Any body of a question to the service: it is answered, or it is an error that says why.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| tollgate_server::decide_fuzzing::body(body));
