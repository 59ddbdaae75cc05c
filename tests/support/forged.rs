//! Snapshots that no limiter or table wrote, with the right checksum.

/// CRC-64/XZ, bit by bit.
fn checksum(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc: u64, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 * (crc & 1))
        })
    })
}

/// Appends the checksum.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Replaces the eight bytes at `at` with a number, and corrects the checksum.
pub(crate) fn with_number(bytes: &[u8], at: usize, number: u64) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len() - 8].to_vec();
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    sealed(bytes)
}
