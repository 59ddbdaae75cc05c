//! Finds the line and the column of a byte of a text.

use crate::problem::Position;

/// Bytes between two known positions.
const STRIDE: usize = 512;

/// The positions of a text's bytes. It knows the position of every 512th byte, so that a lookup
/// takes the same time in a file of one long line.
pub(super) struct Lines<'t> {
    bytes: &'t [u8],
    known: Vec<Position>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let mut position = Position::new(1, 1);
        let known = bytes.chunks(STRIDE).map(|chunk| {
            let start = position;
            position = after(position, chunk);
            start
        });
        let known = known.collect();
        Self { bytes, known }
    }

    /// Returns the position of the byte at this offset.
    pub(super) fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.bytes.len());
        let index = (offset / STRIDE).min(self.known.len().saturating_sub(1));
        let start = self.known.get(index).copied();
        let before = self.bytes.get(index * STRIDE..offset).unwrap_or_default();
        after(start.unwrap_or(Position::new(1, 1)), before)
    }
}

/// Returns the position after these bytes.
fn after(mut position: Position, bytes: &[u8]) -> Position {
    for byte in bytes {
        match byte {
            b'\n' => position = Position::new(position.line + 1, 1),
            // The bytes of a character after its first.
            0x80..0xc0 => {}
            _ => position.column += 1,
        }
    }
    position
}
