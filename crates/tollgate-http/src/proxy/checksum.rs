//! Additions (TLVs), of which only the checksum is read.

use super::ProxyError;

/// The type of a checksum.
const CRC32C: u8 = 3;

/// Checks that the additions are whole, and that a checksum is right.
///
/// `start` and `addresses` are what comes before.
pub(super) fn verify(start: &[u8], addresses: &[u8], additions: &[u8]) -> Result<(), ProxyError> {
    let mut found = None;
    let mut rest = additions;
    while let Some((kind, after)) = rest.split_first() {
        let (value, after) = value(after).ok_or(ProxyError::Addition(*kind))?;
        if *kind == CRC32C {
            let sum: [u8; 4] = value.try_into().map_err(|_| ProxyError::Addition(CRC32C))?;
            if found.is_some() {
                return Err(ProxyError::Addition(CRC32C));
            }
            found = Some((u32::from_be_bytes(sum), after.len()));
        }
        rest = after;
    }
    let Some((found, after)) = found else {
        return Ok(());
    };
    // The sum is made with zeros in its own place.
    let end = additions.len().saturating_sub(after);
    let (before, after) = additions.split_at_checked(end).unwrap_or_default();
    let (before, _) = before.split_last_chunk::<4>().unwrap_or((before, &[0; 4]));
    let parts = [start, addresses, before, &[0; 4], after];
    let expected = crc32c(parts.into_iter().flatten().copied());
    if found == expected {
        Ok(())
    } else {
        Err(ProxyError::Checksum { found, expected })
    }
}

/// Splits a value, which begins with its length, from what follows it.
fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// CRC-32C, bit by bit: headers are short, and few have a checksum.
fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    !bytes.fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum: u32, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x82F6_3B78 } else { 0 }
        })
    })
}
