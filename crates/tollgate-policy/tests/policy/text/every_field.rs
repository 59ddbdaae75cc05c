//! Every field is read, and the same from each format.

use std::time::Duration;

use tollgate::keyed::Overflow;
use tollgate_policy::file::{
    Applies, Apply, BanOf, CountOf, Failure, Fallback, MissingFact, PolicyFile, Rule, SecretSource,
    SeenPath,
};
use tollgate_policy::when::Test;
use tollgate_policy::{FactName, Position};

use crate::text::{EVERY_FIELD, JSON, YAML};

fn every_field() -> PolicyFile {
    PolicyFile::from_toml(EVERY_FIELD).unwrap_or_else(|problems| panic!("{problems}"))
}

fn rule<'f>(file: &'f PolicyFile, name: &str) -> &'f Rule {
    let found = file.rules.iter().find(|rule| rule.name.value == name);
    found.expect("the rule is there")
}

#[test]
fn every_field_is_read() {
    let file = every_field();
    assert_eq!(file.apply, Apply::All);
    assert_eq!(file.memory.map(|memory| memory.value), Some(512 << 20));
    assert_eq!(file.facts.as_ref().map(Vec::len), Some(4));
    let secret = file.key_secret.as_ref().map(|secret| &secret.value);
    let expected = SecretSource::Env("TOLLGATE_KEY_SECRET".into());
    assert_eq!(secret, Some(&expected));
    let trust = file.client.trust.iter().flatten();
    let trust: Vec<_> = trust.map(|network| network.to_string()).collect();
    assert_eq!(trust, ["10.1.0.0/16", "10.2.0.7/32"]);
    let header = file.client.header.as_ref().map(|header| header.as_str());
    assert_eq!(header, Some("x-forwarded-for"));
    assert_eq!(file.client.hops, Some(2.into()));
    assert_eq!(file.client.path, Some(SeenPath::Normalized));
    let store = file.store.as_ref().expect("a server");
    assert_eq!(store.redis.value, SecretSource::Env("REDIS_URL".into()));
    assert_eq!(store.namespace.value, "shop:eu");
    assert_eq!(store.budget, Some(Duration::from_millis(20).into()));
    assert_eq!(store.fallback, Some(Fallback::Open.into()));
    assert_eq!(
        (file.deny.len(), file.allow.len(), file.rules.len()),
        (2, 1, 6)
    );

    let login = rule(&file, "login");
    assert_eq!(login.name.position, Some(Position::new(23, 12)));
    assert_eq!(login.key, ["client-ip".to_owned().into()]);
    assert_eq!(login.missing, MissingFact::Deny);
    assert_eq!((*login.network.v4, *login.network.v6), (24, 48));
    assert_eq!(login.limits.len(), 2);
    assert_eq!(login.overrides[1].key.value, ["192.0.3.8"]);
    assert_eq!(login.cost.default.value, 3);
    assert_eq!(login.count, CountOf::Failures);
    let failures: Vec<_> = login.failures.iter().map(|failure| failure.value).collect();
    let named = [Failure::Status(401), Failure::Class(5), Failure::Grpc(16)];
    assert_eq!(failures, named);
    let ban = login.ban.as_ref().expect("a ban");
    assert_eq!(ban.of, BanOf::Failures);
    assert_eq!((*ban.after, *ban.duration), (3, Duration::from_secs(600)));
    assert_eq!(ban.within, Some(Duration::from_secs(3600).into()));
    assert_eq!(login.also.len(), 2);
    assert_eq!(
        (login.capacity.value, login.overflow),
        (1_000_000, Overflow::Deny)
    );
    assert!(!login.shadow);
    assert_eq!(login.status, Some(429.into()));
    assert_eq!(login.store.value, "redis");
    assert_eq!(login.fallback, store.fallback);
    let statuses: Vec<_> = file.deny.iter().map(|entry| entry.status).collect();
    assert_eq!(statuses, [Some(451.into()), None]);
    assert_eq!(file.allow[0].status, None);

    let members = rule(&file, "members");
    assert!(members.is_limit && !login.is_limit);
    assert_eq!(members.when.value, Applies::Never);
    assert_eq!(members.overrides[0].limit.value, "unlimited");

    let whole = rule(&file, "whole-service");
    assert_eq!(
        (&whole.when.value, whole.overflow),
        (&Applies::Never, Overflow::Admit)
    );
    assert_eq!((whole.key.len(), whole.capacity.value), (0, 100_000));
    assert_eq!((*whole.network.v4, *whole.network.v6), (31, 64));
    assert_eq!(
        (whole.store.as_str(), whole.cost.default.value),
        ("memory", 1)
    );
}

