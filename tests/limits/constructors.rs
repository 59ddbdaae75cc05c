//! The short constructors create what the general ones create, for each limiter and each algorithm,
//! and refuse the same quotas. A limiter's `Debug` shows its algorithm as text.

use tollgate::error::LimiterError;
use tollgate::{Adjustable, Keep, Keyed};

use crate::support::*;

/// Checks that both make the same or refuse with the same error, and that each limiter shows its
/// whole algorithm.
#[track_caller]
fn check<L: Debug, E: Debug + PartialEq>(
    text: &str,
    short: impl Fn(Quota) -> Result<L, E>,
    long: impl Fn(Quota) -> Result<L, E>,
) {
    // Windows do not accept burst and initial.
    let quotas = [
        Quota::per_hour(90),
        Quota::per_second(7).burst(40),
        Quota::per_hour(0),
    ];
    let mut made = 0;
    for quota in quotas {
        match (short(quota), long(quota)) {
            (Ok(short), Ok(long)) => {
                let shown = format!("{short:?}");
                assert_eq!(shown, format!("{long:?}"));
                assert!(shown.contains(&format!("{text} {quota}")), "{shown}");
                made += 1;
            }
            (short, long) => assert_eq!(short.err(), long.err(), "{text} {quota}"),
        }
    }
    assert!(made >= 1);
}

/// Checks all seven short constructors of a limiter that takes these arguments beside the
/// algorithm.
macro_rules! check_all {
    ($limiter:ident, $new:expr $(, $argument:expr)?) => {{
        let new = |algorithm| $new(algorithm);
        check("token-bucket", |q| $limiter::token_bucket(q $(, $argument)?), |q| new(TokenBucket::new(q)?));
        let new = |algorithm| $new(algorithm);
        check("gcra", |q| $limiter::gcra(q $(, $argument)?), |q| new(Gcra::new(q)?));
        let new = |algorithm| $new(algorithm);
        check("leaky-meter", |q| $limiter::leaky_meter(q $(, $argument)?), |q| new(LeakyBucket::meter(q)?));
        check("leaky-queue", |q| $limiter::leaky_queue(q $(, $argument)?), |q| new(LeakyBucket::queue(q)?));
        let new = |algorithm| $new(algorithm);
        check("fixed-window", |q| $limiter::fixed_window(q $(, $argument)?), |q| new(FixedWindow::new(q)?));
        let new = |algorithm| $new(algorithm);
        check("sliding-window", |q| $limiter::sliding_window(q $(, $argument)?), |q| new(SlidingWindow::new(q)?));
        let new = |algorithm| $new(algorithm);
        check("intervals", |q| $limiter::intervals(q $(, $argument)?), |q| new(Intervals::new(q)?));
    }};
}

#[test]
fn each_short_constructor_makes_the_same_limiter_as_the_general_one() {
    check_all!(Limiter, |algorithm| Ok(Limiter::new(algorithm)));
    check_all!(Sharded, Sharded::new);
    check_all!(Adjustable, |algorithm| Ok(Adjustable::new(algorithm)));
    check_all!(Keyed, |algorithm| Keyed::new(algorithm, 70), 70);
}

/// The `Debug` of leases shows the quota of their limiter, which is smaller than the whole by the
/// total.
#[test]
fn a_short_constructor_of_leases_takes_the_total() {
    let quota = Quota::per_hour(90);
    let leases = Leases::token_bucket(quota, 30).expect("it leaves 60");
    assert_eq!((leases.max_lent(), leases.limiter().available()), (30, 60));
    assert!(
        format!("{leases:?}").contains("algorithm: token-bucket 90/h burst 60"),
        "{leases:?}"
    );
    let (window, total) = (Leases::fixed_window(quota, 90), 90);
    let expected = Some(LimiterError::LeasesTooLarge { total, max: 89 });
    assert_eq!(window.err(), expected);
    let zero = Err(LimiterError::ZeroLeases);
    assert_eq!(Leases::sliding_window(quota, 0).map(drop), zero);
    assert_eq!(Leases::leaky_meter(quota, 0).map(drop), zero);
}

