//! The page about Envoy.

/// The page.
pub(crate) const PAGE: &str = include_str!("../../../docs/ENVOY.md");

/// A block of the page, and the language that it says.
pub(crate) struct Block {
    pub(crate) language: &'static str,
    pub(crate) text: &'static str,
}

/// Returns the blocks of the page, in their order.
pub(crate) fn blocks() -> Vec<Block> {
    let parts = PAGE.split("```");
    let blocks = parts.skip(1).step_by(2).map(|part| {
        let (language, text) = part.split_once('\n').unwrap();
        Block { language, text }
    });
    blocks.collect()
}

/// Returns the configuration of Envoy, and the policy for it.
pub(crate) fn configuration() -> (&'static str, &'static str) {
    let blocks = blocks();
    let mut blocks = blocks.iter();
    let yaml = blocks.find(|block| block.language == "yaml").unwrap();
    let policy = blocks.find(|block| block.language == "toml").unwrap();
    (yaml.text, policy.text)
}
