//! ShenYu's concurrent limit: an id holds a place while its request is in progress.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tollgate_replay::{Class, Comparison, Header, Malformed, Op, Replay, Source};

use super::gate::{Gate, InProgress};
use super::{Begun, replay, shenyu_concurrent};

#[test]
fn shenyus_recorded_ids_hold_places_as_in_the_core() {
    let calls = Rc::new(Cell::new(0));
    replay("redis_shenyu_concurrent.jsonl.gz", &Ids(Rc::clone(&calls)));
    assert_eq!(calls.get(), 1000);
}

struct Ids(Rc<Cell<u64>>);

impl Source for Ids {
    fn knows(&self, _: &Header) -> bool {
        true
    }

    fn begin(&self, header: &Header) -> Begun {
        let core = shenyu_concurrent::begin(header)?;
        let capacity = header.config.u64("capacity")?;
        let policy = format!("[[rule]]\nname = \"rule\"\nlimit = \"concurrency {capacity}\"");
        Ok(Box::new(Trace {
            core,
            holders: BTreeMap::new(),
            again: None,
            gate: Gate::new(&policy),
            calls: Rc::clone(&self.0),
        }))
    }
}

/// A trace, replayed by the core and by a policy.
struct Trace {
    core: Box<dyn Replay>,
    /// The requests in progress, by their ids.
    holders: BTreeMap<String, InProgress>,
    /// The first request of an id that came again.
    again: Option<InProgress>,
    gate: Gate,
    calls: Rc<Cell<u64>>,
}

impl Replay for Trace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let comparison = self.core.call(op)?;
        let id = op.args.text("id")?.to_owned();
        self.calls.set(self.calls.get() + 1);
        if op.name == "acquire" {
            let ours = op.result.flag("ok")? == comparison.agrees_on("ok");
            let entered = self.gate.enter();
            assert_eq!(entered.is_some(), ours, "{op:?}");
            if let Some(request) = entered {
                self.again = self.holders.insert(id, request);
            }
        } else {
            let was_inside = (op.result.u64("removed")? == 1) == comparison.agrees_on("removed");
            let request = self.holders.remove(&id);
            assert_eq!(request.is_some(), was_inside, "{op:?}");
            if let Some(request) = request {
                self.gate.leave(request);
            }
        }
        Ok(comparison)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        self.core.class(op, comparison, field)
    }

    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let takes_over = self.core.take_over(op)?;
        let again = self.again.take();
        assert_eq!(again.is_some(), takes_over, "{op:?}");
        if let Some(request) = again {
            self.gate.leave(request);
        }
        Ok(takes_over)
    }
}
