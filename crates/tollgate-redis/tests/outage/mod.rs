//! The breaker and the bound of an open outage, with the time as an argument.

use super::*;

const EVERY: u64 = 1000;

fn lost() -> Unavailable {
    Unavailable::Client(ClientError::Unknown("gone".into()))
}

fn outage(number: u64) -> Outage {
    Outage {
        id: OutageId { node: 0, number },
        retry_after: Duration::ZERO,
    }
}

#[test]
fn one_probe_is_sent_in_each_interval_of_an_outage() {
    let mut breaker = Breaker::default();
    let pass = breaker.ask(0, EVERY).unwrap();
    assert!(breaker.failed(pass, &lost(), 0, EVERY).is_some());
    let mut probes = Vec::new();
    for now in 0..5 * EVERY {
        // Half of the probes are dropped without a word, the others fail.
        if let Ok(pass) = breaker.ask(now, EVERY) {
            probes.push(now);
            if probes.len() % 2 == 0 {
                assert_eq!(breaker.failed(pass, &lost(), now, EVERY), None);
            }
        }
    }
    assert_eq!(probes, [1000, 2000, 3000, 4000]);
    let left = breaker.ask(4001, EVERY).unwrap_err().retry_after;
    assert_eq!(left, Duration::from_micros(999));
}

#[test]
fn the_next_probe_waits_for_an_interval_after_a_slow_one_has_failed() {
    let mut breaker = Breaker::default();
    let pass = breaker.ask(0, EVERY).unwrap();
    assert!(breaker.failed(pass, &lost(), 0, EVERY).is_some());
    let probe = breaker.ask(1000, EVERY).unwrap();
    assert_eq!(breaker.failed(probe, &lost(), 9000, EVERY), None);
    assert!(breaker.ask(9999, EVERY).is_err());
    assert!(breaker.ask(10_000, EVERY).is_ok());
}

#[test]
fn an_outage_has_one_beginning_and_one_end() {
    let mut breaker = Breaker::default();
    let (first, second) = (
        breaker.ask(0, EVERY).unwrap(),
        breaker.ask(0, EVERY).unwrap(),
    );
    let late = breaker.ask(0, EVERY).unwrap();
    assert_eq!(
        breaker.failed(first, &lost(), 5, EVERY),
        Some(OutageEvent::Began { why: lost() })
    );
    assert_eq!(breaker.failed(second, &lost(), 6, EVERY), None);
    // An answer to a call from before the outage does not end it.
    assert_eq!(breaker.answered(late, 7, true), None);
    assert!(breaker.is_down());
    breaker.stats.count(Decider::Closed);
    breaker.stats.count(Decider::Open);
    breaker.stats.count(Decider::Local);
    let probe = breaker.ask(1005, EVERY).unwrap();
    let lasted = Duration::from_micros(1005);
    assert_eq!(
        breaker.answered(probe, 1010, true),
        Some(OutageEvent::Ended {
            lasted,
            fallbacks: 3
        })
    );
    // A failure from before does not begin the next outage.
    assert_eq!(breaker.failed(late, &lost(), 1011, EVERY), None);
    assert_eq!(breaker.failed(probe, &lost(), 1011, EVERY), None);
    assert!(!breaker.is_down());
    let stats = breaker.stats;
    assert_eq!((stats.server, stats.failed, stats.lost), (2, 4, 4));
    assert_eq!((stats.outages, stats.fallbacks()), (1, 3));
}

#[test]
fn calls_that_fail_after_an_outage_share_its_bound() {
    let mut breaker = Breaker::default();
    let late = breaker.ask(0, EVERY).unwrap();
    assert_eq!(breaker.outage(0, EVERY).id.number, 0);
    for number in 1..=3 {
        let now = number * 10 * EVERY;
        let pass = breaker.ask(now, EVERY).unwrap();
        assert!(breaker.failed(pass, &lost(), now, EVERY).is_some());
        assert_eq!(breaker.ask(now, EVERY).unwrap_err().id.number, number);
        let probe = breaker.ask(now + EVERY, EVERY).unwrap();
        assert!(breaker.answered(probe, now + EVERY, true).is_some());
        assert_eq!(breaker.failed(late, &lost(), now + EVERY, EVERY), None);
        assert_eq!(breaker.outage(now + EVERY, EVERY).id.number, number);
    }
}

#[test]
fn a_key_that_cant_be_read_does_not_begin_an_outage() {
    let mut breaker = Breaker::default();
    let refused = |code: &str| {
        Unavailable::Client(ClientError::Refused {
            code: code.into(),
            message: String::new(),
        })
    };
    let pass = breaker.ask(0, EVERY).unwrap();
    assert_eq!(breaker.failed(pass, &refused("BADSTATE"), 0, EVERY), None);
    assert!(!breaker.is_down());
    assert!(
        breaker
            .failed(pass, &refused("READONLY"), 0, EVERY)
            .is_some()
    );
    assert_eq!(breaker.stats.lost, 0);
}

#[test]
fn an_open_outage_grants_its_bound_once_however_long_it_is() {
    let mut bound = OpenBound::default();
    let mut granted = 0;
    for _ in 0..1000 {
        granted += u64::from(bound.take(outage(1), 3, 10).is_ok()) * 3;
    }
    assert_eq!(granted, 9);
    assert_eq!(bound.take(outage(1), 1, 10), Ok(0));
    assert_eq!(bound.give(1, 4), 4);
    assert_eq!(bound.take(outage(1), 4, 10), Ok(0));
    // A decision that is late, from an earlier outage, does not renew it.
    assert_eq!(bound.take(outage(2), 10, 10), Ok(0));
    assert!(bound.take(outage(1), 1, 10).is_err());
    assert!(bound.take(outage(2), 1, 10).is_err());
    assert_eq!(bound.give(1, 5), 0);
}
