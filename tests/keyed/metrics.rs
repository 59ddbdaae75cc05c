//! Statistics as Prometheus text. The output is parsed by the rules of the format, with each metric
//! once. Invalid names and labels are refused before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use tollgate::compose::Line;
use tollgate::stats::{LimiterStats, Metrics, MetricsError, write_prometheus};

use crate::support::*;

type Labels = BTreeMap<String, String>;

/// A limiter with its labels.
type Labeled<'a> = (&'a [(&'a str, &'a str)], &'a dyn Metrics);

/// A parsed metric.
#[derive(Debug)]
struct Family {
    name: String,
    kind: String,
    samples: BTreeMap<Labels, f64>,
}

fn is_name(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(rest) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Parses `{a="b",c="d"}`, and returns the rest of the text.
fn read_labels(text: &str) -> (Labels, &str) {
    let mut labels = Labels::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return (labels, text);
    };
    loop {
        let (name, value) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name) && !name.contains(':'), "{name}");
        let (mut read, mut letters) = (String::new(), value.char_indices());
        rest = loop {
            match letters.next().expect("a closing quote") {
                (at, '"') => break &value[at + 1..],
                (_, '\\') => read.push(match letters.next().expect("an escape").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} is no escape"),
                }),
                (_, c) => read.push(c),
            }
        };
        assert_eq!(labels.insert(name.to_owned(), read), None, "{name} twice");
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", after) => return (labels, after),
            (other, _) => panic!("{other} after a label"),
        }
    }
}

/// Parses the exposition format, in which a metric is described once, before its samples.
fn read(text: &str) -> Vec<Family> {
    assert!(text.is_empty() || text.ends_with('\n'));
    let (mut families, mut names) = (Vec::<Family>::new(), BTreeSet::new());
    let mut lines = text.split_terminator('\n').peekable();
    while let Some(line) = lines.next() {
        let about = line.strip_prefix("# HELP ").expect("a description");
        let (name, help) = about.split_once(' ').expect("a name");
        assert!(is_name(name) && names.insert(name), "{name}");
        assert!(help.ends_with('.') && !help.contains('\\'), "{help}");
        let line = lines.next().expect("a type");
        let kind = line
            .strip_prefix(&format!("# TYPE {name} "))
            .expect("its type");
        let is_counter = match kind {
            "counter" => true,
            "gauge" => false,
            kind => panic!("{kind}"),
        };
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        let mut samples = BTreeMap::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (labels, value) = read_labels(line.strip_prefix(name).expect("its name"));
            let value = value.strip_prefix(' ').expect("a blank");
            let before = samples.insert(labels, value.parse().expect("a number"));
            assert_eq!(before, None, "a sample twice: {line}");
        }
        assert!(!samples.is_empty(), "{name} has no sample");
        families.push(Family {
            name: name.to_owned(),
            kind: kind.to_owned(),
            samples,
        });
    }
    families
}

fn written(prefix: &str, limiters: &[Labeled]) -> String {
    let mut text = String::new();
    write_prometheus(&mut text, prefix, limiters).expect("written");
    text
}

/// Checks the values of a single limiter, each after its name.
fn is(limiter: &dyn Metrics, right: &str) {
    let families = read(&written("t", &[(&[], limiter)]));
    let values = families.iter().map(|family| {
        let value = family.samples.get(&Labels::new());
        let value = value.expect("a sample without labels");
        format!("{} {value}", family.name.trim_start_matches("t_"))
    });
    assert_eq!(values.collect::<Vec<_>>().join(", "), right);
}

fn limiter() -> Counted<Limiter<TokenBucket, ManualClock>> {
    Counted::new(Limiter::with_clock(bucket("5/h"), ManualClock::new()))
}

#[test]
fn each_statistic_is_written_under_its_name() {
    let counted = limiter();
    let granted = counted.try_acquire_n(4).expect("a burst");
    assert!(counted.try_acquire_n(2).is_err());
    counted.undo(granted);
    counted.charge(7);
    let decided = |[granted, permits, denied, returned, charged]: [u64; 5]| {
        format!(
            "granted_total {granted}, permits_total {permits}, denied_total {denied}, \
             returned_total {returned}, charged_total {charged}"
        )
    };
    is(&counted.stats(), &decided([1, 4, 1, 4, 7]));

    let keys = "slots 2048, tracked 2, idle 0, inserted_total 3, expired_total 0, evicted_total 0, \
                evicted_protected_total 0, removed_total 1, no_room_total 0";
    let table = Keyed::with_clock(bucket("5/h"), 100, ManualClock::new()).expect("a table");
    let table = Counted::new(table);
    for key in 0..3_u64 {
        assert!(table.key(&key).try_acquire().is_ok());
    }
    assert!(table.limiter().key(&1_u64).remove());
    is(&table.stats(), &decided([3, 3, 0, 0, 0]));
    is(&table.limiter().stats(), keys);

    let uploads = Concurrency::new(8).expect("a limit").counted();
    drop(uploads.try_enter_n(5));
    let guard = uploads.try_enter_n(3);
    let inside = format!("{}, inside 3, peak 5, limit 8", decided([2, 8, 0, 0, 0]));
    let none = "waiting 0, waiting_permits 0";
    is(&uploads, &format!("{inside}, {none}"));
    let mut waits = pin!(uploads.enter_n(7));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    is(&uploads, &format!("{inside}, waiting 1, waiting_permits 7"));
    drop(guard);

    let limits = All::new(Limiter::with_clock(bucket("5/h"), ManualClock::new())).expect("a limit");
    is(&Line::new(&limits), none);

    let leases = Leases::with_clock(bucket("5/h"), 3, ManualClock::new()).expect("leases");
    let lease = leases.lease(2);
    is(&leases, "lent 2, max_lent 3");
    drop(lease);
}

