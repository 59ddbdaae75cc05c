//! The names of keys: different inputs get different keys, and none leaves its namespace or tag.

use std::collections::HashMap;

use tollgate_redis::{Keys, KeysError};

#[path = "../../../tests/support/random.rs"]
mod random;
use random::Random;

/// The hash tag of a key, by the rule of the cluster's specification. Without one, the whole key is
/// hashed.
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else {
        return key;
    };
    let after = &key[open + 1..];
    match after.iter().position(|&byte| byte == b'}') {
        None | Some(0) => key,
        Some(close) => &after[..close],
    }
}

fn spread() -> Keys {
    Keys::new("api").unwrap()
}

fn tagged(tag: &str) -> Keys {
    spread().with_tag(tag).unwrap()
}

/// All strings of up to `max` pieces of the alphabet.
fn strings(alphabet: &[&str], max: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut start = 0;
    for _ in 0..max {
        let end = all.len();
        for at in start..end {
            all.extend(
                alphabet
                    .iter()
                    .map(|piece| all[at].clone() + piece)
                    .collect::<Vec<_>>(),
            );
        }
        start = end;
    }
    all
}

/// The separator, the escape, braces, hex digits of both cases, and what escapes look like.
const HOSTILE: [&str; 16] = [
    "{", "}", ":", "%", " ", "2", "5", "a", "A", "7B", "%25", "%sha1-", "%empty", "\0", "é", "\n",
];

/// A tag, a limit and a user.
type Input = (Option<String>, Vec<u8>, Vec<u8>);

/// Remembers the input of each key.
#[derive(Default)]
struct Seen(HashMap<Vec<u8>, Input>);

impl Seen {
    /// Checks one key: its shape, its tag, and that no other input has it.
    fn check(&mut self, tag: Option<&str>, limit: &str, user: &[u8]) {
        let keys = tag.map_or_else(spread, tagged);
        let key = keys.key(limit, user);
        let shown = String::from_utf8_lossy(&key).into_owned();
        assert!(key.starts_with(b"api:{"), "{shown}");
        assert!(key.iter().all(u8::is_ascii_graphic), "{shown}");
        assert!(key.len() <= "api:{}::".len() + 64 + 2 * 128, "{shown}");
        let braces = key.iter().filter(|byte| matches!(byte, b'{' | b'}'));
        assert_eq!(braces.count(), 2, "{shown}");
        match tag {
            Some(tag) => assert_eq!(hash_tag(&key), tag.as_bytes(), "{shown}"),
            // The user decides the tag alone, so all limits of a user are in one slot.
            None => assert_eq!(hash_tag(&key), hash_tag(&keys.key("", user)), "{shown}"),
        }
        let input = (
            tag.map(str::to_owned),
            limit.as_bytes().to_vec(),
            user.to_vec(),
        );
        let other = self.0.entry(key).or_insert_with(|| input.clone());
        assert_eq!(*other, input, "{shown}");
    }
}

#[test]
fn hostile_users_get_different_keys_and_stay_in_their_tag() {
    let mut seen = Seen::default();
    for user in strings(&HOSTILE, 3) {
        // Different tags stand beside each other: a tag may look like a user and a user like a tag.
        for (tag, limit) in [
            (None, "login"),
            (Some("a"), "login"),
            (Some("a:login"), "a"),
        ] {
            seen.check(tag, limit, user.as_bytes());
        }
    }
    // "%25" is also "%", "2", "5"; so fewer inputs than 16^3 are different.
    assert!(seen.0.len() > 3 * 4000, "{}", seen.0.len());
}

#[test]
fn a_limit_and_a_user_that_trade_pieces_get_different_keys() {
    let mut seen = Seen::default();
    let parts = strings(&["{", "}", ":", "%", "a", "3A", "\u{1}"], 2);
    for limit in &parts {
        for user in &parts {
            for tag in [None, Some("a"), Some("%"), Some("a:a")] {
                seen.check(tag, limit, user.as_bytes());
            }
        }
    }
    assert_eq!(seen.0.len(), parts.len() * parts.len() * 4);
}

#[test]
fn an_input_that_looks_like_a_written_part_gets_another_key() {
    let mut seen = Seen::default();
    for user in strings(&HOSTILE, 2) {
        let tag = hash_tag(&spread().key("login", user.as_bytes())).to_vec();
        seen.check(None, "login", user.as_bytes());
        seen.check(None, "login", &tag);
    }
}

#[test]
fn random_bytes_of_any_length_get_different_keys() {
    let mut random = Random(20);
    let mut seen = Seen::default();
    for _ in 0..20_000 {
        let length = random.skewed(400);
        let printable = random.one_in(2);
        let byte = |random: &mut Random| match printable {
            true => 0x20 + random.below(0x5f) as u8,
            false => random.next() as u8,
        };
        let user = (0..length).map(|_| byte(&mut random)).collect::<Vec<_>>();
        seen.check(None, "login", &user);
        seen.check(Some("a"), "login", &user);
    }
}

#[test]
fn a_printable_part_is_readable_up_to_128_bytes_with_its_escapes() {
    let written = |user: &str| {
        let key = spread().key("login", user.as_bytes());
        String::from_utf8(hash_tag(&key).to_vec()).unwrap()
    };
    let is_hashed = |user: &str| written(user).starts_with("%sha1-");
    assert_eq!(written(&"a".repeat(128)), "a".repeat(128));
    assert!(is_hashed(&"a".repeat(129)));
    let escaped = "a".repeat(125) + ":";
    assert_eq!(written(&escaped), "a".repeat(125) + "%3A");
    assert!(is_hashed(&(escaped + "a")));
    let printable = (b' '..=b'~').map(char::from).collect::<String>();
    assert_eq!(
        written(&printable),
        printable
            .replace('%', "%25")
            .replace(' ', "%20")
            .replace('{', "%7B")
            .replace('}', "%7D")
            .replace(':', "%3A")
    );
    // From `printf 'aa...' | sha1sum`.
    assert_eq!(
        written(&"a".repeat(1_000_000)),
        "%sha1-34aa973cd4c4daa4f61eeb2bdbad27316534016f"
    );
}

#[test]
fn names_that_could_leave_their_place_are_errors_that_name_the_field() {
    let errors = |text: &str| {
        let [namespace, tag] = [Keys::new(text), spread().with_tag(text)].map(Result::unwrap_err);
        assert_eq!((namespace.field(), tag.field()), ("namespace", "tag"));
        assert_eq!(
            namespace.to_string().replace("namespace", "tag"),
            tag.to_string()
        );
        tag
    };
    assert_eq!(errors(""), KeysError::Empty { field: "tag" });
    assert_eq!(
        errors(&"a".repeat(65)),
        KeysError::TooLong {
            field: "tag",
            length: 65
        }
    );
    for (text, at) in [
        ("{", 0),
        ("a}", 1),
        ("a b", 1),
        ("a\n", 1),
        ("ab\u{7f}", 2),
        ("aé", 1),
    ] {
        let found = text[at..].chars().next().unwrap();
        let field = "tag";
        assert_eq!(errors(text), KeysError::BadCharacter { field, found, at });
    }
    for text in ["a", "a:b", "%25", &"a".repeat(64)] {
        assert!(
            Keys::new(text).is_ok() && spread().with_tag(text).is_ok(),
            "{text}"
        );
    }
}
