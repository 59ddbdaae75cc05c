//! The numeric examples of the documentation.

use tollgate::algorithm::Rounding;

use crate::support::*;

fn seconds(n: u64) -> Tick {
    tick(n * SECOND)
}

#[test]
fn the_sliding_window_matches_the_published_example() {
    let window = SlidingWindow::new(Quota::per_minute(10)).expect("a window");
    for (rounding, there, seconds_to_go) in [(Rounding::Exact, 3, 80), (Rounding::Down, 4, 100)] {
        let limiter = Limiter::unstarted(window.rounding(rounding), NoClock);
        assert_eq!(limiter.at(seconds(30)).charge(9).debt(), 0);
        // A quarter into the next window, three quarters of the nine count: 6.75.
        let now = limiter.at(seconds(75));
        assert_eq!(now.level().as_f64(), 6.75);
        assert_eq!(now.available(), there);
        // With five more it is 11.75, which is above 10.
        assert_eq!(now.charge(5).n(), 5);
        assert_eq!(now.level().as_f64(), 11.75);
        assert_eq!((now.level().floor(), now.level().ceil()), (11, 12));
        let denied = now.try_acquire().expect_err("11.75 > 10");
        // One permit is available when 9 * left / 60 s is at most 4, or below 5: at 26.67 or 33.33
        // s before the end.
        let wait = denied.retry_after().expect("in this window").as_nanos();
        let right = 45 * SECOND - seconds_to_go * SECOND / 3;
        assert!(wait.abs_diff(right.into()) <= 1, "{wait} and {right}");
    }
}

#[test]
fn the_queue_matches_the_nginx_example() {
    // rate=10r/s burst=4 delay=1.
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(5)).expect("a queue");
    let delays = |queue: LeakyBucket| {
        let limiter = Limiter::with_clock(queue, ManualClock::new());
        let granted = (0..9).map_while(|_| limiter.try_acquire().ok());
        granted
            .map(|granted| granted.delay().as_millis())
            .collect::<Vec<_>>()
    };
    assert_eq!(delays(queue), [0, 100, 200, 300, 400]);
    assert_eq!(delays(queue.free(1)), [0, 0, 100, 200, 300]);
    assert_eq!(delays(queue.free(4)), [0; 5]);
    assert_eq!(delays(queue.free(u64::MAX)), [0; 5]);
    // The permits of one request leave together, when the last of them is due.
    let limiter = Limiter::with_clock(queue, ManualClock::new());
    let three = limiter.try_acquire_n(3).expect("there is room");
    assert_eq!(three.delay(), Duration::from_millis(200));
    assert_eq!(limiter.take_up_to(9).delay(), Duration::from_millis(400));
    // A queue that delays nothing is a meter, unless it would delay a larger burst.
    assert_eq!(Ok(queue.free(u64::MAX)), LeakyBucket::meter(queue.quota()));
    assert_eq!(queue.free(u64::MAX).free_permits(), None);
    let larger = queue.free(4).with_quota(Quota::per_second(10).burst(7));
    assert_eq!(larger.map(|queue| queue.free_permits()), Ok(Some(4)));
}

#[test]
fn a_window_charge_reports_what_it_recorded_and_expires() {
    let windows = FixedWindow::new(Quota::per_day(1000)).expect("windows");
    let limiter = Limiter::unstarted(windows, NoClock);
    let most = 1000 + windows.largest_debt();
    let charged = limiter.at(Tick::ZERO).charge(u64::MAX);
    assert_eq!((charged.n(), charged.debt()), (most, most - 1000));
    assert_eq!(charged.clear_after(), Duration::from_secs(86_400));
    assert_eq!(limiter.at(Tick::ZERO).charge(1).n(), 0);
    assert_eq!(limiter.at(seconds(86_400)).available(), 1000);
    // A bucket does not forget a charge.
    let bucket = Intervals::new(Quota::per_day(1000)).expect("a bucket");
    let limiter = Limiter::unstarted(bucket, NoClock);
    assert_eq!(limiter.at(Tick::ZERO).charge(2500).debt(), 1500);
    assert_eq!(limiter.at(seconds(86_400)).charge(0).debt(), 500);
    assert_eq!(limiter.at(seconds(2 * 86_400)).available(), 500);
}
