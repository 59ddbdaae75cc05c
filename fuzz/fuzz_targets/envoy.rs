//! Any call of Envoy's protocol: it is decided as its answer says, or it is an error, and it takes
//! no more than its limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_server::fuzzing::{self, Descriptor};

fuzz_target!(|input: (&[u8], String, Vec<Descriptor>, u32)| {
    let (bytes, domain, descriptors, hits_addend) = input;
    fuzzing::bytes(bytes);
    fuzzing::request(domain, descriptors, hits_addend);
});
