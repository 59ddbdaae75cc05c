//! What a file says of the server that has its limits, and what is wrong with it.

use std::time::Duration;

use tollgate::{FixedWindow, Quota};
use tollgate_policy::file::{Fallback, PolicyFile, Rule, SecretSource, StoreSettings};
use tollgate_policy::{Policy, Position, Secret, Store, warnings};
use tollgate_redis::Keys;
use tollgate_redis::client::connect_lazily;

const URL: &str = "redis://10.0.0.5:6379";

/// A variable that each process has. It is not a URL.
const VARIABLE: &str = "PATH";

fn read(text: &str) -> PolicyFile {
    PolicyFile::from_toml(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// Reads a table of a server with these lines besides its URL, and a rule with these.
fn read_rule(store: &str, rule: &str) -> PolicyFile {
    read(&format!(
        "[store]\nredis = '{URL}'\n{store}\n[[rule]]\nname = 'a'\nlimit = '5/s'\n{rule}"
    ))
}

fn settings(file: &PolicyFile) -> &StoreSettings {
    file.store.as_ref().expect("a table")
}

/// What is wrong with a file that has these lines first.
#[track_caller]
fn problems(lines: &str) -> String {
    let text = format!("{lines}\n[[rule]]\nname = 'a'\nlimit = '5/s'\nfallback = 'closed'\n");
    let problems = PolicyFile::from_toml(&text).expect_err(lines);
    problems.to_string()
}

fn fallback(rule: &Rule) -> Option<&Fallback> {
    rule.fallback.as_ref().map(|fallback| &fallback.value)
}

#[test]
fn a_file_need_not_name_a_server() {
    let file = read("[[rule]]\nname = 'a'\nlimit = '5/s'");
    assert_eq!(file.store, None);
    assert_eq!(file.rules[0].store.value, "memory");
    assert_eq!(Policy::builder().build(&file).unwrap().store(), None);
}

#[test]
fn a_server_has_defaults() {
    let file = read(&format!("store = {{ redis = '{URL}' }}"));
    let store = settings(&file);
    assert_eq!(store.redis.value, SecretSource::Text(Secret::new(URL)));
    assert_eq!(store.redis.position, Some(Position::new(1, 19)));
    assert_eq!(store.namespace.value, "tollgate");
    assert_eq!((store.budget, &store.fallback), (None, &None));
    assert_eq!(store.resolve_url(), Ok(Secret::new(URL)));
    // The default is a namespace.
    assert!(Keys::new(&store.namespace).is_ok());
}

#[test]
fn each_setting_is_read_and_the_policy_has_it() {
    let file = read_rule(
        "namespace = 'shop'\nbudget = '20ms'\nfallback = { open = { at_most = 5 } }",
        "store = 'memory'",
    );
    let store = settings(&file);
    assert_eq!(store.namespace.value, "shop");
    assert_eq!(store.budget, Some(Duration::from_millis(20).into()));
    let open = Fallback::OpenAtMost {
        at_most: 5.into(),
        per: None,
    };
    assert_eq!(store.fallback, Some(open.into()));
    let policy = Policy::builder().build(&file).expect("a policy in memory");
    assert_eq!(policy.store(), Some(store));
}

#[test]
fn rules_are_on_the_server_unless_they_say_otherwise() {
    let open = "fallback = 'open'";
    for (store, rule, expected) in [
        (open, "", ("redis", Some(&Fallback::Open))),
        (open, "store = 'redis'", ("redis", Some(&Fallback::Open))),
        (
            open,
            "fallback = 'closed'",
            ("redis", Some(&Fallback::Closed)),
        ),
        (
            "",
            "fallback = 'closed'",
            ("redis", Some(&Fallback::Closed)),
        ),
        (open, "store = 'memory'", ("memory", None)),
        (
            open,
            "store = 'disk'\nfallback = 'closed'",
            ("disk", Some(&Fallback::Closed)),
        ),
    ] {
        let file = read_rule(store, rule);
        let found = &file.rules[0];
        assert_eq!((found.store.as_str(), fallback(found)), expected, "{rule}");
    }
    let limit = "[[limit]]\nname = 'b'\nlimit = '5/s'";
    let file = read_rule(open, limit);
    let limit = &file.rules[1];
    assert_eq!((limit.store.as_str(), limit.is_limit), ("redis", true));
    assert_eq!(fallback(limit), Some(&Fallback::Open));
}

#[test]
fn a_rule_on_a_store_needs_a_fallback() {
    let forms = "\"closed\", \"open\", { open = { at_most = 100, per = \"1m\" } } or { local = { \
                 processes = 4, keys = 10000 } }";
    let says =
        "is missing; a rule with a `store` says what decides while the store does not answer";
    let with_table = format!("{says}, or [store] says it for all rules that do not: {forms}");
    let alone = format!("{says}: {forms}");
    let table = format!("store = {{ redis = '{URL}' }}\n");
    let other = format!("store = {{ redis = '{URL}', fallback = 'open' }}\n");
    for (table, line, store, expected) in [
        (&*table, 2, "", &with_table),
        (&table, 2, "store = 'redis'", &with_table),
        (&other, 2, "store = 'disk'", &alone),
        ("", 1, "store = 'redis'", &alone),
    ] {
        let text = format!("{table}[[rule]]\nname = 'a'\nlimit = '5/s'\n{store}");
        let problems = PolicyFile::from_toml(&text).expect_err(&text);
        let expected = format!("{line}:1: error: rule \"a\": fallback {expected}");
        assert_eq!(problems.to_string(), expected);
        // A file that was not read from text.
        let mut file = read_rule("fallback = 'open'", "");
        file.rules[0].fallback = None;
        let problems = Policy::builder().check(&file).to_string();
        assert!(problems.contains(&with_table), "{problems}");
    }
    let text =
        format!("{table}[[rule]]\nname = 'a'\nlimit = '5/s'\nstore = 'memory'\nfallback = 'open'");
    assert_eq!(
        PolicyFile::from_toml(&text).expect_err(&text).to_string(),
        "6:1: error: rule \"a\": fallback needs a `store` other than \"memory\", which always answers"
    );
}

#[test]
fn a_table_that_is_wrong_makes_no_rule_wrong() {
    let url =
        "must be a URL that begins with redis://, rediss://, valkey://, valkeys:// or unix://";
    let text = "must be the URL of a server, or a table with `env`";
    let name = "must be the name of an environment variable: letters, digits and underscores, and \
                no digit first";
    let namespace = "must be 1 to 64 characters of printable ASCII, without spaces and braces";
    let not_a_table = "must be a table, written as [store], with `redis`";
    for (lines, expected) in [
        (
            "store = 'redis://:swordfish@a'",
            format!("1:9: error: store {not_a_table}"),
        ),
        (
            "store = ['redis://:swordfish@a']",
            format!("1:9: error: store {not_a_table}"),
        ),
        (
            "[[store]]\nredis = 'redis://:swordfish@a'",
            format!("1:1: error: store {not_a_table}"),
        ),
        ("[store]", "1:1: error: store.redis is missing".into()),
        (
            "[store]\nredis = 'swordfish:6379'",
            format!("2:9: error: store.redis {url}"),
        ),
        (
            "[store]\nredis = ''",
            format!("2:9: error: store.redis {url}"),
        ),
        (
            "[store]\nredis = 'http://:swordfish@a/'",
            format!("2:9: error: store.redis {url}"),
        ),
        (
            "[store]\nredis = 'redis://:swordfish@/0'",
            "2:9: error: store.redis must have a host, as in \"redis://10.0.0.5:6379\"".into(),
        ),
        (
            "[store]\nredis = 'unix:swordfish'",
            "2:9: error: store.redis must have the path of a socket, as in \
             \"unix:///run/redis.sock\""
                .into(),
        ),
        (
            "[store]\nredis = ['swordfish']",
            format!("2:9: error: store.redis {text}"),
        ),
        (
            "[store]\nredis = 5",
            format!("2:9: error: store.redis {text}"),
        ),
        (
            "[store]\nredis = { env = 'redis://:swordfish@a' }",
            format!("2:17: error: store.redis.env {name}"),
        ),
        (
            "[store]\nredis = { url = 'redis://:swordfish@a' }",
            "2:9: error: store.redis.env is missing\n\
             2:11: error: store.redis.url is not a field of a store's address; known: env"
                .into(),
        ),
        (
            "[store]\nurl = 'redis://:swordfish@a'",
            "1:1: error: store.redis is missing\n\
             2:1: error: store.url is not a field of a store; known: redis, namespace, budget, \
             fallback"
                .into(),
        ),
        (
            "[store]\nredis = 'redis://a'\nnamespace = 'a b'",
            format!("3:13: error: store.namespace is \"a b\", but {namespace}"),
        ),
        (
            "[store]\nredis = 'redis://a'\nbudget = 20",
            "3:10: error: store.budget is 20, but must be a length of time above zero, such as \
             \"10min\": a number, and ns, us, ms, s, min, h or d"
                .into(),
        ),
    ] {
        assert_eq!(problems(lines), expected, "{lines}");
    }
    // Rules without a fallback are not reported too.
    let text =
        format!("[store]\nredis = '{URL}'\nfallback = 'shut'\n[[rule]]\nname = 'a'\nlimit = '5/s'");
    for found in [
        PolicyFile::from_toml(&text).expect_err("a fallback"),
        Policy::from_toml(&text).expect_err("a fallback"),
    ] {
        let found = found.to_string();
        let expected = "3:12: error: store.fallback is \"shut\", but must be \"closed\"";
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("rule \"a\": fallback"), "{found}");
    }
}

#[test]
fn the_table_in_a_rule_is_an_error_that_shows_no_password() {
    let message = "must be a store's name, such as \"redis\"; its server is in the table [store], or \
                   in `store = { ... }` before all rules";
    for store in [
        "store = { redis = 'redis://:swordfish@a' }",
        "store = 'redis://:swordfish@a'",
        "store = ['redis://:swordfish@a']",
    ] {
        let text = format!("[[rule]]\nname = 'a'\nlimit = '5/s'\n{store}");
        let problems = PolicyFile::from_toml(&text).expect_err(&text);
        let expected = format!("4:9: error: rule \"a\": store {message}");
        assert_eq!(problems.to_string(), expected, "{store}");
    }
}

#[test]
fn a_namespace_is_one_that_keys_have() {
    let longest = "a".repeat(64);
    let too_long = "a".repeat(65);
    let mut refused = 0;
    for namespace in [
        "a",
        "shop:eu",
        "a{b",
        "a}",
        "a b",
        " ",
        "",
        "é",
        "~!@#$%^&*()",
        "\\\\",
        "a\\u007f",
        "a\\u0000",
        &longest,
        &too_long,
    ] {
        let text = format!("[store]\nredis = '{URL}'\nnamespace = \"{namespace}\"");
        let namespace = namespace.replace("\\\\", "\\");
        let namespace = namespace
            .replace("\\u007f", "\u{7f}")
            .replace("\\u0000", "\0");
        let is_read = PolicyFile::from_toml(&text).is_ok();
        assert_eq!(is_read, Keys::new(&namespace).is_ok(), "{namespace:?}");
        refused += usize::from(!is_read);
    }
    assert_eq!(refused, 9);
}

#[test]
fn a_url_is_one_to_which_a_client_connects() {
    let (mut accepted, mut refused) = (0, 0);
    for url in [
        "redis://a",
        "redis://a/",
        "redis://a:6379/3",
        "redis://10.0.0.5?protocol=resp3",
        "redis://[2001:db8::5]:6379",
        "redis://user:p%40ss@a",
        "redis://:p@ss@a",
        "valkey://a",
        "REDIS://a",
        " redis://a\\n",
        "redis:a",
        "redis:/a",
        "redis://",
        "redis:///0",
        "redis://:6379",
        "redis://user:password@",
        "redis://user:password@/0",
        "redis://user:password@:6379",
        "redis://?a",
        "redis://#a",
        "redis",
        "10.0.0.5",
        "10.0.0.5:6379",
        "a:6379",
        "http://a",
        "redis-sentinel://a",
        "unix:///run/redis.sock",
        "unix:/run/redis.sock",
        "redis+unix:///run/redis.sock?db=1&pass=b",
        "valkey+unix:///run/redis.sock",
        "unix:run/redis.sock",
        "unix://run/redis.sock",
        "unix://",
        "",
    ] {
        let text = format!("store = {{ redis = \"{url}\" }}");
        let is_read = PolicyFile::from_toml(&text).is_ok();
        let connects = connect_lazily(&*url.replace("\\n", "\n")).is_ok();
        assert_eq!(is_read, connects, "{url}");
        *(if is_read { &mut accepted } else { &mut refused }) += 1;
    }
    assert_eq!((accepted, refused), (14, 20));
    // These need a feature of the client.
    for url in ["rediss://a:6380/#insecure", "valkeys://a"] {
        let _ = read(&format!("store = {{ redis = '{url}' }}"));
    }
}

#[test]
fn a_url_is_read_from_the_environment_when_it_is_needed() {
    let env = |name: &str| read(&format!("store = {{ redis = {{ env = '{name}' }} }}"));
    let file = env("TOLLGATE_NOT_SET");
    let redis = &settings(&file).redis.value;
    assert_eq!(redis, &SecretSource::Env("TOLLGATE_NOT_SET".into()));
    // The policy does not need it.
    assert!(Policy::builder().build(&file).is_ok());
    let problems = settings(&file).resolve_url().expect_err("no variable");
    assert_eq!(
        problems.to_string(),
        "1:19: error: store.redis needs a value in the environment variable TOLLGATE_NOT_SET, which \
         is not set"
    );
    let path = std::env::var(VARIABLE).expect("a path");
    let problems = settings(&env(VARIABLE)).resolve_url().expect_err(&path);
    assert_eq!(
        problems.to_string(),
        "1:19: error: store.redis must be a URL that begins with redis://, rediss://, valkey://, \
         valkeys:// or unix:// in the environment variable PATH"
    );
}

#[test]
fn no_text_shows_the_url() {
    let text = "[store]\nredis = 'redis://ann:swordfish@a'\nfallback = 'open'\n\
                [[rule]]\nname = 'a'\nlimit = '5/s'\nstore = 'memory'";
    let file = read(text);
    let policy = Policy::from_toml(text).expect("a policy");
    let shown = format!("{file:?} {policy:?}");
    assert!(!shown.contains("swordfish"), "{shown}");
    assert!(shown.contains("namespace"), "{shown}");
}

#[test]
fn errors_of_syntax_do_not_show_the_url() {
    for text in [
        "store = { redis = redis://:swordfish@a }",
        "store = { redis = 'redis://:swordfish@a }",
        "store = { redis = \"redis:\\/\\/:swordfish@a\" }",
        "store.redis = redis://:swordfish@a",
        "[store]\nredis = redis://:swordfish@a",
        "[store]\nredis = 'redis://:swordfish@a",
        "[store]\nredis = \"redis:\\/\\/:swordfish@a\"",
        "[store]\nredis = 'redis://:swordfish@a' swordfish",
        "[store]\nredis = 'redis://:swordfish@a'\nredis = 'redis://:swordfish@a'",
        "[store]\nnamespace = 'a'\nredis = { env = swordfish }",
        "[ store ]\nredis = redis://:swordfish@a",
        "redis = redis://:swordfish@a",
        "[store]\nredis = \"\"\"redis://:swordfish@a\n[[rule]]\nname = 'a'",
        "[store]\nredis = '''redis://:swordfish@a\n[[rule]]\nname = 'a'",
        "[store]\nredis = \"\"\"\nswordfish\\q\n[[rule]]\nname = 'a'\n\"\"\"",
        "[store]\nredis = [\nswordfish\n[\n[[rule]]\nname = 'a'",
        "[store]\nredis = [ a,\n[redis://:swordfish@a], 'a\n[[rule]]",
        "[[rule]]\nname = 'a'\nstore = redis://:swordfish@a",
    ] {
        let found = PolicyFile::from_toml(text).expect_err(text);
        let found = format!("{found} {found:?}");
        assert!(!found.contains("swordfish"), "{text}\n{found}");
    }
    for json in [
        "{\"store\": {\"redis\": redis://:swordfish@a}}",
        "{\"store\": {\"redis\": \"redis://:swordfish@a}}",
        "{\"store\": {\"redis\": \"redis:\\q//:swordfish@a\"}}",
        "{\"store\": {\"redis\": \"redis://:swordfish@a\" \"swordfish\"}}",
        "{\"store\": {\"redis\": \"swordfish\", \"redis\": \"swordfish\"}}",
    ] {
        let found = PolicyFile::from_json(json).expect_err(json);
        let found = format!("{found} {found:?}");
        assert!(!found.contains("swordfish"), "{json}\n{found}");
    }
    #[cfg(feature = "yaml")]
    for yaml in [
        "store:\n  redis: 'redis://:swordfish@a",
        "store:\n  redis: \"redis:\\q//:swordfish@a\"",
        "store:\n  redis: redis://:swordfish@a\n  redis: redis://:swordfish@a",
        "store: { redis: redis://:swordfish@a",
        "store:\n  redis: redis://:swordfish@a\n swordfish: swordfish@a: b",
        "store:\n  redis: *swordfish",
        "store:\n  redis: !swordfish a",
    ] {
        let found = PolicyFile::from_yaml(yaml).expect_err(yaml);
        let found = format!("{found} {found:?}");
        assert!(!found.contains("swordfish@"), "{yaml}\n{found}");
    }
}

#[test]
fn a_program_without_the_store_is_told_what_to_do() {
    let text = format!(
        "[store]\nredis = '{URL}'\nfallback = 'open'\n[[rule]]\nname = 'a'\nlimit = '5/s'\n\
         [[rule]]\nname = 'b'\nstore = 'redis'\nlimit = ['5/s', '9/min']\n\
         [[rule]]\nname = 'c'\nlimit = 'unlimited'"
    );
    let found = Policy::from_toml(&text).expect_err("no store");
    let message = "store needs the store \"redis\", which must be a registered store; known: memory. \
                   The program has to connect to the server of [store], and to register a \
                   RedisStore as \"redis\" before it builds the policy";
    assert_eq!(found.to_string(), format!("2:9: error: {message}"));
}

/// Returns what is wrong with a limit on the store `redis`, which knows one limit.
fn refused(table: &str, limit: &str) -> String {
    let store = Store::here(|spec| Err(format!("must be `one`, not {:?}", spec.limits)));
    let builder = Policy::builder().store("redis", store);
    let builder = builder.algorithm("hourly", |_| FixedWindow::new(Quota::per_hour(1)));
    let rule = "[[rule]]\nname = 'a'\nstore = 'redis'\nfallback = 'open'\n";
    let found = builder.build_toml(&format!("{table}{rule}limit = '{limit}'"));
    found.expect_err(limit).to_string()
}

#[test]
fn a_limit_that_the_server_does_not_know_may_stay_in_memory() {
    let table = format!("store = {{ redis = '{URL}' }}\n");
    let hint = "; or keep it in memory: `store = \"memory\"`";
    for (table, limit, is_possible) in [
        (&*table, "intervals 5/s", true),
        (&table, "concurrency 5", true),
        (&table, "hourly 5", true),
        (&table, "5 fortnights", false),
        ("", "intervals 5/s", false),
    ] {
        let found = refused(table, limit);
        assert!(found.contains("but must be `one`"), "{found}");
        assert_eq!(found.ends_with(hint), is_possible, "{found}");
    }
}

#[test]
fn a_server_that_no_rule_uses_is_a_warning() {
    let expected = "2:9: warning: store has no effect: no rule is on the store \"redis\"";
    let file = read_rule("fallback = 'open'", "store = 'memory'");
    assert_eq!(warnings(&file).to_string(), expected);
    let file = read_rule("", "store = 'disk'\nfallback = 'open'");
    assert_eq!(warnings(&file).to_string(), expected);
    for rule in ["", "store = 'redis'"] {
        assert!(warnings(&read_rule("fallback = 'open'", rule)).is_empty());
    }
}

#[test]
fn a_password_in_the_file_is_a_warning() {
    let warned = |url: &str| {
        let text = format!(
            "store = {{ redis = {url}, fallback = 'open' }}\n[[rule]]\nname = 'a'\nlimit = '5/s'"
        );
        warnings(&read(&text)).to_string()
    };
    for url in [
        "'redis://:swordfish@a'",
        "'rediss://ann:swordfish@a/0'",
        "'redis://ann:sword@fish@a'",
        "'unix:///run/redis.sock?db=1&pass=swordfish'",
    ] {
        assert_eq!(
            warned(url),
            "1:19: warning: store.redis has a password in clear text; write the URL into a variable \
             of the environment, such as REDIS_URL, and here `redis = { env = \"REDIS_URL\" }`",
            "{url}"
        );
    }
    for url in [
        "'redis://a:6379'",
        "'redis://ann@a:6379/0?a=b:c@d'",
        "'redis://[2001:db8::5]:6379'",
        "'redis://ann:@a'",
        "'unix:///run/ann:b@c.sock?db=1'",
        "{ env = 'REDIS_URL' }",
    ] {
        assert_eq!(warned(url), "", "{url}");
    }
}
