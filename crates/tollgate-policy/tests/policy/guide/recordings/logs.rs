//! ShenYu's sliding window, which is a log.

use std::cell::Cell;
use std::rc::Rc;

use tollgate_replay::{Class, Comparison, Header, Malformed, Op, Replay, Source};

use super::gate::Gate;
use super::{Begun, SECOND, redis_bucket, replay, shenyu_log};

#[test]
fn shenyus_recorded_windows_are_decided_as_by_the_core() {
    let calls = Rc::new(Cell::new(0));
    replay(
        "redis_shenyu_sliding_window.jsonl.gz",
        &Logs(Rc::clone(&calls)),
    );
    assert_eq!(calls.get(), 3960);
}

struct Logs(Rc<Cell<u64>>);

impl Source for Logs {
    fn knows(&self, _: &Header) -> bool {
        true
    }

    fn begin(&self, header: &Header) -> Begun {
        let core = shenyu_log::begin(header)?;
        let capacity = header.config.u64("capacity")?;
        let window = header.config.f64("window_s")?;
        let policy = format!(
            "[[rule]]\nname = \"rule\"\nkey = \"user\"\nlimit = \"sliding-log {capacity}/{}ns\"\n\
             cost = {{ estimate = \"requested-tokens\", min = 0 }}",
            (window * 1e9).round()
        );
        Ok(Box::new(Log {
            core,
            gate: Gate::new(&policy),
            policy,
            window: (window * 1e9).round() as u64,
            admitted: Vec::new(),
            calls: Rc::clone(&self.0),
        }))
    }
}

/// A trace, replayed by the core and by a policy.
struct Log {
    core: Box<dyn Replay>,
    gate: Gate,
    policy: String,
    window: u64,
    /// The times of the calls that they admitted.
    admitted: Vec<u64>,
    calls: Rc<Cell<u64>>,
}

impl Replay for Log {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let comparison = self.core.call(op)?;
        let (n, t) = redis_bucket::asked(op)?;
        let theirs = op.result.flag("ok")?;
        let ours = theirs == comparison.agrees_on("ok");
        let decided = self.gate.ask(n, t * SECOND);
        assert_eq!(decided.is_allowed, ours, "{op:?}");
        if theirs {
            self.admitted.push(t * SECOND);
        }
        self.calls.set(self.calls.get() + 1);
        Ok(comparison)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        self.core.class(op, comparison, field)
    }

    /// Takes over the calls that they admitted, in a new policy.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let takes_over = self.core.take_over(op)?;
        if takes_over {
            let (_, t) = redis_bucket::asked(op)?;
            self.gate = Gate::new(&self.policy);
            self.admitted.retain(|then| then + self.window > t * SECOND);
            for then in &self.admitted {
                assert!(self.gate.ask(1, *then).is_allowed, "{op:?}");
            }
        }
        Ok(takes_over)
    }
}
