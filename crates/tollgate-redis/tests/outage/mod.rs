//! The breaker, with the time as an argument.

use super::*;

const EVERY: u64 = 1000;

fn lost() -> Unavailable {
    Unavailable::Client(ClientError::Unknown("gone".into()))
}

/// What begins an outage at once.
fn no_server() -> Unavailable {
    Unavailable::Client(ClientError::NotSent("refused".into()))
}

/// Fails a call.
fn fail(breaker: &mut Breaker, pass: Pass, why: &Unavailable, now: u64) -> Option<OutageEvent> {
    let others = Others {
        latest: &mut 0,
        is_down: false,
    };
    breaker.failed(pass, why, now, EVERY, others)
}

#[test]
fn one_probe_is_sent_in_each_interval_of_an_outage() {
    let mut breaker = Breaker::default();
    let pass = breaker.ask(0, EVERY).unwrap();
    assert!(fail(&mut breaker, pass, &no_server(), 0).is_some());
    let mut probes = Vec::new();
    for now in 0..5 * EVERY {
        // Half of the probes are dropped without a word, the others fail.
        if let Ok(pass) = breaker.ask(now, EVERY) {
            probes.push(now);
            if probes.len() % 2 == 0 {
                assert_eq!(fail(&mut breaker, pass, &lost(), now), None);
            }
        }
    }
    assert_eq!(probes, [1000, 2000, 3000, 4000]);
    let outage = breaker.ask(4001, EVERY / 2).unwrap_err();
    assert_eq!(outage.probe_in, Duration::from_micros(999));
    assert_eq!(outage.retry_after, Duration::from_micros(999 + EVERY / 2));
}

#[test]
fn the_next_probe_waits_for_an_interval_after_a_slow_one_has_failed() {
    let mut breaker = Breaker::default();
    let pass = breaker.ask(0, EVERY).unwrap();
    assert!(fail(&mut breaker, pass, &no_server(), 0).is_some());
    let probe = breaker.ask(1000, EVERY).unwrap();
    assert_eq!(fail(&mut breaker, probe, &no_server(), 9000), None);
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
        fail(&mut breaker, first, &no_server(), 5),
        Some(OutageEvent::Began { why: no_server() })
    );
    assert_eq!(fail(&mut breaker, second, &lost(), 6), None);
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
    assert_eq!(fail(&mut breaker, late, &no_server(), 1011), None);
    assert_eq!(fail(&mut breaker, probe, &lost(), 1011), None);
    assert!(!breaker.is_down());
    let stats = breaker.stats;
    assert_eq!((stats.server, stats.failed, stats.lost), (2, 4, 2));
    assert_eq!((stats.outages, stats.fallbacks()), (1, 3));
}

#[test]
fn an_outage_has_a_number_of_its_own_if_its_node_has_granted_and_no_other_is_down() {
    let mut latest = 0;
    let mut nodes = [Breaker::of(1), Breaker::of(2)];
    let mut numbers = Vec::new();
    for (now, (node, grants, is_down)) in [
        (0, false, false),
        (0, true, false),
        (1, false, false),
        (0, true, false),
        (0, false, false),
        (1, true, false),
        (0, true, false),
        (1, true, true),
        (1, false, false),
        (0, true, true),
    ]
    .into_iter()
    .enumerate()
    {
        let now = u64::try_from(now).unwrap() * 10 * EVERY;
        let breaker = &mut nodes[node];
        let pass = breaker.ask(now, EVERY).unwrap();
        let others = Others {
            latest: &mut latest,
            is_down,
        };
        assert!(
            breaker
                .failed(pass, &no_server(), now, EVERY, others)
                .is_some()
        );
        let Err(outage) = breaker.ask(now, EVERY) else {
            panic!("a call is sent in an outage");
        };
        numbers.push(outage.number.unwrap());
        assert_eq!(outage.now, Duration::from_micros(now));
        let probe = breaker.ask(now + EVERY, EVERY).unwrap();
        assert!(breaker.answered(probe, now + EVERY, grants).is_some());
        assert_eq!(breaker.outage(now + EVERY, EVERY).number, None);
    }
    assert_eq!(numbers, [0, 0, 0, 1, 2, 2, 2, 2, 3, 3]);
}

#[test]
fn a_call_that_is_sent_anyway_is_the_probe_of_the_next_interval() {
    let mut breaker = Breaker::default();
    let pass = breaker.ask(0, EVERY).unwrap();
    assert!(fail(&mut breaker, pass, &no_server(), 0).is_some());
    assert!(breaker.ask(10, EVERY).is_err());
    assert!(breaker.ask_anyway(10, EVERY).is_ok());
    assert!(breaker.ask_anyway(20, EVERY).is_ok());
    assert!(breaker.ask(19 + EVERY, EVERY).is_err());
    let probe = breaker.ask(20 + EVERY, EVERY).unwrap();
    assert!(breaker.answered(probe, 21 + EVERY, false).is_some());
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
    for _ in 0..100 {
        assert_eq!(fail(&mut breaker, pass, &refused("BADSTATE"), 0), None);
    }
    for i in 0..IN_A_SECOND {
        assert!(!breaker.is_down(), "{i}");
        let _ = fail(&mut breaker, pass, &refused("READONLY"), 0);
    }
    assert!(breaker.is_down());
    assert_eq!(breaker.stats.lost, 0);
}

#[test]
fn the_calls_of_the_last_second_count_and_no_others() {
    let mut recent = Recent::default();
    let tenth = |i: u64| i * TENTH;
    for i in 0..4 {
        assert!(!recent.add(tenth(i), true));
    }
    // The first of five is a second old.
    assert!(!recent.add(tenth(10), true));
    assert!(recent.add(tenth(10), true));
    for i in 0..6 {
        assert_eq!(recent.add(tenth(10), false), i < 5, "{i}");
    }
    // A caller's time may be older than that of the one before.
    assert!(recent.add(tenth(9), true));
    assert!(!recent.add(tenth(1000), true));
}
