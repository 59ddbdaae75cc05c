//! Any bytes, and a snapshot of a table that is changed: an error that changes nothing, or a table
//! that decides, and whose own snapshot is restored.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tollgate::clock::NoClock;
use tollgate::keyed::SeededHasher;
use tollgate::{AnyAlgorithm, Keyed};
use tollgate_fuzz::{ALGORITHMS, NOW, PAUSE, changed, decides, one_of};

type Table = Keyed<AnyAlgorithm, NoClock>;

const KEYS: u64 = 5;

/// A table with plans, some of which have names, and keys in it.
fn used(plans: &[AnyAlgorithm], are_named: bool) -> Table {
    let table = match are_named {
        false => Table::with_plans(plans.to_vec(), 1, NoClock),
        true => {
            let names = (0..plans.len()).map(|plan| format!("plan {plan}"));
            Table::with_named_plans(names.zip(plans.to_vec()), 1, NoClock)
        }
    };
    let table = table.expect("plans").with_hasher(SeededHasher::new([1, 2]));
    for key in 0..KEYS {
        let plan = table.plan(key as usize % plans.len());
        let _ = plan.key(&key).at(NOW).take_up_to(1 + key);
        let _ = plan.key(&key).at(NOW).take_up_to(1);
    }
    table
}

fn written(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.snapshot_at(&mut bytes, NOW).expect("memory");
    bytes
}

fn restored(mut table: Table, bytes: &[u8]) {
    let available = |table: &Table| {
        let each = (0..KEYS).map(|key| table.key(&key).at(NOW).available());
        each.collect::<Vec<_>>()
    };
    let (before, keys) = (available(&table), table.stats_at(NOW).tracked);
    match table.restore_at(&mut &*bytes, NOW, PAUSE) {
        Err(error) => {
            assert_eq!(available(&table), before, "{error}");
            assert_eq!(table.stats_at(NOW).tracked, keys, "{error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(restored) => {
            let stats = table.stats_at(NOW);
            assert_eq!(stats.tracked, restored.keys);
            let before = available(&table);
            let bytes = written(&table);
            let again = table.restore_at(&mut bytes.as_slice(), NOW, Duration::ZERO);
            assert!(again.is_ok_and(|again| again.no_room == 0));
            assert_eq!(available(&table), before);
        }
    }
    for key in 0..KEYS {
        decides(|now| table.key(&key).at(now));
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = data;
    let (from, to) = (
        one_of(&ALGORITHMS, &mut input),
        one_of(&ALGORITHMS, &mut input),
    );
    let are_named = *one_of(&[false, true], &mut input);
    let plans = [*from, ALGORITHMS[0]];
    restored(used(&[*to], false), data);
    let bytes = changed(&written(&used(&plans, are_named)), input);
    restored(used(&plans, are_named), &bytes);
    restored(used(&[*to, ALGORITHMS[0]], are_named), &bytes);
});
