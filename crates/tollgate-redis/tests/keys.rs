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

const SECRET: &str = "0123456789abcdef";

fn spread() -> Keys {
    Keys::new("api").unwrap()
}

/// Keys whose users are hashed, hashed with a secret, and readable.
fn forms() -> [Keys; 3] {
    let secret = spread().with_secret(SECRET).unwrap();
    [spread(), secret, spread().with_readable_users()]
}

/// Returns how a user is written.
fn written(keys: &Keys, user: impl AsRef<[u8]>) -> String {
    let key = keys.key("login", user.as_ref());
    String::from_utf8(hash_tag(&key).to_vec()).unwrap()
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
struct Seen {
    keys: Keys,
    inputs: HashMap<Vec<u8>, Input>,
}

impl Seen {
    fn new(keys: Keys) -> Self {
        let inputs = HashMap::new();
        Self { keys, inputs }
    }

    /// Checks one key: its shape, its tag, and that no other input has it.
    fn check(&mut self, tag: Option<&str>, limit: &str, user: &[u8]) {
        let keys = match tag {
            Some(tag) => self.keys.clone().with_tag(tag).unwrap(),
            None => self.keys.clone(),
        };
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
        let other = self.inputs.entry(key).or_insert_with(|| input.clone());
        assert_eq!(*other, input, "{shown}");
    }
}

#[test]
fn hostile_users_get_different_keys_and_stay_in_their_tag() {
    for keys in forms() {
        let mut seen = Seen::new(keys);
        for user in strings(&HOSTILE, 3) {
            // Different tags stand beside each other: a tag may look like a user and a user like a
            // tag.
            for (tag, limit) in [
                (None, "login"),
                (Some("a"), "login"),
                (Some("a:login"), "a"),
            ] {
                seen.check(tag, limit, user.as_bytes());
            }
        }
        // "%25" is also "%", "2", "5"; so fewer inputs than 16^3 are different.
        let count = seen.inputs.len();
        assert!(count > 3 * 4000, "{count}");
    }
}

#[test]
fn a_limit_and_a_user_that_trade_pieces_get_different_keys() {
    for keys in forms() {
        let mut seen = Seen::new(keys);
        let parts = strings(&["{", "}", ":", "%", "a", "3A", "\u{1}"], 2);
        for limit in &parts {
            for user in &parts {
                for tag in [None, Some("a"), Some("%"), Some("a:a")] {
                    seen.check(tag, limit, user.as_bytes());
                }
            }
        }
        assert_eq!(seen.inputs.len(), parts.len() * parts.len() * 4);
    }
}

#[test]
fn an_input_that_looks_like_a_written_part_gets_another_key() {
    for keys in forms() {
        let mut seen = Seen::new(keys.clone());
        for user in strings(&HOSTILE, 2) {
            seen.check(None, "login", user.as_bytes());
            seen.check(None, "login", written(&keys, user).as_bytes());
        }
    }
}

#[test]
fn random_bytes_of_any_length_get_different_keys() {
    for keys in forms() {
        let mut random = Random(20);
        let mut seen = Seen::new(keys);
        for _ in 0..10_000 {
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
}

/// The expected values are from Python, with `key = hmac.digest(namespace, secret, "sha256")` and
/// `urlsafe_b64encode(hmac.digest(key, user, "sha256")[:16])`.
#[test]
fn a_user_is_written_as_its_hmac_sha_256() {
    let expect = |namespace: &str, secret: &[u8], user: &[u8], expected: &str| {
        let keys = Keys::new(namespace).unwrap();
        let keys = match secret.is_empty() {
            true => keys,
            false => keys.with_secret(secret).unwrap(),
        };
        assert_eq!(written(&keys, user), expected);
        let tagged = keys.with_tag("eu").unwrap().key("login", user);
        let expected = format!("{namespace}:{{eu}}:login:{expected}");
        assert_eq!(String::from_utf8(tagged).unwrap(), expected);
    };
    let all: Vec<u8> = (0..=255).collect();
    let secret = SECRET.as_bytes();
    expect("api", b"", b"alice", "sQBspkE8zIeukU9kOO1yEw");
    expect("api", b"", "jürgen".as_bytes(), "9UME_LyJR-Fecd3lNxS36Q");
    expect("api", b"", b"\0", "49EgezWkDVnYWXoBvC0w9Q");
    expect("api", b"", &[b'a'; 1000], "0XJvhCnNKGVjtZhA--_KBA");
    let longest = "n".repeat(64);
    expect(&longest, b"", b"alice", "Fepjj94teYCYgbmjcumiJw");
    expect("api", secret, b"alice", "u2OwexZEtAw1ZM-jcu4n9g");
    // The key of an HMAC is filled up with zeros. The secret is not that key.
    let and_zero = [secret, b"\0"].concat();
    expect("api", &and_zero, b"alice", "myjnHAKRO3C3FYHnnEevpg");
    expect("api", &all, b"alice", "xAYu3jlag07Wq7ebsCSUJA");
}

#[test]
fn a_user_has_another_hash_with_another_secret_and_in_another_namespace() {
    let mut seen = HashMap::new();
    for namespace in ["api", "api2", "ap"] {
        for secret in [None, Some("0123456789abcdef"), Some("0123456789abcdeg")] {
            let make = || {
                let keys = Keys::new(namespace).unwrap();
                match secret {
                    Some(secret) => keys.with_secret(secret).unwrap(),
                    None => keys,
                }
            };
            // Two processes agree.
            assert_eq!(make(), make());
            assert_eq!(make().has_secret(), secret.is_some());
            let other = seen.insert(written(&make(), "alice"), (namespace, secret));
            assert_eq!(other, None);
        }
    }
    assert_ne!(spread(), spread().with_secret(SECRET).unwrap());
    assert_ne!(spread(), spread().with_readable_users());
}

#[test]
fn a_secret_has_at_least_16_bytes_and_is_not_shown() {
    for length in [0, 1, 15] {
        let error = spread().with_secret("s".repeat(length)).unwrap_err();
        assert_eq!(error, KeysError::ShortSecret { length });
        assert_eq!(error.field(), "secret");
        let expected = format!("secret has {length} bytes, but must have at least 16 bytes");
        assert_eq!(error.to_string(), expected);
    }
    let keys = spread().with_secret(SECRET).unwrap();
    let shown = format!("{keys:?}");
    let expected = "Keys { namespace: \"api\", tag: None, users: HashedWithSecret(..) }";
    assert_eq!(shown, expected);
}

#[test]
fn the_last_call_says_how_users_are_written() {
    let readable = spread().with_secret(SECRET).unwrap().with_readable_users();
    assert!(readable.has_readable_users() && !readable.has_secret());
    assert_eq!(written(&readable, "alice"), "alice");
    let hashed = readable.with_secret(SECRET).unwrap();
    assert_eq!(hashed, spread().with_secret(SECRET).unwrap());
}

#[test]
fn the_user_of_a_limit_that_all_share_is_empty() {
    for keys in forms() {
        assert_eq!(written(&keys, ""), "%empty");
    }
}

#[test]
fn a_readable_user_is_printable_and_has_up_to_128_bytes_with_its_escapes() {
    let written = |user: &str| written(&spread().with_readable_users(), user);
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
