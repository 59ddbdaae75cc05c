//! Any limit and user: the key has the tag that was chosen, and the limit and a readable user can
//! be read from it again, unless they are hashed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_redis::Keys;

/// Checks that a part of a key stands for these bytes.
fn check(part: &str, input: &[u8]) {
    assert!(!part.is_empty() && part.len() <= 128);
    assert!(!part.contains(['{', '}', ':']));
    if let Some(hash) = part.strip_prefix("%sha1-") {
        assert_eq!(hash.len(), 40);
        let is_printable = input.iter().all(|byte| (b' '..=b'~').contains(byte));
        assert!(!is_printable || input.len() * 3 > 128);
    } else if part == "%empty" {
        assert!(input.is_empty());
    } else {
        let mut pieces = part.split('%');
        let mut bytes = pieces.next().expect("a piece").as_bytes().to_vec();
        for piece in pieces {
            let (digits, rest) = piece.split_at(2);
            bytes.push(u8::from_str_radix(digits, 16).expect("hex digits"));
            bytes.extend(rest.bytes());
        }
        assert_eq!(bytes, input);
    }
}

/// Checks the namespace, and returns the tag and the rest. A cluster takes as the tag what is from
/// the first `{` to the next `}`, unless it is empty.
fn split(key: Vec<u8>) -> (String, String) {
    let key = String::from_utf8(key).expect("ASCII");
    assert!(key.bytes().all(|byte| byte.is_ascii_graphic()));
    let (namespace, rest) = key.split_once('{').expect("a brace");
    let (tag, rest) = rest.split_once('}').expect("a brace");
    assert_eq!(namespace, "api:");
    (tag.into(), rest.strip_prefix(':').expect("a colon").into())
}

/// Checks that a part of a key is a hashed user.
fn check_hash(part: &str, user: &[u8]) {
    match user.is_empty() {
        true => assert_eq!(part, "%empty"),
        false => {
            assert_eq!(part.len(), 22);
            let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            assert!(part.bytes().all(is_digit));
        }
    }
}

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (tag, limit, user) = input;
    let hashed = Keys::new("api").expect("a namespace");
    let readable = hashed.clone().with_readable_users();
    for (keys, check_user) in [(hashed, check_hash as fn(&str, &[u8])), (readable, check)] {
        let (written, rest) = split(keys.key(limit, user));
        check_user(&written, user);
        check(&rest, limit.as_bytes());
        if let Ok(keys) = keys.with_tag(tag) {
            let (chosen, rest) = split(keys.key(limit, user));
            assert_eq!(chosen, tag);
            let (first, second) = rest.split_once(':').expect("two parts");
            check(first, limit.as_bytes());
            check_user(second, user);
        }
    }
});
