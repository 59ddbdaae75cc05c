//! Any text gives a policy, or errors that say where: never a panic.

use tollgate_policy::file::PolicyFile;

use crate::EVERY_FIELD;

/// Reads a text. Returns whether it is a policy.
fn reads(text: &str) -> bool {
    match PolicyFile::from_toml(text) {
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
    let text = EVERY_FIELD.replace("curl", "größe");
    let mut policies = 0;
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        policies += usize::from(reads(&text[..end]));
    }
    assert!(
        policies > 50 && policies < text.len() / 2,
        "{policies} policies"
    );
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

const TOKENS: [&str; 44] = [
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

#[test]
fn mutated_files_are_policies_or_errors_with_positions() {
    let mut numbers = Numbers(1);
    // A rule or two at a time, so that many cases fit in a test.
    let rules: Vec<String> = EVERY_FIELD.split("\n\n").map(Into::into).collect();
    let mut policies = 0;
    const CASES: usize = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    for _ in 0..CASES {
        let mut text = rules[numbers.below(rules.len())].clone();
        for _ in 0..=numbers.below(3) {
            text = mutate(&text, &mut numbers);
        }
        policies += usize::from(reads(&text));
    }
    assert!(
        policies > CASES / 50 && policies < CASES,
        "{policies} policies"
    );
}
