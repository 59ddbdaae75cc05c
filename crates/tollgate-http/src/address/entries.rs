//! Entries of lists, from the last one to the first.

use http::HeaderValue;
use http::header::ValueIter;

/// An entry is at most this long.
const MAX_ENTRY: usize = 1024;

/// Entries of all lines of a header, from the last entry of the last line to the first one of the
/// first line. An entry that is too long is `None`, and no other follows it.
pub(super) struct Entries<'h> {
    lines: ValueIter<'h, HeaderValue>,
    /// What is left of a line.
    line: Option<&'h [u8]>,
    /// Finds the last separator of a text.
    last_comma: fn(&[u8]) -> Option<usize>,
}

impl<'h> Entries<'h> {
    pub(super) fn new(
        lines: ValueIter<'h, HeaderValue>,
        last_comma: fn(&[u8]) -> Option<usize>,
    ) -> Self {
        Self {
            lines,
            line: None,
            last_comma,
        }
    }
}

impl<'h> Iterator for Entries<'h> {
    type Item = Option<&'h [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.line.take() {
            Some(line) => line,
            None => self.lines.next_back()?.as_bytes(),
        };
        let start = line.len().saturating_sub(MAX_ENTRY.saturating_add(1));
        let end = line.get(start..)?;
        match (self.last_comma)(end) {
            Some(comma) => {
                self.line = line.get(..start.saturating_add(comma));
                Some(end.get(comma.saturating_add(1)..))
            }
            None => Some((end.len() <= MAX_ENTRY).then_some(end)),
        }
    }
}

/// The last comma.
pub(super) fn last_comma(text: &[u8]) -> Option<usize> {
    text.iter().rposition(|byte| *byte == b',')
}
