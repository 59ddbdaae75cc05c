//! A 64-bit checksum: CRC-64/XZ, which other programs can compute too. It detects all damage that
//! lies within 64 consecutive bits. It misses other damage with a probability of 2^-64.

/// The polynomial of ECMA-182, with the lowest power first.
const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

/// The number of bytes that are processed at once.
const STRIDE: usize = 8;

/// `TABLES[zeros][byte]` is the remainder of a byte that is followed by `zeros` zero bytes.
static TABLES: [[u64; 256]; STRIDE] = tables();

const fn tables() -> [[u64; 256]; STRIDE] {
    let mut tables = [[0; 256]; STRIDE];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < STRIDE {
        let mut byte = 0;
        while byte < 256 {
            let crc: u64 = tables[zeros - 1][byte];
            tables[zeros][byte] = crc >> 8 ^ tables[0][(crc & 0xFF) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The checksum of all bytes added so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crc(u64);

impl Crc {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while let Some((stride, rest)) = bytes.split_first_chunk::<STRIDE>() {
            bytes = rest;
            let mixed = (self.0 ^ u64::from_le_bytes(*stride)).to_le_bytes();
            // The first byte is followed by the most bytes, so it uses the last table.
            let each = mixed.iter().zip(TABLES.iter().rev());
            self.0 = each.fold(0, |sum, (byte, table)| sum ^ at(table, *byte));
        }
        let [table, ..] = &TABLES;
        for byte in bytes {
            self.0 = self.0 >> 8 ^ at(table, self.0 as u8 ^ byte);
        }
    }

    pub(crate) const fn sum(self) -> u64 {
        !self.0
    }
}

#[inline]
fn at(table: &[u64; 256], byte: u8) -> u64 {
    // A table has an entry for every byte, so the default is never used.
    table.get(usize::from(byte)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Crc;

    fn of(bytes: &[u8]) -> u64 {
        let mut crc = Crc::new();
        crc.add(bytes);
        crc.sum()
    }

    #[test]
    fn the_check_values_are_those_of_crc_64_xz() {
        assert_eq!(of(b""), 0);
        assert_eq!(of(b"123456789"), 0x995D_C9BB_DF19_39FA);
        assert_eq!(of(b"a"), 0x3302_8477_2E65_2B05);
    }

    #[test]
    fn the_sum_does_not_depend_on_how_the_bytes_are_split() {
        let bytes: [u8; 100] = core::array::from_fn(|i| (i * i) as u8);
        for cut in 0..bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            let mut crc = Crc::new();
            crc.add(head);
            crc.add(tail);
            assert_eq!(crc.sum(), of(&bytes), "{cut}");
        }
    }
}