#[test]
fn the_short_constructor_refuses_the_same_capacities() {
    let zero = Err(LimiterError::ZeroCapacity);
    assert_eq!(Keyed::gcra(Quota::per_hour(5), 0).map(drop), zero);
}

#[test]
fn the_debug_of_an_algorithm_is_its_text() {
    let quota = Quota::per_second(7).burst(40);
    let queue = LeakyBucket::queue(quota).expect("a queue").free(3);
    assert_eq!(format!("{queue:?}"), "leaky-queue 7/s burst 40 free 3");
    assert_eq!(queue.to_string(), "leaky-queue 7/s burst 40 free 3");
    assert_eq!(format!("{quota:?}"), "7/s burst 40");
    let any = tollgate::AnyAlgorithm::from(queue);
    assert_eq!(format!("{any:?}"), any.to_string());
    let sharded = Sharded::token_bucket(quota).expect("a bucket");
    let _ = sharded.at(Tick::ZERO).try_acquire();
    let view = format!("{:?}", sharded.at(Tick::ZERO));
    let holds =
        view.starts_with("ShardedView { algorithm: token-bucket 7/s burst 40, available: 39,");
    assert!(holds, "{view}");
}

/// `Debug` is not a verb: a limiter starts with its first verb, and not before.
#[test]
fn a_view_shows_what_is_available_and_starts_nothing() {
    let bucket = TokenBucket::new(Quota::per_hour(5).initial(2)).expect("a bucket");
    let limiter = Limiter::unstarted(bucket, NoClock);
    let hours = |n| Tick::ZERO.saturating_add(Duration::from_secs(3600) * n);
    let shown = format!("{:?}", limiter.at(hours(1)));
    assert!(
        !shown.contains("available") && shown.contains("WordCell(unstarted)"),
        "{shown}"
    );
    assert_eq!(limiter.at(hours(9)).available(), 2);
    let shown = format!("{:?}", limiter.at(hours(9)));
    let expected = "View { store: WordStore { algorithm: token-bucket 5/h initial 2, cell: \
         WordCell(34560000000000) }, available: 2, now: Tick(32400s) }";
    assert_eq!(shown, expected);
}

/// Keys that are not in the table are not inserted.
#[test]
fn the_debug_of_a_key_inserts_nothing() {
    let table = Keyed::token_bucket(Quota::per_hour(5), 70).expect("a table");
    let now = Tick::ZERO;
    let _ = format!("{:?}", table.key("alice").at(now));
    assert!(table.is_empty());
    for _ in 0..2 {
        let _ = table.key("alice").at(now).try_acquire();
    }
    let shown = format!("{:?}", table.key("alice").at(now));
    assert!(shown.contains("available: 3, now: Tick(0ns)"), "{shown}");
}

/// Shows the current quota, not the initial one.
#[test]
fn debug_shows_the_current_quota() {
    let quotas = [Quota::per_hour(80), Quota::per_hour(70)];
    let adjustable = Adjustable::token_bucket(Quota::per_hour(90)).expect("a bucket");
    for quota in quotas {
        adjustable.set_quota(quota, Keep::AsIs).expect("a quota");
        let shown = format!("{adjustable:?}");
        let starts = format!("Adjustable {{ algorithm: token-bucket {quota}, version: ");
        assert!(shown.starts_with(&starts), "{shown}");
    }
    let keyed = Keyed::token_bucket(Quota::per_hour(90), 70).expect("a table");
    for quota in quotas {
        keyed.set_quota(quota, Keep::AsIs).expect("a quota");
        let shown = format!("{keyed:?}");
        let starts = format!("Keyed {{ plans: [token-bucket {quota}], tracked: 0,");
        assert!(shown.starts_with(&starts), "{shown}");
    }
}
