//! JSON is read as serde_json reads it, with positions.

use serde_json::Value;
use tollgate_policy::file::PolicyFile;

use crate::text::JSON;

/// Returns what is wrong with the syntax of a text.
fn syntax_error(text: &str) -> Option<String> {
    let problems = PolicyFile::from_json(text).err()?;
    for problem in &problems {
        assert!(problem.position.is_some(), "{problem}\n{text}");
    }
    let problem = problems.iter().next()?;
    let why = problem.message.strip_prefix("the text is not JSON: ")?;
    Some(why.to_owned())
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        ((self.0 >> 33) % end as u64) as usize
    }
}

#[test]
fn positions_are_those_of_the_text() {
    let file = PolicyFile::from_json(JSON).unwrap();
    let name = file.rules[0].name.position.unwrap();
    let line = JSON.lines().nth(name.line - 1).unwrap();
    assert!(line.contains("\"name\""), "{line}");
    assert!(
        line.get(name.column - 1..).unwrap().starts_with('"'),
        "{line}"
    );
}

#[test]
fn texts_are_decoded() {
    let escaped = r#"{ "facts": ["\" \\ \/ \b\f\n\r\t \u00e9 \ud83d\ude00 é"] }"#;
    let problems = PolicyFile::from_json(escaped).unwrap_err().to_string();
    let value = "\"\\\" \\\\ / \\u{8}\\u{c}\\n\\r\\t é 😀 é\"";
    assert!(problems.contains(value), "{problems}");
}

#[test]
fn the_syntax_is_that_of_serde_json() {
    let mut texts: Vec<String> = [
        "",
        " ",
        "{",
        "}",
        "[]",
        "{}",
        " {} ",
        "{} x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":01}",
        "{\"a\":-}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":-0.5e+3}",
        "{\"a\":truth}",
        "{\"a\":nul}",
        "{\"a\":[1 2]}",
        "{\"a\":[,]}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\ud800\\u0041\"}",
        "{\"a\":\"\\udc00\"}",
        "{\"a\":\"\\u+123\"}",
        "\u{feff}{}",
        "{\"a\":1}}",
        "{'a':1}",
        "{\"a\":99999999999999999999999999999999999999999999}",
        "// a\n{}",
        "{\"a\":NaN}",
    ]
    .map(str::to_owned)
    .into();
    let mut random = Random(1);
    let pieces = [
        "\"", "{", "}", "[", "]", ",", ":", "\\", "\\u", "0", "-", "e", " ", "é", "\n", "t",
    ];
    for _ in 0..2_000 {
        let mut text = JSON.to_owned();
        let at = random.below(text.len());
        let end = (at + random.below(3)).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            text.replace_range(at..end, pieces[random.below(pieces.len())]);
            texts.push(text);
        }
    }
    let mut wrong = 0;
    for text in texts {
        let theirs = serde_json::from_str::<Value>(&text).err();
        let ours = syntax_error(&text);
        match (&ours, &theirs) {
            (Some(why), None) if why.contains("twice") => {}
            // A number that is too large for it is a number here.
            (None, Some(error)) if error.to_string().contains("out of range") => {}
            _ => assert_eq!(
                ours.is_some(),
                theirs.is_some(),
                "{ours:?} {theirs:?}\n{text}"
            ),
        }
        wrong += usize::from(ours.is_some());
    }
    assert!(wrong > 200, "{wrong}");
}

#[test]
fn deep_values_are_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = |depth: usize| {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            syntax_error(&format!("{{\"rule\":{text}}}"))
        };
        assert_eq!(deep(70), None);
        assert!(deep(100_000).unwrap().contains("80 deep"));
    }
}