#[test]
fn every_form_of_cost_plan_and_fallback_is_read() {
    let file = every_field();
    let tokens = rule(&file, "tokens");
    let name = |name: &str| Some(FactName::new(name).into());
    assert_eq!(tokens.cost.estimate, name("header:x-estimated-tokens"));
    assert_eq!(tokens.cost.settle, name("response-header:x-tokens-used"));
    assert_eq!(tokens.cost.max, Some(100_000.into()));
    assert_eq!(tokens.key[2].value, "header:x-api-key");
    assert_eq!(
        (tokens.missing, tokens.count),
        (MissingFact::Skip, CountOf::Successes)
    );
    assert!(tokens.shadow);
    assert_eq!(tokens.overrides[0].key.value, ["acme", "7", "secret"]);
    let local = Fallback::Local {
        processes: 4.into(),
        keys: 10_000.into(),
    };
    let fallback = |rule: &Rule| rule.fallback.clone().map(|fallback| fallback.value);
    assert_eq!(fallback(tokens), Some(local));

    let plans = rule(&file, "plans");
    assert_eq!(plans.missing, MissingFact::Shared);
    assert_eq!(
        fallback(plans),
        Some(Fallback::OpenAtMost {
            at_most: 100.into(),
            per: Some(Duration::from_secs(60).into()),
        })
    );
    assert_eq!(plans.cost.estimate, name("query:weight"));
    let plan = plans.plan.as_ref().expect("plans");
    let names: Vec<&str> = plan.limits.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((plan.by.as_str(), names), ("tier", vec!["free", "pro"]));
    assert_eq!(plan.default, Some("free".to_owned().into()));
    assert_eq!(fallback(rule(&file, "closed")), Some(Fallback::Closed));
}

#[test]
fn conditions_keep_their_facts_and_alternatives() {
    let file = every_field();
    let Applies::When(when) = &rule(&file, "tokens").when.value else {
        panic!("the rule has conditions");
    };
    let facts: Vec<&str> = when
        .all
        .iter()
        .map(|condition| condition.fact.as_str())
        .collect();
    assert_eq!(facts, ["path", "host", "tenant", "user", "tier", "flag"]);
    assert_eq!(when.any.len(), 2);
    assert!(when.any[1].not.is_some());
    let tests: Vec<&Test> = file.allow[0].when.all.iter().map(|c| &c.test).collect();
    assert!(matches!(
        tests[..],
        [Test::OneOf(_), Test::Present, Test::Absent]
    ));
}

#[test]
fn the_same_policy_in_json_or_yaml_is_read_the_same() {
    let file = every_field();
    let toml = toml::from_str::<PolicyFile>(EVERY_FIELD);
    assert_eq!(toml.expect("serde reads it"), file);
    assert_eq!(PolicyFile::from_json(JSON).expect(JSON), file);
    #[cfg(feature = "yaml")]
    assert_eq!(PolicyFile::from_yaml(YAML).expect(YAML), file);
    assert_eq!(serde_json::from_str::<PolicyFile>(JSON).expect(JSON), file);
    assert_eq!(
        serde_norway::from_str::<PolicyFile>(YAML).expect(YAML),
        file
    );
}

