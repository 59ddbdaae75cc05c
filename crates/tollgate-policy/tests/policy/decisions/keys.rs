//! What makes two requests share a limit, and where the facts that the program computes count.

use std::net::IpAddr;

use tollgate::{AnyAlgorithm, ManualClock};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{FactName, FactValue, FactValues, Facts, Outcome, Policy, Reason, explain};

use crate::decisions::policy;

/// A request with one value for each fact that it has.
struct Request<'r>(&'r [(&'r str, FactValue<'r>)]);

impl Facts for Request<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        let found = self.0.iter().find(|(known, _)| *known == name.as_str());
        found.map(|(_, value)| value.clone())
    }
}

/// A rule that each key passes once.
fn once(rest: &str) -> Policy<ManualClock> {
    policy(&format!("[[rule]]\nname = 'a'\nlimit = '1/h'\n{rest}"))
}

#[test]
fn different_parts_are_different_keys() {
    let policy = once("key = ['x', 'y', 'z']\nmissing = 'shared'");
    let long = "a".repeat(300);
    let longer = "a".repeat(301);
    let texts = [
        None,
        Some(""),
        Some("a"),
        Some("ab"),
        Some("b"),
        Some("\u{0}"),
        Some("\u{1}"),
        Some("a\u{2}"),
        Some("\u{1}a\u{2}"),
        Some(long.as_str()),
        Some(longer.as_str()),
    ];
    for x in texts {
        for y in texts {
            for z in texts {
                let parts = [("x", x), ("y", y), ("z", z)];
                let facts = parts
                    .iter()
                    .filter_map(|(name, text)| Some((*name, (*text)?)));
                let facts: Vec<_> = facts.collect();
                let is_first = policy.decide(&facts).is_allowed();
                assert!(is_first, "{x:?} {y:?} {z:?}");
                assert!(!policy.decide(&facts).is_allowed());
            }
        }
    }
}

#[test]
fn an_address_and_its_text_are_one_key_only_where_an_address_is_expected() {
    let address = IpAddr::from([10, 0, 0, 7]);
    let mapped: IpAddr = "::ffff:10.0.0.7".parse().expect("an address");
    let policy = once("key = 'client-ip'");
    let ask = |value: FactValue<'_>| {
        policy
            .decide(&Request(&[("client-ip", value)]))
            .is_allowed()
    };
    assert!(ask(address.into()));
    assert!(!ask("64:ff9b::10.0.0.7".into()) && ask("64:ff9b::10.0.0.8".into()));
    assert!(!ask(mapped.into()) && !ask("10.0.0.7".into()) && !ask(" ::ffff:10.0.0.7 ".into()));
    // With a text that is no address, the key is missing.
    for text in ["10.0.0.7:80x", "", "ann"] {
        let denied = policy.decide(&[("client-ip", text)]);
        assert_eq!(
            denied.reason(),
            Some(Reason::MissingKey { rule: "a" }),
            "{text}"
        );
    }

    let policy = once("key = 'peer'");
    let ask = |value: FactValue<'_>| policy.decide(&Request(&[("peer", value)])).is_allowed();
    assert!(ask("10.0.0.7".into()) && ask("::ffff:10.0.0.7".into()));
    assert!(ask(7.into()) && !ask("7".into()) && ask("07".into()));
}

#[test]
fn other_spellings_of_a_path_or_host_are_one_key() {
    let policy = once("key = ['host', 'path']");
    let ask = |host: &str, path: &str| {
        policy
            .decide(&[("host", host), ("path", path)])
            .is_allowed()
    };
    assert!(ask("example.com", "/a/b"));
    for (host, path) in [
        ("EXAMPLE.com", "/a/b"),
        ("example.com:8443", "/a/b"),
        ("example.com", "//a/b/"),
        ("example.com", "/a/b?x=1"),
    ] {
        assert!(!ask(host, path), "{host} {path}");
    }
    assert!(ask("example.org", "/a/b") && ask("example.com", "/A/b"));
}

#[test]
fn a_captured_part_of_the_path_is_the_key_and_no_other_fact_of_that_name() {
    let policy = once("when = { path = '/orders/{id}' }\nkey = 'path:id'");
    let ask = |path: &str| {
        policy
            .decide(&[("path", path), ("path:id", "1")])
            .is_allowed()
    };
    assert!(ask("/orders/7") && ask("/orders/8"));
    assert!(!ask("//orders/7/?a=1"));
}

