#![cfg(tollgate_loom)]

use tollgate::Overflow;
use tollgate::primitive::modelled::Mistake;
use tollgate_loom_tests::tables::{
    self, A, B, C, Deed, Play, Y, Z, available, ban, bucket, charge, check_stopped, forget,
    granted, refund, reset, stopped_play, take, take_up_to, undo,
};
use tollgate_loom_tests::{Answer, Played, Run, Site, mistaken, model, relaxed, stored};

const NOW: u64 = 5;
const BURST: u64 = 2;

fn play(keys: &'static [u64]) -> Play {
    tables::play(|| tables::table(bucket(BURST), 2), keys, NOW)
}

fn one(key: u64) -> Deed {
    take(key, 1, NOW)
}

/// Two bring a new key, and each takes one permit or both.
fn two_insert(run: &mut Run) {
    for (n, m) in [(1, 1), (1, 2), (2, 2)] {
        let both = play(&[A]).actor(&[take(A, n, NOW)]);
        both.actor(&[take(A, m, NOW)]).explore(run);
    }
}

#[test]
fn two_insert_the_same_key() {
    let name = "keyed::two_insert_the_same_key";
    model(name, None, two_insert);
    mistaken(name, Mistake::LooksOnce, "slots", None, two_insert);
}
