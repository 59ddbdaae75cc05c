//! Any text: a policy that is written as JSON and read as the same policy, or errors that say where
//! they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::file::PolicyFile;

fuzz_target!(|text: &str| {
    let _ = PolicyFile::from_json(text);
    match PolicyFile::from_toml(text) {
        Ok(file) => {
            let json = serde_json::to_string(&file).expect("a policy can be written");
            let same = serde_json::from_str::<PolicyFile>(&json);
            assert_eq!(same.expect("what is written can be read"), file, "{json}");
            let same = PolicyFile::from_json(&json);
            assert_eq!(same.expect("what is written can be read"), file, "{json}");
        }
        Err(problems) => {
            assert!(problems.has_errors());
            assert!(!problems.to_string().is_empty());
            for problem in &problems {
                assert!(problem.position.is_some(), "{problem}");
                assert!(!problem.message.is_empty());
            }
        }
    }
});
