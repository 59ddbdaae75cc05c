//! Values as messages show them: cut, and without control characters.

use std::fmt::{self, Write};

/// The most characters of a value that a problem shows.
pub(crate) const MAX_VALUE: usize = 60;

/// Returns the beginning of a text. A message may end up in a log or on a terminal, so control
/// characters are replaced.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut short = Excerpt::new(most);
    // The only error says that the text is full.
    let _ = short.write_str(text);
    short.text
}

/// Returns the beginning of a name in quotes, as messages show it.
pub(crate) fn quoted(name: &str) -> String {
    Excerpt::of_value(&format_args!("{name:?}"))
}

/// Returns a number as a file writes it: with the multiplier that makes it shortest.
pub(crate) fn short_number(number: u64) -> String {
    const MULTIPLES: [(&str, u64); 6] = [
        ("Gi", 1 << 30),
        ("G", 1_000_000_000),
        ("Mi", 1 << 20),
        ("M", 1_000_000),
        ("Ki", 1 << 10),
        ("k", 1000),
    ];
    let shortest = MULTIPLES.iter().filter_map(|(name, multiple)| {
        let count = number.checked_div(*multiple).filter(|count| *count > 0)?;
        (count.checked_mul(*multiple) == Some(number)).then_some((count, name))
    });
    match shortest.min() {
        Some((count, name)) => format!("\"{count}{name}\""),
        None => number.to_string(),
    }
}

/// Text that stops growing when it is full, so that a message about a large value stays small.
pub(crate) struct Excerpt {
    text: String,
    room: usize,
}

impl Excerpt {
    const fn new(room: usize) -> Self {
        Self {
            text: String::new(),
            room,
        }
    }

    /// Returns the beginning of a value as the file writes it.
    pub(crate) fn of_value(value: &impl fmt::Display) -> String {
        let mut short = Self::new(MAX_VALUE);
        let _ = write!(short, "{value}");
        short.text
    }
}

impl Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.room == 0 {
                self.text.push_str("...");
                return Err(fmt::Error);
            }
            self.room -= 1;
            self.text.push(if c.is_control() { '\u{fffd}' } else { c });
        }
        Ok(())
    }
}
