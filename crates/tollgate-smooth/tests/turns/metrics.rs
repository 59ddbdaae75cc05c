//! The limiters are sources of metrics.

use tollgate::stats::write_prometheus;

use crate::support::*;

#[test]
fn a_limiter_writes_its_rate_and_its_stored_permits() {
    let limiter = SmoothBursty::with_clock(0.5, ManualClock::new()).expect("a rate");
    let mut text = String::new();
    write_prometheus(&mut text, "tollgate", &[(&[], &limiter)]).expect("valid names");
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let written = [
        "tollgate_rate 0.5",
        "tollgate_stored 0",
        "tollgate_max_stored 0.5",
    ];
    assert_eq!(samples, written);
}
