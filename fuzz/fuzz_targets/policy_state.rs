//! Any bytes as the state of a policy, with a right checksum: the policy is made, and decides.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::Policy;

const POLICY: &str = "apply = 'all'\n\
    [[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['60/h', 'sliding-window 5/min']\ncapacity = 100\n\
    [[rule]]\nname = 'b'\nlimit = '5/h'\nalso = 'c'\n\
    [[limit]]\nname = 'c'\nkey = 'user'\ncapacity = 100\n\
    plan = { by = 'tier', free = '9/h', pro = 'unlimited', none = '0', default = 'free' }\n";

fuzz_target!(|bytes: &[u8]| {
    let mut state = b"tgpolic1".to_vec();
    state.extend_from_slice(bytes);
    state.extend_from_slice(&crc32fast::hash(&state).to_le_bytes());
    let Ok(builder) = Policy::builder().restore(&mut state.as_slice()) else {
        return;
    };
    let policy = builder.build_toml(POLICY).expect("a policy");
    assert!(policy.decide(&[("user", "ann")]).asked().count() <= 4);
});
