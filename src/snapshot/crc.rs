//! A 64-bit checksum: CRC-64/XZ, which other programs can compute too. It detects all damage that
//! lies within 64 consecutive bits. It misses other damage with a probability of 2^-64.

/// The polynomial of ECMA-182, with the lowest power first.
const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

/// The remainder of each byte.
static TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The checksum of all bytes added so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crc(u64);

impl Crc {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let index = usize::from(self.0 as u8 ^ byte);
            // The table has an entry for every byte, so the default is never used.
            self.0 = self.0 >> 8 ^ TABLE.get(index).copied().unwrap_or(0);
        }
    }

    pub(crate) const fn sum(self) -> u64 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Crc;

    #[test]
    fn the_check_values_are_those_of_crc_64_xz() {
        for (bytes, sum) in [
            ("", 0),
            ("a", 0x3302_8477_2E65_2B05),
            ("123456789", 0x995D_C9BB_DF19_39FA),
        ] {
            for cut in 0..=bytes.len() {
                let mut crc = Crc::new();
                crc.add(&bytes.as_bytes()[..cut]);
                crc.add(&bytes.as_bytes()[cut..]);
                assert_eq!(crc.sum(), sum, "{bytes} {cut}");
            }
        }
    }
}