#[test]
fn an_override_is_of_the_address_whose_key_it_is() {
    let policy = once(
        "key = ['client-ip', 'host']\nnetwork = { v4 = 24 }\n\
         override = [{ key = ['10.0.0.1', 'A.example:80'], limit = '3/h' }]",
    );
    let ask = |ip: &str, host: &str| {
        policy
            .decide(&[("client-ip", ip), ("host", host)])
            .remaining()
    };
    assert_eq!(ask("::ffff:10.0.0.200", "a.example"), Some(2));
    assert_eq!(ask("10.0.1.1", "a.example"), Some(0));
    assert_eq!(ask("10.0.0.1", "b.example"), Some(0));
}

#[test]
fn two_overrides_of_one_key_in_other_spellings_are_an_error() {
    let text = "[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '1/h'\nnetwork = { v4 = 24 }\n\
                override = [{ key = '10.0.0.1', limit = '3/h' }, { key = '10.0.0.2', limit = '4/h' }]";
    let problems = Policy::from_toml(text).expect_err("both are the key 10.0.0.0/24");
    assert_eq!(problems.iter().count(), 1, "{problems}");
    let text = problems.to_string();
    assert!(
        text.contains("override[2].key") && text.contains("10.0.0.2"),
        "{text}"
    );
}

#[test]
fn a_captured_part_of_the_path_says_the_cost_and_the_plan() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nwhen = { path = '/{tier}/{n}' }\ncost = 'path:n'\n\
         plan = { by = 'path:tier', free = '10/h', pro = '100/h' }",
    );
    assert_eq!(policy.decide(&[("path", "/pro/7")]).remaining(), Some(93));
    assert_eq!(policy.decide(&[("path", "/free/7")]).remaining(), Some(3));
}

#[test]
fn a_fact_that_the_program_computes_counts_in_the_lists_too() {
    let builder = Policy::builder().clock(ManualClock::new());
    let user = FactName::new("user");
    let builder = builder.resolver("tenant", move |facts| {
        let tenant = facts.fact(&user)?.as_text().split_once('/')?.0.to_owned();
        Some(tenant.into())
    });
    let policy = builder.build_toml(
        "[[deny]]\nname = 'evil'\nwhen = { tenant = 'evil' }\n\
         [[allow]]\nname = 'ours'\nwhen = { tenant = 'ours' }\n\
         [[rule]]\nname = 'a'\nlimit = '5/h'",
    );
    let policy = policy.expect("a policy");
    assert_eq!(
        policy.decide(&[("user", "evil/ann")]).denied_by(),
        Some("evil")
    );
    assert_eq!(
        policy.decide(&[("user", "ours/ann")]).exempted_by(),
        Some("ours")
    );
    assert_eq!(policy.decide(&[("user", "acme/ann")]).remaining(), Some(4));
}

#[test]
fn deny_wins_over_allow() {
    let policy = policy(
        "[[allow]]\nname = 'a'\nwhen = { x = true }\n\
         [[deny]]\nname = 'd'\nwhen = { y = true }\n\
         [[rule]]\nname = 'r'\nlimit = '1/h'",
    );
    let both = policy.decide(&[("x", ""), ("y", "")]);
    assert_eq!((both.denied_by(), both.exempted_by()), (Some("d"), None));
    assert_eq!(both.finish(Outcome::Success, &()).returned, 0);
    for _ in 0..3 {
        let free = policy.decide(&[("x", "")]);
        assert_eq!((free.exempted_by(), free.remaining()), (Some("a"), None));
    }
}

#[test]
fn an_override_that_no_limit_of_the_rule_can_have_is_an_error() {
    let own = "override = [{ key = 'acme', limit = '10/h' }]";
    for limit in ["'concurrency 5'", "'hourly'", "['concurrency 5', 'hourly']"] {
        let builder = Policy::builder().algorithm("hourly", |_| "5/h".parse::<AnyAlgorithm>());
        let text = format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = {limit}\n{own}");
        let problems = builder.build_toml(&text).expect_err(limit).to_string();
        assert!(
            problems.contains("5:21: error: rule \"a\": override needs a limit that is a rate"),
            "{problems}"
        );
    }
    let mixed = policy(&format!(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['concurrency 5', '7/h']\n{own}"
    ));
    let decision = mixed.decide(&[("user", "acme")]);
    let remaining: Vec<_> = decision.asked().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [4, 9]);
}

#[test]
fn a_cost_is_settled_by_a_fact_that_the_program_computes() {
    let builder = Policy::builder().clock(ManualClock::new());
    let parts = ["response-header:in", "response-header:out"].map(FactName::new);
    let builder = builder.resolver("tokens", move |facts| {
        let part = |name| facts.fact(name)?.as_number();
        let [read, written] = &parts;
        Some((part(read)? + part(written)?).into())
    });
    let policy = builder.build_toml(
        "[[rule]]\nname = 'a'\nlimit = '100/h'\ncost = { default = 50, settle = 'tokens' }",
    );
    let policy = policy.expect("a policy");
    let answer = [("response-header:in", "7"), ("response-header:out", "3")];
    assert_eq!(policy.decide(&()).settle(&answer).returned, 40);
    // Without a part there is no such fact.
    assert_eq!(policy.decide(&()).settle(&answer[..1].to_vec()).returned, 0);
}

