//! A policy is the same in each format.

use tollgate_policy::file::PolicyFile;

use crate::guide::document::PAGE;
use crate::guide::examples;
use crate::guide::random_policies::{policy, policy_on_server};
use crate::random::Random;

/// Reads a policy in TOML, and as the same JSON and YAML.
fn assert_same(text: &str) {
    let file = PolicyFile::from_toml(text).expect(text);
    let value: toml::Value = toml::from_str(text).expect(text);
    let json = serde_json::to_string_pretty(&value).expect(text);
    assert_eq!(PolicyFile::from_json(&json).expect(&json), file);
    #[cfg(feature = "yaml")]
    for yaml in [serde_norway::to_string(&value).expect(text), json] {
        assert_eq!(PolicyFile::from_yaml(&yaml).expect(&yaml), file);
    }
}

#[test]
fn each_policy_of_the_page_is_the_same_in_each_format() {
    for example in examples().0 {
        assert_same(&example.policy);
    }
}

#[test]
fn random_policies_are_the_same_in_each_format() {
    for seed in 0..500 {
        assert_same(&policy(&mut Random(seed)));
        assert_same(&policy_on_server(&mut Random(seed)));
    }
}

#[test]
fn the_page_has_one_policy_in_each_format() {
    let block = |language: &str| {
        let (_, text) = PAGE
            .split_once(&format!("```{language}\n"))
            .expect(language);
        text.split_once("```").expect("an end").0
    };
    let section = "TOML, YAML and JSON";
    let (right, _) = examples();
    let example = right.iter().find(|example| example.section == section);
    let toml = PolicyFile::from_toml(&example.expect(section).policy).expect("a policy");
    assert_eq!(PolicyFile::from_json(block("json")), Ok(toml.clone()));
    let yaml: PolicyFile = serde_norway::from_str(block("yaml")).expect("a policy");
    assert_eq!(yaml, toml);
    #[cfg(feature = "yaml")]
    assert_eq!(PolicyFile::from_yaml(block("yaml")), Ok(toml));
}