#[test]
fn several_limiters_share_each_metrics_description() {
    let (one, two) = (limiter(), limiter());
    let uploads = Concurrency::new(8).expect("a limit");
    assert!(two.try_acquire().is_ok());
    let text = written(
        "app:tollgate",
        &[
            (&[("limiter", "one"), ("zone", "eu")], &one.stats()),
            (&[("limiter", "two")], &two.stats()),
            // The same labels are valid if the metrics differ.
            (&[("limiter", "two")], &uploads),
        ],
    );
    let families = read(&text);
    assert_eq!(families.len(), 5 + 5);
    for family in families {
        let is_gauge = family.kind == "gauge";
        assert_eq!(family.samples.len(), if is_gauge { 1 } else { 2 });
        if family.name == "app:tollgate_granted_total" {
            let samples = family.samples.iter();
            let samples = samples.map(|(labels, value)| (labels["limiter"].as_str(), *value));
            assert_eq!(samples.collect::<Vec<_>>(), [("one", 0.0), ("two", 1.0)]);
        }
    }
    assert_eq!(written("tollgate", &[]), "");
}

#[test]
fn any_text_is_a_valid_label_value() {
    let counted = limiter();
    let mut random = Random(13);
    for round in 0..2000 {
        let letters = (0..random.below(12)).map(|_| match random.below(9) {
            0 => '\\',
            1 => '"',
            2 => '\n',
            3 => 'n',
            4 => '}',
            5 => ',',
            6 => '=',
            7 => ' ',
            _ => char::from_u32(random.below(0x11_0000) as u32).unwrap_or('é'),
        });
        let value: String = match round {
            0 => "C:\\dir\\n \"quoted\"\nnext".to_owned(),
            _ => letters.collect(),
        };
        let text = written("t", &[(&[("a", &value), ("_b2", "x")], &counted.stats())]);
        let right = [("a", value.as_str()), ("_b2", "x")];
        let right = right.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for family in read(&text) {
            assert!(
                family.samples.contains_key(&Labels::from(right.clone())),
                "{text}"
            );
        }
    }
    let text = written("t", &[(&[("a", "\\ \" \n")], &counted.stats())]);
    assert!(
        text.contains("\nt_granted_total{a=\"\\\\ \\\" \\n\"} 0\n"),
        "{text}"
    );
}

#[test]
fn large_counts_are_exact() {
    let mut stats = LimiterStats::default();
    stats.granted = u64::MAX;
    let text = written("t", &[(&[], &stats)]);
    assert!(
        text.contains("\nt_granted_total 18446744073709551615\n"),
        "{text}"
    );
}

#[test]
fn bad_names_and_equal_labels_are_refused_before_anything_is_written() {
    let stats = limiter().stats();
    let refused = |prefix: &str, limiters: &[Labeled]| {
        let mut text = String::new();
        let error = write_prometheus(&mut text, prefix, limiters).expect_err("refused");
        assert_eq!(text, "");
        error
    };
    for prefix in ["", "1st", "a-b", "a b", "ä", "a\n"] {
        let error = refused(prefix, &[(&[], &stats)]);
        assert_eq!(error, MetricsError::Prefix(prefix.to_owned()));
        let said = error.to_string();
        assert!(said.starts_with(&format!("prefix is {prefix:?}, but must be letters")));
    }
    for name in ["", "1st", "a-b", "a:b", "__name__", "a\"", "ä"] {
        let error = refused("t", &[(&[("ok", "")], &stats), (&[(name, "x")], &stats)]);
        assert_eq!(error, MetricsError::LabelName(name.to_owned()));
        assert!(
            error
                .to_string()
                .contains("but must be letters, digits and `_`")
        );
    }
    let error = refused("t", &[(&[("a", "1"), ("b", "2"), ("a", "3")], &stats)]);
    assert_eq!(error, MetricsError::DuplicateLabel("a".to_owned()));
    let [one, other] = [[("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")]];
    let error = refused("t", &[(&[], &stats), (&one, &stats), (&other, &stats)]);
    assert_eq!(error, MetricsError::SameLabels(1, 2));
    let said = "labels of limiters 1 and 2 are the same, but must differ where limiters have the \
                same metrics";
    assert_eq!(error.to_string(), said);
}

#[test]
fn an_output_that_fails_is_reported() {
    struct Full;
    impl fmt::Write for Full {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    let out: &mut dyn fmt::Write = &mut Full;
    let error = write_prometheus(out, "t", &[(&[], &limiter().stats())]);
    assert_eq!(error, Err(MetricsError::Output(fmt::Error)));
}
