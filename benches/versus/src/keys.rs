//! Keys with a limit each, and the order of their requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A random number generator with a seed (splitmix64). Each run sees the same keys in the same
/// order.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub const fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Maps different numbers to different numbers, and spreads neighbors apart.
const fn mix(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the key of this number.
#[must_use]
pub const fn key(number: u64) -> u64 {
    mix(number.wrapping_add(1))
}

/// Returns the address of this number. IPv4 and IPv6 addresses alternate.
#[must_use]
pub const fn address(number: u64) -> IpAddr {
    if number.is_multiple_of(2) {
        // The factor is odd, so all 32-bit numbers have different results.
        let bits = (number / 2) as u32;
        IpAddr::V4(Ipv4Addr::from_bits(bits.wrapping_mul(0x9e37_79b1)))
    } else {
        let bits = 0x2001_0db8_u128 << 96 | key(number) as u128;
        IpAddr::V6(Ipv6Addr::from_bits(bits))
    }
}

/// Returns the name of this number, 14 bytes long for numbers below a thousand million.
#[must_use]
pub fn name(number: u64) -> String {
    format!("user-{number:09}")
}

/// How often each key occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// All keys equally often.
    Uniform,
    /// The second key half as often as the first, the third a third as often, and so on.
    Zipf,
}

impl Spread {
    /// All spreads.
    pub const BOTH: [Self; 2] = [Self::Uniform, Self::Zipf];

    /// Returns the name in printed tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }

    /// Returns a sequence of `length` keys among the first `keys` ones.
    #[must_use]
    pub fn sequence(self, keys: u64, length: usize) -> Vec<u64> {
        let mut random = Random(keys);
        let zipf = Zipf::new(keys);
        let number = |_| match self {
            Self::Uniform => (u128::from(random.bits()) * u128::from(keys)).wrapping_shr(64) as u64,
            Self::Zipf => zipf.rank(&mut random) - 1,
        };
        (0..length).map(number).map(key).collect()
    }
}

/// Ranks from 1 on, with a probability proportional to `1 / rank`.
///
/// Draws a point under the curve 1/x by inverting its integral. The nearest whole number is the
/// rank if the point lies under that rank's step; otherwise another point is drawn.
struct Zipf {
    keys: u64,
    /// The ends of the area. The first step is wider than the curve above it, and begins earlier.
    area: [f64; 2],
}

impl Zipf {
    fn new(keys: u64) -> Self {
        Self {
            keys,
            area: [1.5_f64.ln() - 1.0, (keys as f64 + 0.5).ln()],
        }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let [begin, end] = self.area;
        loop {
            let point = begin + random.fraction() * (end - begin);
            let rank = (point.exp().round() as u64).clamp(1, self.keys);
            // A step is as wide as its area. It ends where the curve reaches half a rank further.
            let step = 1.0 / rank as f64;
            if point >= (rank as f64 + 0.5).ln() - step {
                return rank;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::collections::HashSet;

    #[test]
    fn different_numbers_have_different_keys() {
        let numbers = 0..100_000;
        assert_eq!(
            numbers.clone().map(key).collect::<HashSet<_>>().len(),
            100_000
        );
        assert_eq!(
            numbers.clone().map(address).collect::<HashSet<_>>().len(),
            100_000
        );
        assert_eq!(numbers.map(name).collect::<HashSet<_>>().len(), 100_000);
        assert_eq!(name(12_345_678).len(), 14);
    }

    /// Checks how often each of the first keys occurs against the expected share.
    fn shares(spread: Spread, expected: impl Fn(u64) -> f64) {
        const LENGTH: usize = 1_000_000;
        let mut seen = HashMap::new();
        for key in spread.sequence(1000, LENGTH) {
            *seen.entry(key).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 1000, "some keys never came");
        for rank in 1..=1000 {
            let came = f64::from(seen[&key(rank - 1)]);
            let mean = expected(rank) * LENGTH as f64;
            assert!(
                (came - mean).abs() < 6.0 * mean.sqrt(),
                "{rank}: {came}, {mean}"
            );
        }
    }

    #[test]
    fn uniform_keys_come_as_often_as_each_other() {
        shares(Spread::Uniform, |_| 0.001);
    }

    #[test]
    fn zipf_keys_come_as_their_rank_says() {
        let sum: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
        shares(Spread::Zipf, |rank| 1.0 / (rank as f64 * sum));
    }
}
