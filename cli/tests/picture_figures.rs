//! What the pictures of the algorithms show is so: the figures behind them, as `tollgate plot --json`
//! prints them, have the fixed window's double burst at the edge and the others' absence of it, keep
//! every stated bound, and space what leaves the queue.

use std::process::Command;

use serde_json::Value;

const LIMIT: u64 = 10;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// When requests came, and when they may go: never, if they were denied.
type Requests = Vec<(u64, Option<u64>)>;

/// What the algorithm answered to the load.
fn requests(algorithm: &str, load: &str) -> Requests {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let output = command.args(["plot", "--json", "--algorithm", algorithm]);
    let output = output.output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    let figures: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(figures[0]["name"], algorithm);
    assert_eq!(
        (&figures[0]["limit"], &figures[1]),
        (&LIMIT.into(), &Value::Null)
    );
    assert_eq!(figures[0]["period_ns"], SECOND);
    let loads = figures[0]["loads"].as_array().expect("loads");
    let load = loads.iter().find(|one| one["name"] == load);
    let requests = load.expect("the load")["requests"].as_array();
    let pair = |one: &Value| {
        let at = one["at_ns"].as_u64().expect("a tick");
        (at, one["leaves_ns"].as_u64())
    };
    requests.expect("requests").iter().map(pair).collect()
}

fn admitted(requests: &Requests) -> Vec<u64> {
    let came = |&(at, leaves): &(u64, Option<u64>)| leaves.map(|_| at);
    requests.iter().filter_map(came).collect()
}

/// The most of these moments, which are in order, in any interval of this length.
fn most_within(moments: &[u64], length: u64) -> u64 {
    let from = |i: usize| {
        let begin = moments[i];
        let inside = moments[i..].iter().take_while(|&&at| at - begin <= length);
        inside.count() as u64
    };
    (0..moments.len()).map(from).max().unwrap_or(0)
}

/// For each length of an interval between two of them: the most within it is allowed.
fn assert_keeps(name: &str, moments: &[u64], allows: fn(u64) -> u64) {
    for (i, from) in moments.iter().enumerate() {
        for to in &moments[i..] {
            let length = to - from;
            let (most, allowed) = (most_within(moments, length), allows(length));
            assert!(
                most <= allowed,
                "{name}: {most} in {length} ns, not {allowed}"
            );
        }
    }
}

const BUCKETS: [&str; 4] = ["token-bucket", "gcra", "leaky-meter", "leaky-queue"];
const LOADS: [&str; 3] = ["steady", "burst", "edge"];
/// The two crowds at the edge, from the first of one to the last of the other.
const CROWDS: u64 = 88 * MS;

#[test]
fn all_get_the_same_three_loads() {
    let times = |algorithm: &str, load: &str| {
        let requests = requests(algorithm, load);
        requests.iter().map(|one| one.0).collect::<Vec<_>>()
    };
    for load in LOADS {
        let first = times("token-bucket", load);
        assert!(first.is_sorted() && first.len() > 20, "{load}");
        for other in [
            "fixed-window",
            "fixed-window-first-hit",
            "sliding-window",
            "intervals-greedy",
        ] {
            assert_eq!(times(other, load), first, "{other}, {load}");
        }
    }
    // Above the limit; at one moment after idling; before and after a window's edge.
    assert!(most_within(&times("gcra", "steady"), SECOND) > LIMIT);
    let burst = times("gcra", "burst");
    assert!(burst[0] > SECOND && most_within(&burst, 0) == 15);
    let edge = times("gcra", "edge");
    let around = |from, to| edge.iter().filter(|at| (from..to).contains(*at)).count();
    assert_eq!(
        (around(1950 * MS, 2 * SECOND), around(2 * SECOND, 2050 * MS)),
        (15, 15)
    );
    assert_eq!(edge[edge.len() - 1] - edge[1], CROWDS);
}