/// A resolver that reads a fact with several values computes an ambiguous value, although it can't
/// say so.
#[test]
fn a_resolver_of_several_values_has_none() {
    let decide = |rule: &str| {
        let customer = FactName::new("header:x-customer");
        let builder = Policy::builder().resolver("tenant", move |facts| {
            let tenant = facts.fact(&customer)?.as_text().get(..1)?.to_owned();
            Some(tenant.into())
        });
        let text = format!("[[rule]]\nname = 'a'\nlimit = '9/h'\n{rule}");
        let policy = builder.build_toml(&text).unwrap();
        let one = [("header:x-customer", "ann"), ("header:x-customer", "ann")];
        assert!(policy.decide(&one).is_allowed(), "{rule}");
        let several = [("header:x-customer", "ann"), ("header:x-customer", "bob")];
        let decision = policy.decide(&several);
        format!("{:?}", decision.reason())
    };
    for rule in [
        "key = 'tenant'\nmissing = 'skip'",
        "key = 'tenant'\nrepeated = 'first'",
        "when = { tenant = 'a' }",
        "cost = 'tenant'",
    ] {
        assert_eq!(decide(rule), "Some(Ambiguous { rule: \"a\" })", "{rule}");
    }
}

/// The first rule is an exemption from those that follow. A client that adds a line for it, beside
/// the one that another program has set, is not exempt.
#[test]
fn a_second_line_avoids_no_rule() {
    for tier in [
        "header.x-tier = 'partner'",
        "not = { header.x-tier = 'guest' }",
        "any = [{ header.x-tier = 'partner' }, { path = '/' }]",
    ] {
        let text = format!(
            "[[rule]]\nname = 'partners'\nwhen = {{ {tier} }}\nlimit = '9/h'\n\
             [[rule]]\nname = 'guests'\nlimit = '1/h'"
        );
        let policy = policy(&text);
        let file = PolicyFile::from_toml(&text).unwrap();
        let asks = |request: &[(&'static str, &'static str)]| {
            let decision = policy.decide(&request);
            let asked: Vec<_> = decision.asked().map(|it| it.rule().to_owned()).collect();
            let explained = explain(&file, &request).rules.into_iter();
            let applies = explained.filter(|rule| rule.asks.is_some());
            assert!(
                applies.map(|rule| rule.name).eq(asked.iter().cloned()),
                "{tier}"
            );
            (decision.is_allowed(), asked.join(" "))
        };
        let one = [("header:x-tier", "partner")];
        let same = [one[0], one[0]];
        assert_eq!(asks(&one), (true, "partners".into()), "{tier}");
        assert_eq!(asks(&same), (true, "partners".into()), "{tier}");
        let both = [one[0], ("header:x-tier", "guest")];
        let asked = "partners guests".to_owned();
        assert_eq!(asks(&both), (true, asked.clone()), "{tier}");
        assert_eq!(asks(&both), (false, asked), "{tier}");
    }
}

/// A rule that another one names applies by its own conditions too, and these may be ambiguous.
#[test]
fn a_rule_that_is_skipped_where_it_is_named_is_explained_as_it_decides() {
    /// A request with more parameters than are read.
    struct Many;

    impl Facts for Many {
        fn fact(&self, _: &FactName) -> Option<FactValue<'_>> {
            None
        }

        fn values(&self, name: &FactName) -> FactValues<'_> {
            match name.as_str() {
                "query:slow" => FactValues::NONE.and_more(),
                _ => FactValues::NONE,
            }
        }
    }

    let text = "apply = 'all'\n\
                [[rule]]\nname = 'a'\nlimit = '9/h'\nalso = ['b']\n\
                [[rule]]\nname = 'b'\nwhen = { query.slow = '1' }\nkey = 'user'\n\
                missing = 'skip'\nlimit = '9/h'";
    let decided = policy(text);
    let decided = decided.decide(&Many);
    let explained = explain(&PolicyFile::from_toml(text).unwrap(), &Many);
    assert_eq!(decided.reason(), Some(Reason::Ambiguous { rule: "b" }));
    let denies = |name: &str| {
        let rule = explained.rules.iter().find(|rule| rule.name == name)?;
        rule.asks.as_ref()?.denies.as_ref()
    };
    assert!(denies("b").is_some(), "{explained}");
}
