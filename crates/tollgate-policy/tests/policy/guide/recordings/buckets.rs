//! Spring's token bucket, and ShenYu's token bucket and leaky bucket.

use std::cell::Cell;
use std::rc::Rc;

use tollgate_replay::{Class, Comparison, Header, Malformed, Op, Replay, Source, quota};

use super::gate::Gate;
use super::{Begun, SECOND, redis_bucket, replay, shenyu_leaky};

#[test]
fn springs_recorded_requests_are_decided_as_by_the_core() {
    let counts = Rc::new(Counts::default());
    let file = "redis_spring_gateway_token_bucket.jsonl.gz";
    replay(file, &Buckets(Rc::clone(&counts)));
    assert_eq!(counts.calls.get(), 6900);
    assert!(counts.denied.get() > 1000, "{counts:?}");
    assert_eq!(counts.taken_over.get(), 20);
}

#[test]
fn shenyus_recorded_token_buckets_are_decided_as_by_the_core() {
    let counts = Rc::new(Counts::default());
    let file = "redis_shenyu_token_bucket.jsonl.gz";
    replay(file, &Buckets(Rc::clone(&counts)));
    assert_eq!(counts.calls.get(), 5250);
    assert!(counts.denied.get() > 1000, "{counts:?}");
    assert_eq!(counts.taken_over.get(), 80);
}

#[test]
fn shenyus_recorded_leaky_buckets_are_decided_as_by_the_core() {
    let counts = Rc::new(Counts::default());
    let file = "redis_shenyu_leaky_bucket.jsonl.gz";
    replay(file, &Buckets(Rc::clone(&counts)));
    assert_eq!(counts.calls.get(), 5250);
    assert!(counts.denied.get() > 1000, "{counts:?}");
    assert_eq!(counts.taken_over.get(), 11);
}

/// What was compared.
#[derive(Debug, Default)]
struct Counts {
    calls: Cell<u64>,
    denied: Cell<u64>,
    taken_over: Cell<u64>,
}

struct Buckets(Rc<Counts>);

impl Source for Buckets {
    fn knows(&self, _: &Header) -> bool {
        true
    }

    fn begin(&self, header: &Header) -> Begun {
        let is_spring = header.source.starts_with("spring");
        let is_leaky = header.algorithm == "leaky_bucket";
        let core = match (is_spring, is_leaky) {
            (true, _) => redis_bucket::spring(header)?,
            (_, true) => shenyu_leaky::begin(header)?,
            _ => redis_bucket::shenyu(header)?,
        };
        let quota = quota(&header.config)?;
        let capacity = quota.burst_size();
        let algorithm = if is_leaky {
            "leaky-meter"
        } else {
            "token-bucket"
        };
        // A bucket of capacity 0 denies all, which a policy says with a list.
        let policy = if capacity == 0 {
            "[[deny]]\nname = \"closed\"\nwhen = { user = true }".to_owned()
        } else {
            format!(
                "[[rule]]\nname = \"route\"\nkey = \"user\"\nlimit = \"{algorithm} {quota}\"\n\
                 cost = {{ estimate = \"requested-tokens\", min = 0 }}",
            )
        };
        Ok(Box::new(Bucket {
            core,
            gate: Gate::new(&policy),
            policy,
            permits: quota.permits() as f64 / quota.period().as_secs_f64(),
            capacity: capacity as f64,
            is_leaky,
            missing: 0.0,
            missing_at: 0,
            counts: Rc::clone(&self.0),
        }))
    }
}

/// A trace, replayed by the core and by a policy.
struct Bucket {
    core: Box<dyn Replay>,
    gate: Gate,
    policy: String,
    /// Permits a second.
    permits: f64,
    capacity: f64,
    /// The recorded level is what is missing. Of other buckets it is what is left.
    is_leaky: bool,
    /// The permits that were missing in the last recorded state, and its second.
    missing: f64,
    missing_at: u64,
    counts: Rc<Counts>,
}

impl Replay for Bucket {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let comparison = self.core.call(op)?;
        let (n, t) = redis_bucket::asked(op)?;
        // ShenYu's errors admit.
        let theirs = op.result.flag("ok").unwrap_or(true);
        let ours = theirs == comparison.agrees_on("ok");
        let decided = self.gate.ask(n, t * SECOND);
        if self.capacity == 0.0 {
            // The core has no such bucket, and theirs grants requests for nothing.
            assert!(!decided.is_allowed && theirs == (n == 0), "{op:?}");
        } else {
            assert_eq!(decided.is_allowed, ours, "{op:?}");
            let left = comparison.numbers("tokens_left").map(|(_, ours)| ours);
            if let (true, Some(left)) = (decided.is_allowed, left) {
                assert_eq!(decided.left.map(i128::from), Some(left), "{op:?}");
            }
        }
        let stored = op.result.get("stored").and(op.result.f64("stored").ok());
        match stored {
            Some(level) if !self.is_leaky => self.missing = self.capacity - level,
            Some(level) if theirs => self.missing = level,
            _ => {}
        }
        if !self.is_leaky || theirs {
            self.missing_at = t;
        }
        add(&self.counts.calls, 1);
        add(&self.counts.denied, u64::from(!decided.is_allowed));
        Ok(comparison)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        self.core.class(op, comparison, field)
    }

    /// Takes over the state in a new policy: a request takes whole permits, so long ago that what
    /// is not missing has been refilled.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let takes_over = self.core.take_over(op)?;
        if takes_over {
            let (_, t) = redis_bucket::asked(op)?;
            let since = t.saturating_sub(self.missing_at) as f64;
            let missing = (self.missing - since * self.permits).max(0.0);
            let whole = missing.ceil();
            let refilled = ((whole - missing) / self.permits * 1e9).round();
            self.gate = Gate::new(&self.policy);
            let taken = self.gate.ask(whole as u64, t * SECOND - refilled as u64);
            assert!(taken.is_allowed, "{whole} permits of a new bucket");
            add(&self.counts.taken_over, 1);
        }
        Ok(takes_over)
    }
}

fn add(count: &Cell<u64>, n: u64) {
    count.set(count.get() + n);
}
