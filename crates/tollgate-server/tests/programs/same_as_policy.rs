//! The service decides as the policy does.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;
use tollgate_policy::Policy;

use crate::Running;

/// Limits that do not refill while a test runs.
const POLICY: &str = "\
    [[deny]]\nname = 'bad'\nwhen = { path = '/admin/*' }\n\
    [[rule]]\nname = 'all'\nlimit = '40/365d'\n\
    [[rule]]\nname = 'user'\nkey = 'user'\nmissing = 'skip'\nlimit = '7/365d'\ncost = { estimate = 'bytes', default = 1 }\n\
    [[rule]]\nname = 'client'\nkey = ['client-ip', 'method']\nlimit = ['9/365d', 'fixed-window 12/365d']\n\
    [[rule]]\nname = 'soon'\nkey = 'client-ip'\nlimit = '2/365d'\nshadow = true";

fn facts() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let optional = |name, values: &'static [&'static str]| {
        let value = prop::option::weighted(0.9, prop::sample::select(values));
        value.prop_map(move |value| value.map(|value| (name, value.to_owned())))
    };
    (
        optional("user", &["ann", "bob", "Ann"]),
        optional(
            "client-ip",
            &["192.0.2.1", "2001:db8::1", "2001:db8::2", "no address"],
        ),
        optional("method", &["GET", "POST"]),
        optional("path", &["/", "/admin/x"]),
        optional("bytes", &["0", "1", "3", "9", "x"]),
    )
        .prop_map(|(a, b, c, d, e)| [a, b, c, d, e].into_iter().flatten().collect())
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(40) })]

    #[test]
    fn any_questions_are_answered_as_the_policy_decides(
        questions in prop::collection::vec((facts(), 1..4usize), 1..30),
    ) {
        let policy = Policy::from_toml(POLICY).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let service = Running::start(POLICY).await;
            for (facts, times) in &questions {
                let ask = json!({"facts": facts.iter().cloned().collect::<HashMap<_, _>>()});
                let asks = vec![ask; *times];
                let said = service.decide(json!(asks)).await;
                for said in said.as_array().unwrap() {
                    let decided = policy.decide(facts);
                    let left: Vec<_> = decided.asked().filter(|it| !it.is_shadow()).collect();
                    prop_assert_eq!(said["allowed"].as_bool(), Some(decided.is_allowed()));
                    prop_assert_eq!(said.get("rule").and_then(|it| it.as_str()), decided.denied_by());
                    let said: Vec<_> = said["limits"].as_array().unwrap().iter().collect();
                    prop_assert_eq!(said.len(), left.len());
                    for (said, left) in said.iter().zip(left) {
                        prop_assert_eq!(said["rule"].as_str(), Some(left.rule()));
                        prop_assert_eq!(said["remaining"].as_u64(), Some(left.remaining()));
                        prop_assert_eq!(said["cost"].as_u64(), Some(left.cost()));
                    }
                }
            }
            service.end().await;
            Ok(())
        })?;
    }
}
