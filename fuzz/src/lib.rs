//! What the fuzz targets share: algorithms of every kind, and snapshots that are changed before
//! they are restored.

#[path = "../../tests/support/forged.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod forged;

use std::sync::LazyLock;
use std::time::Duration;

use tollgate::algorithm::Algorithm;
use tollgate::store::{Store, View};
use tollgate::{AnyAlgorithm, Tick};

/// Algorithms of every kind.
pub static ALGORITHMS: LazyLock<Vec<AnyAlgorithm>> = LazyLock::new(|| {
    let texts = [
        "token-bucket 13/s burst 40 initial 4",
        "gcra 1/10ms tolerance 25ms",
        "leaky-meter 7/min burst 5",
        "leaky-queue 7/min burst 5 free 2",
        "fixed-window 5/min offset 7s",
        "fixed-window 5/s first-hit",
        "sliding-window 50/min origin 9s rounding down",
        "intervals 3/h burst 7 offset 1ms",
        "intervals 2/d burst 9 greedy",
    ];
    texts.map(|text| text.parse().expect(text)).into()
});

/// When snapshots are taken and restored.
pub const NOW: Tick = Tick::from_nanos(86_400_000_000_007);

/// How much time passes between.
pub const PAUSE: Duration = Duration::from_millis(1234);

/// One of these. The first byte of the input says which, and is taken off.
pub fn one_of<'t, T>(all: &'t [T], input: &mut &[u8]) -> &'t T {
    let byte = input.split_off_first().copied().unwrap_or(0);
    &all[usize::from(byte) % all.len()]
}

/// A snapshot whose bytes are changed as the input says, with the checksum that it should have.
///
/// The first two bytes say by how much it is shortened. The others are a mask: each byte of the
/// snapshot is changed in the bits that are set, and where the mask is longer, the rest follows the
/// snapshot. So no input is a snapshot as it was written, and a small one changes a little.
pub fn changed(snapshot: &[u8], mut input: &[u8]) -> Vec<u8> {
    let by = input.split_off(..2).unwrap_or(&[0, 0]);
    let by = usize::from(u16::from_le_bytes([by[0], by[1]]));
    let content = snapshot.len() - 8;
    let mut bytes = snapshot[..content - by.min(content)].to_vec();
    for (byte, mask) in bytes.iter_mut().zip(input) {
        *byte ^= mask;
    }
    bytes.extend(input.iter().skip(bytes.len()));
    forged::sealed(bytes)
}

/// Whatever the state is, each verb answers, and an answer is kept.
pub fn decides<S: Store<Algorithm = AnyAlgorithm>>(at: impl Fn(Tick) -> View<S>) {
    for now in [Tick::ZERO, NOW, Tick::MAX] {
        let view = at(now);
        let available = view.available();
        match view.try_acquire_n(available) {
            Ok(granted) => assert_eq!(granted.n(), available),
            // In debt nothing can be taken, also not nothing.
            Err(_) => assert_eq!(available, 0),
        }
        assert!(view.charge(3).debt() <= u64::MAX - 1);
        assert!(view.refund(2) <= 2);
        let _ = (view.time_until(2), view.level(), view.is_idle());
    }
    at(NOW).reset();
    assert!(at(NOW).is_idle());
}

/// The word of an algorithm that was made from text is one that it can have.
pub fn begins_full_or_with_its_initial(algorithm: &AnyAlgorithm) {
    let word = algorithm.initial_word(NOW);
    assert!(algorithm.available(word, NOW) <= algorithm.available(0, NOW));
    assert!(algorithm.is_idle(0, NOW));
}
