//! Any text: a policy that serde reads as the same policy, or errors that say where they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::Problems;
use tollgate_policy::file::PolicyFile;

fuzz_target!(|text: &str| {
    if let Ok(file) = PolicyFile::from_json(text) {
        match serde_json::from_str::<PolicyFile>(text) {
            Ok(same) => assert_eq!(same, file),
            // A number that is too large for it is a number here.
            Err(error) => assert!(error.to_string().contains("out of range"), "{error}"),
        }
    }
    let toml = PolicyFile::from_toml(text).map_err(assert_positions);
    if let Ok(file) = toml {
        let same = toml::from_str::<PolicyFile>(text);
        assert_eq!(same.expect("serde reads it too"), file);
    }
    let yaml = PolicyFile::from_yaml(text).map_err(assert_positions);
    // JSON is YAML, except for some characters, and for lists of more than 128 KiB.
    if let (Ok(json), Ok(yaml)) = (PolicyFile::from_json(text), yaml) {
        assert_eq!(yaml, json);
    }
});

fn assert_positions(problems: Problems) {
    assert!(problems.has_errors());
    assert!(!problems.to_string().is_empty());
    for problem in &problems {
        assert!(problem.position.is_some(), "{problem}");
        assert!(!problem.message.is_empty());
    }
}
