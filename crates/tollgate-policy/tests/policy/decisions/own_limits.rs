//! Limits of a program's own, by the trait `KeyedLimit`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tollgate::{Denied, ManualClock, Tick};
use tollgate_policy::{KeyRef, KeyedLimit, Outcome, Policy};

/// What each key has taken of 10 permits.
type Taken = HashMap<Vec<u8>, u64>;

#[derive(Debug, Clone, Default)]
struct Ten(Arc<Mutex<Taken>>);

impl Ten {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().expect("no test panics with it")
    }

    fn sum(&self) -> u64 {
        self.taken().values().sum()
    }
}

impl KeyedLimit for Ten {
    fn check(&self, key: KeyRef<'_>, n: u64, _: Tick) -> Result<u64, Denied> {
        let left = 10 - self.taken().get(key.bytes()).unwrap_or(&0);
        (left >= n).then_some(left).ok_or(Denied::busy(n))
    }

    fn take(&self, key: KeyRef<'_>, n: u64, now: Tick) -> Result<u64, Denied> {
        let left = self.check(key, n, now)?;
        *self.taken().entry(key.bytes().to_vec()).or_default() += n;
        Ok(left - n)
    }

    fn undo(&self, key: KeyRef<'_>, n: u64, _: Tick) -> u64 {
        *self.taken().entry(key.bytes().to_vec()).or_default() -= n;
        n
    }
}

fn policy(fields: &str) -> (Policy<ManualClock>, Ten) {
    let ten = Ten::default();
    let made = ten.clone();
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.limit("ten", move |_| Ok(Box::new(made.clone())));
    let text = format!("[[rule]]\nname = 'own'\nkey = 'user'\nlimit = 'ten'\n{fields}");
    (builder.build_toml(&text).expect("a policy"), ten)
}

const ANN: [(&str, &str); 1] = [("user", "ann")];

#[test]
fn an_own_limit_is_taken_from_with_others_or_not_at_all() {
    let (policy, ten) = policy("also = ['all']\n[[rule]]\nname = 'all'\nlimit = '2/h'");
    assert_eq!(policy.decide(&ANN).remaining(), Some(1));
    let second = policy.decide(&[("user", "bob")]);
    assert_eq!((second.is_allowed(), ten.sum()), (true, 2));
    assert_eq!(policy.decide(&ANN).denied_by(), Some("all"));
    assert_eq!(ten.sum(), 2);
    // One came back from each of the two limits.
    assert_eq!((second.undo(), ten.sum()), (2, 1));
}

#[test]
fn an_own_limit_settles_a_cost() {
    let (policy, ten) = policy("cost = { default = 6, settle = 'used' }");
    let decision = policy.decide(&ANN);
    assert_eq!((decision.remaining(), ten.sum()), (Some(4), 6));
    assert_eq!(policy.decide(&ANN).denied_by(), Some("own"));
    let settled = decision.finish(Outcome::Success, &[("used", "1")]);
    assert_eq!((settled.returned, settled.lost, ten.sum()), (5, 0, 1));
    // What is used beyond the estimate is not charged by default.
    let settled = policy
        .decide(&ANN)
        .finish(Outcome::Success, &[("used", "8")]);
    assert_eq!((settled.charged, ten.sum()), (0, 7));
}

#[test]
fn an_own_limit_counts_each_key_of_a_request() {
    let (policy, ten) = policy("");
    let sets = [ANN, [("user", "bob")], ANN];
    let decision = policy.decide_together(&sets);
    assert_eq!((decision.asked().count(), ten.sum()), (2, 2));
    assert_eq!((decision.undo(), ten.sum()), (2, 0));
}

/// One permit for all keys, and nothing but what a limit must have.
#[derive(Debug, Default)]
struct One(Mutex<u64>);

impl KeyedLimit for One {
    fn take(&self, _: KeyRef<'_>, n: u64, _: Tick) -> Result<u64, Denied> {
        let mut taken = self.0.lock().expect("no test panics with it");
        *taken = Some(*taken + n)
            .filter(|sum| *sum <= 1)
            .ok_or(Denied::busy(n))?;
        Ok(1 - *taken)
    }

    fn undo(&self, _: KeyRef<'_>, n: u64, _: Tick) -> u64 {
        *self.0.lock().expect("no test panics with it") -= n;
        n
    }
}

#[test]
fn an_own_limit_without_a_check_is_looked_at_without_a_taking() {
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.limit("one", |_| Ok(Box::new(One::default())));
    let text = "[[rule]]\nname = 'own'\nkey = 'user'\nlimit = 'one'\nalso = ['all']\n\
                [[rule]]\nname = 'all'\nlimit = '2/h'";
    let policy = builder.build_toml(text).expect("a policy");
    let first = policy.decide(&ANN);
    assert!(first.is_allowed());
    let denied = policy.decide(&ANN);
    assert_eq!(denied.denied_by(), Some("own"));
    assert_eq!((denied.remaining(), denied.retry_after()), (Some(0), None));
    // A look at the other limit's answer took nothing of this one.
    assert_eq!(first.undo(), 2);
    assert_eq!(policy.decide(&ANN).remaining(), Some(0));
}
