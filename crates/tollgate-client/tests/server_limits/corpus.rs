//! The forms that real servers use, with their readings: the files of `tests/corpus`.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use tollgate_client::ServerLimits;

use crate::{headers, lines};

/// An answer: its fields, and what a client must read.
#[derive(Default)]
struct Case<'a> {
    title: &'a str,
    now: u64,
    fields: Vec<(&'a str, &'a str)>,
    expected: Vec<&'a str>,
}

/// Reads the cases of a file. A case begins with a line `== TITLE`, then has `now SECONDS`, the
/// fields, and what is read, in lines that begin with `>`.
fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case {
                title,
                ..Case::default()
            });
            continue;
        }
        let case = cases.last_mut().expect("a title first");
        if let Some(expected) = line.strip_prefix("> ") {
            case.expected.push(expected);
        } else if let Some(now) = line.strip_prefix("now ") {
            case.now = now.parse().expect("seconds since 1970");
        } else {
            case.fields.push(line.split_once(": ").expect("a field"));
        }
    }
    cases
}

#[test]
fn each_answer_of_the_corpus_is_read_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = 0;
    let mut answers = 0;
    for entry in fs::read_dir(folder).expect("the corpus") {
        let path = entry.expect("a file").path();
        files += 1;
        let text = fs::read_to_string(&path).expect("text");
        for case in cases(&text) {
            answers += 1;
            assert!(
                !case.fields.is_empty() && !case.expected.is_empty(),
                "{}",
                case.title
            );
            let now = UNIX_EPOCH + Duration::from_secs(case.now);
            let said = ServerLimits::read(&headers(&case.fields), now);
            let mut found = lines(&said);
            found.extend(said.retry_after.map(|wait| format!("retry after {wait:?}")));
            if found.is_empty() {
                found.push("nothing".to_owned());
            }
            assert_eq!(found, case.expected, "{}: {}", path.display(), case.title);
        }
    }
    assert!(
        files >= 6 && answers >= 30,
        "{files} files, {answers} answers"
    );
}
