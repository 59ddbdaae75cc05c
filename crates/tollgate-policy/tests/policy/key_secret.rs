//! The secret of a policy's keys: from the file or the environment, and in no text.

use std::env;

use serde_json::json;
use tollgate_policy::file::{PolicyFile, SecretSource};
use tollgate_policy::{Policy, Problems, Secret};

const SECRET: &str = "swordfish-swordfish";

/// A variable that each process has.
const VARIABLE: &str = "PATH";

fn read(text: &str) -> PolicyFile {
    PolicyFile::from_toml(text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// What is wrong with a policy that has this line first.
fn problems(line: &str) -> Problems {
    let rule = "[[rule]]\nname = 'a'\nlimit = '5/s'\n";
    Policy::builder().check_toml(&format!("{line}\n{rule}"))
}

#[test]
fn a_secret_is_text_or_a_variable_of_the_environment() {
    let file = read(&format!("key-secret = '{SECRET}'"));
    assert_eq!(file.resolve_key_secret(), Ok(Some(Secret::new(SECRET))));
    let path = env::var(VARIABLE).expect("a path");
    assert!(path.len() >= 16, "{path}");
    for text in [
        "key-secret = { env = 'PATH' }",
        "[key-secret]\nenv = 'PATH'",
    ] {
        let secret = read(text).resolve_key_secret();
        assert_eq!(secret, Ok(Some(Secret::new(path.as_str()))));
    }
    assert_eq!(read("").resolve_key_secret(), Ok(None));
}

#[test]
fn a_secret_in_json_is_the_same() {
    for (text, written) in [
        (format!("key-secret = '{SECRET}'"), json!(SECRET)),
        (
            "key-secret = { env = 'KEY_SECRET' }".to_owned(),
            json!({ "env": "KEY_SECRET" }),
        ),
    ] {
        let json = json!({ "key-secret": written });
        assert_eq!(PolicyFile::from_json(&json.to_string()), Ok(read(&text)));
    }
}

#[test]
fn what_is_wrong_with_a_secret_is_said_without_it() {
    let name = "must be the name of an environment variable: letters, digits and underscores, and \
                no digit first";
    for (line, expected) in [
        (
            "key-secret = 'swordfish'",
            "1:14: error: key-secret must have at least 16 bytes",
        ),
        (
            "key-secret = ''",
            "1:14: error: key-secret must have at least 16 bytes",
        ),
        (
            "key-secret = 5",
            "1:14: error: key-secret must be text, or a table with `env`",
        ),
        (
            "key-secret = ['swordfish']",
            "1:14: error: key-secret must be text, or a table with `env`",
        ),
        (
            "key-secret = { env = 'TOLLGATE_NOT_SET' }",
            "1:14: error: key-secret needs a value in the environment variable TOLLGATE_NOT_SET, \
             which is not set",
        ),
        (
            "key-secret = { env = 'sword fish' }",
            &format!("1:22: error: key-secret.env {name}"),
        ),
        (
            "key-secret = { env = '4a' }",
            &format!("1:22: error: key-secret.env {name}"),
        ),
        (
            "key-secret = { env = '' }",
            &format!("1:22: error: key-secret.env {name}"),
        ),
        (
            "key-secret = { text = 'swordfish' }",
            "1:14: error: key-secret.env is missing\n\
             1:16: error: key-secret.text is not a field of a secret; known: env",
        ),
        (
            "key_secret = 'swordfish'",
            "1:1: error: key_secret is not a field of a policy; did you mean `key-secret`? Known: \
             apply, memory, facts, client, store, key-secret, deny, allow, rule, limit",
        ),
    ] {
        let text = format!("{line}\n[[rule]]\nname = 'a'\nlimit = '5/s'\n");
        let found = Policy::from_toml(&text).expect_err(line);
        assert_eq!(found.to_string(), expected, "{line}");
    }
}

#[test]
fn errors_of_syntax_do_not_show_a_secret() {
    for line in [
        "key-secret = swordfish",
        "key-secret = 'swordfish",
        "key-secret = \"swordfish\\q\"",
        "key-secret = 'swordfish' 'swordfish'",
        "key-secret = 'swordfish'\nkey-secret = 'swordfish'",
        "key-secret = { env = swordfish }",
        "key-secret = \"\"\"\nswordfish\\q",
        "key-secret = \"\"\"\nswordfish\"\"\" swordfish",
    ] {
        let found = problems(line);
        assert!(found.has_errors(), "{line}");
        assert!(
            !format!("{found} {found:?}").contains("swordfish"),
            "{found}"
        );
    }
    for json in [
        "{\"key-secret\": swordfish}",
        "{\"key-secret\": \"swordfish}",
        "{\"key-secret\": \"swordfish\\q\"}",
        "{\"key-secret\": \"swordfish\" \"swordfish\"}",
        "{\"key-secret\": \"swordfish\", \"key-secret\": \"swordfish\"}",
    ] {
        let found = PolicyFile::from_json(json).expect_err("an error");
        assert!(
            !format!("{found} {found:?}").contains("swordfish"),
            "{found}"
        );
    }
}

#[test]
fn debug_does_not_show_a_secret() {
    let text = format!("key-secret = '{SECRET}'\n[[rule]]\nname = 'a'\nlimit = '5/s'");
    let file = read(&text);
    let policy = Policy::from_toml(&text).expect("a policy");
    let shown = format!("{file:?} {policy:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    let secret = SecretSource::Text(Secret::new(SECRET));
    assert_eq!(format!("{secret:?}"), "Text(Secret(..))");
}

#[test]
fn a_secret_that_no_store_uses_is_a_warning() {
    let line = format!("key-secret = '{SECRET}'");
    assert_eq!(
        problems(&line).to_string(),
        "1:14: warning: key-secret has no effect: all rules are in memory"
    );
}
