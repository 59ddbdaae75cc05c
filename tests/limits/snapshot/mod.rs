//! A limiter that is saved and restored decides as one that never stopped. Bytes that no limiter
//! wrote are an error or a limiter that decides.

mod carried;
mod damage;
mod kept;

use tollgate::store::SNAPSHOT_BYTES;

type Saved = [u8; SNAPSHOT_BYTES];

/// Replaces the eight bytes at `at` with a number, and corrects the checksum.
fn with_number(mut bytes: Saved, at: usize, number: u64) -> Saved {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    let sum = checksum(&bytes[..SNAPSHOT_BYTES - 8]);
    bytes[SNAPSHOT_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// CRC-64/XZ, bit by bit.
fn checksum(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc: u64, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 * (crc & 1))
        })
    })
}
