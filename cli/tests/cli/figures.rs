//! The figures behind the pictures of the algorithms, as `tollgate plot --json` prints them. The
//! fixed window has a double burst at the edge and the others do not, every stated bound holds, and
//! queue departures are spaced.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::printed;

const LIMIT: u64 = 10;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// When each request arrived, and when it may go, or `None` if it was denied.
type Requests = Vec<(u64, Option<u64>)>;

/// The answers of each algorithm to each load.
static ALL: LazyLock<BTreeMap<(String, String), Requests>> = LazyLock::new(|| {
    let figures: Value = serde_json::from_str(&printed(&["plot", "--json"])).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let mut all = BTreeMap::new();
    for one in figures.as_array().expect("algorithms") {
        assert_eq!(
            (&one["limit"], &one["period_ns"]),
            (&LIMIT.into(), &SECOND.into())
        );
        for load in one["loads"].as_array().expect("loads") {
            let requests = load["requests"].as_array().expect("requests").iter();
            let requests = requests.map(|request| {
                let at = request["at_ns"].as_u64().expect("a tick");
                (at, request["leaves_ns"].as_u64())
            });
            all.insert(
                (text(&one["name"]), text(&load["name"])),
                requests.collect(),
            );
        }
    }
    all
});

fn requests(algorithm: &str, load: &str) -> &'static Requests {
    &ALL[&(algorithm.to_owned(), load.to_owned())]
}

/// Returns the arrival times of the admitted requests.
fn admitted(algorithm: &str, load: &str) -> Vec<u64> {
    let came = |&(at, leaves): &(u64, Option<u64>)| leaves.map(|_| at);
    requests(algorithm, load).iter().filter_map(came).collect()
}

/// Returns the highest number of these moments in any interval of this length. The moments are in
/// order.
fn most_within(moments: &[u64], length: u64) -> u64 {
    let from = |i: usize| {
        let begin = moments[i];
        let inside = moments[i..].iter().take_while(|&&at| at - begin <= length);
        inside.count() as u64
    };
    (0..moments.len()).map(from).max().unwrap_or(0)
}

const LOADS: [&str; 3] = ["steady", "burst", "edge"];
/// The length of both bursts at the edge, from the first request to the last.
const CROWDS: u64 = 88 * MS;

#[test]
fn all_get_the_same_three_loads() {
    assert_eq!(ALL.len(), 9 * LOADS.len());
    let times = |algorithm: &str, load: &str| -> Vec<u64> {
        requests(algorithm, load).iter().map(|one| one.0).collect()
    };
    for (algorithm, load) in ALL.keys() {
        assert_eq!(
            times(algorithm, load),
            times("gcra", load),
            "{algorithm}, {load}"
        );
    }
    let [steady, burst, edge] = LOADS.map(|load| times("gcra", load));
    for times in [&steady, &burst, &edge] {
        assert!(times.is_sorted() && times.len() > 20, "{times:?}");
    }
    // Above the limit; at one moment after idling; before and after a window's edge.
    assert!(most_within(&steady, SECOND) > LIMIT);
    assert!(burst[0] > SECOND && most_within(&burst, 0) == 15);
    assert_eq!(edge[edge.len() - 1] - edge[1], CROWDS);
}

/// Windows allow a double burst at the edge, less the permit that opened the first one. So does a
/// bucket that is refilled all at once. The other algorithms do not.
#[test]
fn only_windows_allow_a_double_burst_at_the_edge() {
    for (name, most) in [
        ("fixed-window", 2 * LIMIT),
        ("fixed-window-first-hit", 2 * LIMIT - 1),
        ("intervals", 2 * LIMIT),
        ("intervals-greedy", 2 * LIMIT - 1),
        ("sliding-window", LIMIT),
        ("token-bucket", LIMIT),
        ("gcra", LIMIT),
        ("leaky-meter", LIMIT),
        ("leaky-queue", LIMIT),
    ] {
        assert_eq!(most_within(&admitted(name, "edge"), CROWDS), most, "{name}");
    }
    let taken = admitted("fixed-window", "edge").into_iter();
    let before = taken.filter(|at| (1900 * MS..2 * SECOND).contains(at));
    assert_eq!(
        before.count() as u64,
        LIMIT,
        "all permits of a window, at its end"
    );
    // With a burst of n, aligned intervals and the fixed window decide alike.
    for load in LOADS {
        assert_eq!(requests("intervals", load), requests("fixed-window", load));
    }
}

#[test]
fn queue_departures_are_spaced() {
    for load in LOADS {
        let requests = requests("leaky-queue", load);
        let leaves: Vec<_> = requests.iter().filter_map(|one| one.1).collect();
        let gaps: Vec<_> = leaves
            .windows(2)
            .map(|two| two[1].checked_sub(two[0]))
            .collect();
        let shortest = Some(SECOND / LIMIT);
        assert!(gaps.iter().all(|gap| *gap >= shortest), "{load}: {gaps:?}");
        let spaced = gaps
            .iter()
            .zip(&leaves)
            .filter(|it| *it.0 == shortest && *it.1 >= 1500 * MS);
        assert!(
            spaced.count() >= 9,
            "{load}: the queue departs without a pause"
        );
        // It admits the same requests as the meter.
        assert_eq!(admitted("leaky-queue", load), admitted("leaky-meter", load));
    }
}

/// No request leaves before it arrives. Without a queue, admitted requests leave at once.
#[test]
fn only_the_queue_delays() {
    for ((name, load), requests) in &*ALL {
        for &(at, leaves) in requests {
            let delay = leaves.map_or(0, |leaves| leaves.checked_sub(at).expect("later"));
            assert!(delay == 0 || name == "leaky-queue", "{name}, {load}");
        }
    }
}

#[test]
fn all_grant_the_burst_at_once_after_idling() {
    let windows = ["fixed-window", "sliding-window", "intervals"];
    let buckets = ["token-bucket", "gcra", "leaky-meter", "leaky-queue"];
    for name in buckets.into_iter().chain(windows) {
        assert_eq!(most_within(&admitted(name, "burst"), 0), LIMIT, "{name}");
    }
    // After its burst a bucket continues at once, and a window only at its end.
    for (name, next) in [
        ("token-bucket", 1700 * MS),
        ("fixed-window", 2100 * MS),
        ("sliding-window", 2100 * MS),
        ("fixed-window-first-hit", 2500 * MS),
    ] {
        assert_eq!(admitted(name, "burst")[LIMIT as usize], next, "{name}");
    }
}

#[test]
fn each_keeps_its_bound_under_each_load() {
    for (name, load) in ALL.keys() {
        let by_period = name.starts_with("fixed") || name.starts_with("intervals");
        let taken = admitted(name, load);
        for (i, from) in taken.iter().enumerate() {
            for (n, to) in (1..).zip(&taken[i..]) {
                let length = to - from;
                let more = match by_period {
                    true => LIMIT * length.div_ceil(SECOND),
                    false => LIMIT * length / SECOND,
                };
                assert!(n <= LIMIT + more, "{name}, {load}: {n} in {length} ns");
            }
        }
    }
}
