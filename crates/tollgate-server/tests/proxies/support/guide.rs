//! The blocks of the guide.

const GUIDE: &str = include_str!("../../../docs/PROXIES.md");

/// Returns the blocks of a language, in their order.
pub(crate) fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("\n```{language}\n");
    let parts = GUIDE.split(&begin).skip(1);
    parts
        .map(|part| part.split("\n```").next().expect("a block"))
        .collect()
}

/// Returns the only block of a language.
pub(crate) fn block(language: &str) -> &'static str {
    let [block] = blocks(language)[..] else {
        panic!("the guide has not one block in {language}");
    };
    block
}

/// Replaces a text that must be there.
pub(crate) fn replace(text: &str, from: &str, to: impl ToString) -> String {
    assert!(text.contains(from), "there is no {from:?} in {text}");
    text.replace(from, &to.to_string())
}