#[test]
fn yaml_is_read_as_the_same_toml() {
    let yaml = "
rule:
  - name: login
    when: { method: POST, path: /login }
    key: client-ip
    limit: 5/min
    ban: { after: 3, for: 10min }
";
    let toml = "
[[rule]]
name  = 'login'
when  = { method = 'POST', path = '/login' }
key   = 'client-ip'
limit = '5/min'
ban   = { after = 3, for = '10min' }
";
    let from_yaml: PolicyFile = serde_norway::from_str(yaml).expect("a policy");
    assert_eq!(PolicyFile::from_toml(toml), Ok(from_yaml));
}

#[test]
fn the_number_0_is_the_limit_0() {
    let toml = |zero: &str| {
        format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = {zero}\n\
             override = [{{ key = 'ann', limit = {zero} }}]\n\
             [[rule]]\nname = 'b'\nplan = {{ by = 'tier', none = {zero}, free = '5/h' }}\n\
             [[limit]]\nname = 'c'\nlimit = [{zero}]\n"
        )
    };
    let file = PolicyFile::from_toml(&toml("'0'")).expect("a policy");
    assert_eq!(PolicyFile::from_toml(&toml("0")), Ok(file.clone()));
    let yaml = "
rule:
  - name: a
    key: user
    limit: 0
    override: [{ key: ann, limit: 0 }]
  - { name: b, plan: { by: tier, none: 0, free: 5/h } }
limit:
  - { name: c, limit: [0] }
";
    let read = serde_norway::from_str::<PolicyFile>(yaml);
    assert_eq!(read.expect("a policy"), file);
    #[cfg(feature = "yaml")]
    assert_eq!(PolicyFile::from_yaml(yaml), Ok(file.clone()));
    let json = r#"{
        "rule": [
            { "name": "a", "key": "user", "limit": 0, "override": [{ "key": "ann", "limit": 0 }] },
            { "name": "b", "plan": { "by": "tier", "none": 0, "free": "5/h" } }
        ],
        "limit": [{ "name": "c", "limit": [0] }]
    }"#;
    assert_eq!(PolicyFile::from_json(json), Ok(file));

    for wrong in ["5", "-1", "0.0", "false", "[0, '0']"] {
        let text = format!("[[rule]]\nname = 'a'\nlimit = {wrong}");
        assert!(PolicyFile::from_toml(&text).is_err(), "{wrong}");
    }
    // Other names and texts are not limits.
    for wrong in ["name = 0", "name = 'a'\nkey = 0", "name = 'a'\nalso = 0"] {
        let text = format!("[[rule]]\nlimit = '5/h'\n{wrong}");
        assert!(PolicyFile::from_toml(&text).is_err(), "{wrong}");
    }
}

#[test]
fn the_error_of_a_format_without_positions_lists_all_errors() {
    let json = r#"{ "Apply": "all", "rule": [{ "name": "a", "limit": 5 }, { "limit": null }, 7] }"#;
    let error = serde_json::from_str::<PolicyFile>(json).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error: Apply is not a field of a policy; did you mean `apply`? \
         Known: apply, memory, facts, client, store, key-secret, deny, allow, rule, limit\n\
         error: rule \"a\": limit is 5, but must be text such as \"5/min\", or a list of such texts\n\
         error: rule 2: name is missing\n\
         error: rule 2: limit is null, but must be text such as \"5/min\", or a list of such texts\n\
         error: rule 3 is 7, but must be a table"
    );
}

#[test]
fn a_field_that_is_given_twice_is_an_error_in_json() {
    let error = serde_json::from_str::<PolicyFile>(r#"{ "apply": "all", "apply": "first" }"#);
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("the field \"apply\" is given twice"),
        "{error}"
    );
}

#[test]
fn a_policy_must_be_a_table() {
    let error = serde_json::from_str::<PolicyFile>("[1]").unwrap_err();
    assert_eq!(
        error.to_string(),
        "error: the policy is [1], but must be a table"
    );
}

#[test]
fn a_rule_that_only_moved_is_equal() {
    let moved = format!("\n\n{EVERY_FIELD}");
    assert_eq!(PolicyFile::from_toml(&moved), Ok(every_field()));
    let changed = EVERY_FIELD.replace("5/min", "6/min");
    assert_ne!(PolicyFile::from_toml(&changed), Ok(every_field()));
}
