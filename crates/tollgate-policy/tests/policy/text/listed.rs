//! Names of keys and plans that the file does not list as facts.

use tollgate_policy::file::PolicyFile;

#[test]
fn names_of_keys_and_plans_are_listed_or_registered() {
    let rule = "[[rule]]\nname = 'a'\nkey = ['client-ip', 'header:x', 'usr', 'shard']\n\
                plan = { by = 'tier', free = '1/s' }\n";
    let check = |facts: &str| {
        let text = format!("{facts}\n{rule}");
        let file = PolicyFile::from_toml(&text).unwrap_or_else(|problems| panic!("{problems}"));
        let problems = file.check_facts(|name| name == "shard");
        let fields = problems
            .iter()
            .map(|problem| format!("{} {}", problem.field, problem.value));
        fields.collect::<Vec<_>>()
    };
    assert!(check("").is_empty());
    let unknown = ["rule \"a\": key \"usr\"", "rule \"a\": plan.by \"tier\""];
    assert_eq!(check("facts = ['user']"), unknown);
    assert_eq!(check("facts = ['tier']"), unknown[..1]);
    assert!(check("facts = ['usr', 'tier']").is_empty());
}
