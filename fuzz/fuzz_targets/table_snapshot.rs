//! Any bytes, and a snapshot of a table that is changed: an error that changes nothing, or a table
//! that decides, and whose own snapshot is restored.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tollgate::clock::NoClock;
use tollgate::keyed::SeededHasher;
use tollgate::{AnyAlgorithm, Keyed};
use tollgate_fuzz::{ALGORITHMS, NOW, PAUSE, changed, decides, one_of};

type Table = Keyed<AnyAlgorithm, NoClock>;

const KEYS: u64 = 5;

/// The algorithm of a snapshot, and whether the table has the same one.
static CHOICES: LazyLock<Vec<(usize, bool)>> = LazyLock::new(|| {
    let all = 0..ALGORITHMS.len();
    all.flat_map(|from| [(from, false), (from, true)]).collect()
});

/// A table with plans, which may have names, and keys in it, one with an algorithm of its own.
fn used(plans: &[AnyAlgorithm], are_named: bool) -> Table {
    let table = match are_named {
        false => Table::with_plans(plans.to_vec(), 1, NoClock),
        true => {
            let names = (0..plans.len()).map(|plan| format!("plan {plan}"));
            Table::with_named_plans(names.zip(plans.to_vec()), 1, NoClock)
        }
    };
    let table = table.expect("plans").with_hasher(SeededHasher::new([1, 2]));
    let table = table.with_overrides(1).expect("memory");
    let set = table.key(&1_u64).at(NOW).set_override(plans[0]);
    assert!(set.is_ok());
    for key in 0..KEYS {
        let used = table.key(&key).with_plan(key as usize % plans.len());
        let _ = used.at(NOW).take_up_to(1 + key);
        let _ = used.at(NOW).take_up_to(1);
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
    let (before, keys) = (available(&table), table.len());
    match table.restore_at(&mut &*bytes, NOW, PAUSE) {
        Err(error) => {
            assert_eq!(available(&table), before, "{error}");
            assert_eq!(table.len(), keys, "{error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(restored) => {
            assert_eq!(table.len() as u64, restored.keys);
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

/// A snapshot of each table that is used, by its first plan and whether its plans have names.
static WRITTEN: LazyLock<Vec<[Vec<u8>; 2]>> = LazyLock::new(|| {
    let tables = ALGORITHMS.iter().map(|first| {
        let plans = [*first, ALGORITHMS[0]];
        [false, true].map(|are_named| written(&used(&plans, are_named)))
    });
    tables.collect()
});

fuzz_target!(|data: &[u8]| {
    let mut input = data;
    let (are_named, is_raw) = *one_of(&[(false, false), (true, false), (true, true)], &mut input);
    let (from, is_same) = *one_of(&CHOICES, &mut input);
    let to = match is_same {
        true => ALGORITHMS[from],
        false => *one_of(&ALGORITHMS, &mut input),
    };
    let table = used(&[to, ALGORITHMS[0]], are_named);
    match is_raw {
        true => restored(table, input),
        false => restored(
            table,
            &changed(&WRITTEN[from][usize::from(are_named)], input),
        ),
    }
});
