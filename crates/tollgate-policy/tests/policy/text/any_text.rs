//! Any text gives a policy, or errors that say where: never a panic.

use tollgate_policy::file::{Format, PolicyFile};

use crate::text::EVERY_FIELD;

/// Reads a text. Returns whether it is a policy.
fn reads(text: &str, format: Format) -> bool {
    match PolicyFile::from_text(text, format) {
        Ok(_) => true,
        Err(problems) => {
            assert!(problems.has_errors() && !problems.is_empty(), "{text}");
            for problem in &problems {
                let position = problem.position.expect("a position");
                let line = text
                    .split('\n')
                    .nth(position.line - 1)
                    .expect("a line of the text");
                assert!(
                    position.column <= line.chars().count() + 1,
                    "{problem} in {line}"
                );
                assert!(!problem.message.is_empty());
            }
            assert!(!problems.to_string().is_empty());
            false
        }
    }
}

#[test]
fn a_file_cut_at_every_byte_is_a_policy_or_an_error_with_a_position() {
    let count = |text: &str, format| {
        let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
        ends.filter(|end| reads(&text[..*end], format)).count()
    };
    let text = EVERY_FIELD.replace("curl", "größe");
    let policies = count(&text, Format::Toml);
    assert!(
        policies > 50 && policies < text.len() / 2,
        "{policies} policies"
    );
    #[cfg(feature = "yaml")]
    {
        let text = crate::text::YAML.replace("curl", "größe");
        let policies = count(&text, Format::Yaml);
        assert!(
            policies > 50 && policies < text.len() / 2,
            "{policies} policies"
        );
    }
}

/// A generator of numbers with a fixed seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

const TOKENS: [&str; 52] = [
    "0",
    "-1",
    "18446744073709551616",
    "1.5",
    "true",
    "1979-05-27",
    "\"\"",
    "\"never\"",
    "[]",
    "{}",
    "[[rule]]",
    "[[limit]]",
    "\"unlimited\"",
    "\"0\"",
    "[rule.when]",
    "[[rule.override]]",
    "name = \"login\"",
    "name",
    "when",
    "key",
    "limit",
    "plan",
    "also",
    "\"login\"",
    "\"path:x\"",
    "\"header:\"",
    "header.x",
    "\"10min\"",
    "\"512MiB\"",
    "any",
    "not",
    "{ a = 1 }",
    "[[[[",
    "\"/{a}/**\"",
    "\"*\"",
    "\"\\\\\"",
    "'",
    "\"\"\"",
    "=",
    ",",
    "\n",
    "\u{feff}",
    "ß",
    "\0",
    "- ",
    ": ",
    "? ",
    "&a",
    "*a",
    "!a",
    "|-\n",
    "---\n",
];

/// Changes a text: flips bits of a byte, swaps two lines, repeats one, or replaces a word.
fn mutate(text: &str, numbers: &mut Numbers) -> String {
    match numbers.below(4) {
        0 => {
            let mut bytes = text.as_bytes().to_vec();
            let index = numbers.below(bytes.len());
            if let Some(byte) = bytes.get_mut(index) {
                *byte ^= 1 << numbers.below(8);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            let (a, b) = (numbers.below(lines.len()), numbers.below(lines.len()));
            lines.swap(a, b);
            lines.join("\n")
        }
        2 => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            let (a, b) = (numbers.below(lines.len()), numbers.below(lines.len()));
            lines.insert(a, lines[b]);
            lines.join("\n")
        }
        _ => {
            let mut words: Vec<&str> = text.split(' ').collect();
            let index = numbers.below(words.len());
            words[index] = numbers.pick(&TOKENS);
            words.join(" ")
        }
    }
}

/// Reads rules that are changed, and returns how many of these texts are policies.
fn mutated(rules: &[&str], cases: usize, format: Format) -> usize {
    let mut numbers = Numbers(1);
    let texts = (0..cases).map(|_| {
        let mut text = rules[numbers.below(rules.len())].to_owned();
        for _ in 0..=numbers.below(3) {
            text = mutate(&text, &mut numbers);
        }
        text
    });
    texts.filter(|text| reads(text, format)).count()
}

#[test]
fn mutated_files_are_policies_or_errors_with_positions() {
    const CASES: usize = if cfg!(debug_assertions) {
        30_000
    } else {
        1_000_000
    };
    // A rule or two at a time, so that many cases fit in a test.
    let rules: Vec<&str> = EVERY_FIELD.split("\n\n").collect();
    let policies = mutated(&rules, CASES, Format::Toml);
    assert!(
        policies > CASES / 50 && policies < CASES,
        "{policies} policies"
    );
}

#[cfg(feature = "yaml")]
#[test]
fn mutated_yaml_is_a_policy_or_an_error_with_a_position() {
    const CASES: usize = if cfg!(debug_assertions) {
        7_000
    } else {
        1_000_000
    };
    let rules = [crate::text::YAML, crate::text::JSON, BLOCKS];
    let policies = mutated(&rules, CASES, Format::Yaml);
    assert!(
        policies > CASES / 50 && policies < CASES,
        "{policies} policies"
    );
}

/// The forms of text and of tables that YAML has besides those of the other files.
#[cfg(feature = "yaml")]
const BLOCKS: &str = "--- # a remark\n? rule\n: - name: >-\n      a\n      b\n    limit: |-\n\
                      \u{20}     5/s\n    when: {\"path\": '/a', host: \"\\u00e9\",}\n...\n";