#[test]
fn the_fixed_window_gives_a_double_burst_at_the_edge() {
    let taken = admitted(&requests("fixed-window", "edge"));
    assert_eq!(most_within(&taken, CROWDS), 2 * LIMIT);
    let before = taken
        .iter()
        .filter(|&&at| (1900 * MS..2 * SECOND).contains(&at));
    assert_eq!(before.count() as u64, LIMIT, "all of one window at its end");
    // One of its permits opened the window.
    let taken = admitted(&requests("fixed-window-first-hit", "edge"));
    assert_eq!(most_within(&taken, CROWDS), 2 * LIMIT - 1);
}

#[test]
fn buckets_and_the_sliding_window_do_not() {
    for name in BUCKETS.into_iter().chain(["sliding-window"]) {
        let taken = admitted(&requests(name, "edge"));
        assert_eq!(most_within(&taken, CROWDS), LIMIT, "{name}");
    }
}

/// A bucket that is refilled all at once gives what it has, and the refill: like a fixed window.
#[test]
fn intervals_give_the_burst_and_a_refill() {
    for (name, most) in [
        ("intervals", 2 * LIMIT),
        ("intervals-greedy", 2 * LIMIT - 1),
    ] {
        let taken = admitted(&requests(name, "edge"));
        assert_eq!(most_within(&taken, CROWDS), most, "{name}");
    }
    // With a burst of n the two decide the same.
    for load in LOADS {
        assert_eq!(requests("intervals", load), requests("fixed-window", load));
    }
}

#[test]
fn each_keeps_its_bound_under_each_load() {
    let steady: fn(u64) -> u64 = |length| LIMIT + LIMIT * length / SECOND;
    let by_period: fn(u64) -> u64 = |length| LIMIT * (1 + length.div_ceil(SECOND));
    for load in LOADS {
        for name in BUCKETS.into_iter().chain(["sliding-window"]) {
            assert_keeps(name, &admitted(&requests(name, load)), steady);
        }
        for name in [
            "fixed-window",
            "fixed-window-first-hit",
            "intervals",
            "intervals-greedy",
        ] {
            assert_keeps(name, &admitted(&requests(name, load)), by_period);
        }
    }
}

#[test]
fn what_leaves_the_queue_is_spaced() {
    for load in LOADS {
        let requests = requests("leaky-queue", load);
        let mut leaves: Vec<_> = requests.iter().filter_map(|one| one.1).collect();
        assert!(leaves.is_sorted(), "who comes first leaves first");
        let nearest = leaves.windows(2).map(|two| two[1] - two[0]).min();
        assert!(nearest >= Some(SECOND / LIMIT), "{load}: {nearest:?}");
        leaves.retain(|&at| at >= 1500 * MS);
        let spaced = leaves
            .windows(2)
            .filter(|two| two[1] - two[0] == SECOND / LIMIT);
        assert!(
            spaced.count() >= 9,
            "{load}: the queue works without a pause"
        );
        // It admits as the bucket does, and nobody leaves before coming.
        let taken = admitted(&requests);
        assert_eq!(taken, admitted(&self::requests("leaky-meter", load)));
        assert!(
            requests
                .iter()
                .all(|one| one.1.is_none_or(|leaves| leaves >= one.0))
        );
    }
}

/// All but the queue let those who are admitted go at once.
#[test]
fn nobody_else_delays() {
    for name in [
        "token-bucket",
        "gcra",
        "leaky-meter",
        "fixed-window",
        "sliding-window",
        "intervals",
    ] {
        for load in LOADS {
            let at_once = |&(at, leaves): &(u64, Option<u64>)| leaves.is_none_or(|one| one == at);
            assert!(requests(name, load).iter().all(at_once), "{name}");
        }
    }
}

#[test]
fn all_give_the_burst_at_once_after_idling() {
    for name in BUCKETS
        .into_iter()
        .chain(["fixed-window", "sliding-window", "intervals"])
    {
        let taken = admitted(&requests(name, "burst"));
        assert_eq!(most_within(&taken, 0), LIMIT, "{name}");
    }
    // The bucket goes on at once, the windows at their ends.
    let next = |name| admitted(&requests(name, "burst"))[LIMIT as usize];
    assert_eq!(next("token-bucket"), 1700 * MS);
    assert_eq!(next("fixed-window"), 2100 * MS);
    assert_eq!(next("sliding-window"), 2100 * MS);
    assert_eq!(next("fixed-window-first-hit"), 2500 * MS);
}
