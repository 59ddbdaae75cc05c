//! Names that are probably misspelled, and fields that became conditions.

use tollgate::ManualClock;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Policy, warnings};

fn warned(fields: &str) -> String {
    let text = format!("[[rule]]\nname = 'a'\nlimit = '1/s'\n{fields}\n");
    let file = PolicyFile::from_toml(&text).unwrap_or_else(|problems| panic!("{problems}"));
    warnings(&file).to_string()
}

#[test]
fn a_slip_in_a_name_that_each_policy_knows_is_found_in_each_field() {
    let why = |name: &str| {
        format!(
            "is probably misspelled; did you mean `{name}`? If the program supplies such a fact, \
             list it in `facts`"
        )
    };
    assert_eq!(
        warned("when = { any = [{ methods = 'POST' }], not = { pth = '/a' } }"),
        format!(
            "4:8: warning: rule \"a\": when.methods {}\n4:8: warning: rule \"a\": when.pth {}",
            why("method"),
            why("path")
        )
    );
    for (fields, field, value, name) in [
        (
            "key = 'client_ip'",
            "4:7",
            "key is \"client_ip\"",
            "client-ip",
        ),
        ("key = ['user', 'Path']", "4:16", "key is \"Path\"", "path"),
        ("cost = 'hsot'", "4:8", "cost.estimate is \"hsot\"", "host"),
        (
            "cost = { settle = 'clientip' }",
            "4:19",
            "cost.settle is \"clientip\"",
            "client-ip",
        ),
    ] {
        let message = format!("{field}: warning: rule \"a\": {value}, but {}", why(name));
        assert_eq!(warned(fields), message);
    }
    let plan = "[[rule]]\nname = 'a'\nplan = { by = 'METHOD', free = '1/s' }";
    let file = PolicyFile::from_toml(plan).expect("a policy");
    assert!(
        warnings(&file)
            .to_string()
            .contains("plan.by is \"METHOD\"")
    );
    let entry = "[[deny]]\nname = 'a'\nwhen = { Host = 'x' }";
    let file = PolicyFile::from_toml(entry).expect("a policy");
    assert!(
        warnings(&file)
            .to_string()
            .starts_with("2:8: warning: deny \"a\": when.Host ")
    );
}

#[test]
fn a_slip_before_the_dot_of_a_name_in_two_parts_is_found() {
    for (name, meant) in [
        ("headers.x-api-key", "header.x-api-key"),
        ("Header.X-Api-Key", "header.X-Api-Key"),
        ("HEADERS.x", "header.x"),
        ("que-ry.page", "query.page"),
        ("Query.page", "query.page"),
        ("cookies.session", "cookie.session"),
        ("paths.id", "path.id"),
        ("response_headers.x", "response-header.x"),
        ("headers.x.y", "header.x.y"),
    ] {
        let why = format!(
            "is probably misspelled; did you mean `{meant}`? If the program supplies such a fact, \
             list it in `facts`"
        );
        assert_eq!(
            warned(&format!("key = '{name}'")),
            format!("4:7: warning: rule \"a\": key is \"{name}\", but {why}")
        );
        assert_eq!(
            warned(&format!("when = {{ '{name}' = true }}")),
            format!("4:8: warning: rule \"a\": when.{name} {why}")
        );
    }
    // After a colon, it is an error.
    let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\nkey = 'headers:x'";
    let errors = PolicyFile::from_toml(text)
        .expect_err("no such kind")
        .to_string();
    assert!(errors.contains("did you mean `header:`?"), "{errors}");
}

#[test]
fn names_that_can_be_meant_are_not_warned_of() {
    for name in [
        "user",
        "tenant",
        "tier",
        "ip",
        "client",
        "client-id",
        "clientid",
        "remote-address",
        "cost",
        "post",
        "pat",
        "hot",
        "ghost",
        "hash",
        "math",
        "paths",
        "hosts",
        "match",
        "route",
        "proxy",
        "region",
        "asn",
        "account",
        "device",
        "session",
        "math.x",
        "patch.x",
        "leader.x",
        "claims.sub",
        "user.id",
        "hosts.x",
        "headers",
        "cookies",
    ] {
        assert_eq!(warned(&format!("key = '{name}'")), "", "{name}");
        assert_eq!(
            warned(&format!("when = {{ '{name}' = 'x' }}")),
            "",
            "{name}"
        );
    }
}

#[test]
fn a_name_that_the_program_lists_or_registers_is_not_warned_of() {
    let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\nkey = 'client_ip'\n";
    let check = |text: &str| {
        let builder = Policy::builder().clock(ManualClock::new());
        let builder = builder.resolver("clientip", |_| None);
        builder.check_toml(text).to_string()
    };
    assert!(check(text).contains("did you mean `client-ip`?"));
    assert_eq!(check(&text.replace("client_ip", "clientip")), "");
    assert_eq!(check(&format!("facts = ['client_ip']\n{text}")), "");
}

#[test]
fn a_field_below_the_conditions_became_a_condition() {
    let below = |field: &str| {
        let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\n[rule.when]\nmethod = 'GET'\n";
        let file = PolicyFile::from_toml(&format!("{text}{field}\n")).expect("a policy");
        warnings(&file).to_string()
    };
    assert_eq!(
        below("capacity = 5"),
        "4:1: warning: rule \"a\": when.capacity is a condition, not the field `capacity` of the \
         rule; in TOML, write the field before `[rule.when]`. If the program supplies such a fact, \
         list it in `facts`"
    );
    for field in [
        "key = 'client-ip'",
        "key = 'header:x-id'",
        "cost = 3",
        "count = 'failures'",
        "missing = 'skip'",
        "shadow = true",
        "overflow = 'deny'",
        "store = 'redis'",
        "fallback = 'closed'",
    ] {
        let name = field.split(' ').next().expect("a name");
        assert!(
            below(field).contains(&format!("not the field `{name}`")),
            "{field}"
        );
    }
    for condition in [
        "store = 'berlin'",
        "plan = 'pro'",
        "count = ['all', 'none']",
        "key = 'k1'",
        "limit = 'none'",
        "cost = 'high'",
        "missing = 'no'",
        "name = 'ann'",
    ] {
        assert_eq!(below(condition), "", "{condition}");
    }
}
