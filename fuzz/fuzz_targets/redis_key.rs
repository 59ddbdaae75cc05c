//! Any bytes as two inputs: their keys are the same only if the inputs are, and the hash tag that a
//! cluster finds in a key is the one that was chosen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_redis::Keys;

/// The hash tag by the rule of Redis Cluster: from the first `{` to the next `}`.
fn hash_tag(key: &[u8]) -> &[u8] {
    let open = key.iter().position(|&byte| byte == b'{').expect("a brace");
    let after = &key[open + 1..];
    let close = after
        .iter()
        .position(|&byte| byte == b'}')
        .expect("a brace");
    assert!(close > 0, "a cluster ignores an empty tag");
    &after[..close]
}

fuzz_target!(|inputs: (&str, &str, &[u8], &str, &[u8])| {
    let (tag, limit, user, other_limit, other_user) = inputs;
    let keys = Keys::new("api").expect("a namespace");
    let (key, other) = (keys.key(limit, user), keys.key(other_limit, other_user));
    assert_eq!(key == other, (limit, user) == (other_limit, other_user));
    assert!(key.starts_with(b"api:{") && key.iter().all(u8::is_ascii_graphic));
    assert_eq!(hash_tag(&key) == hash_tag(&other), user == other_user);

    // A written user is accepted as a tag, and gives another key all the same.
    let written = String::from_utf8_lossy(hash_tag(&key)).into_owned();
    for tag in [tag, &written] {
        let Ok(tagged) = keys.clone().with_tag(tag) else {
            continue;
        };
        let [first, second] = [tagged.key(limit, user), tagged.key(other_limit, other_user)];
        assert_eq!(hash_tag(&first), tag.as_bytes());
        assert_eq!(hash_tag(&second), tag.as_bytes());
        assert_eq!(first == second, key == other);
        assert!(first != key && first != other && second != key && second != other);
    }
});
