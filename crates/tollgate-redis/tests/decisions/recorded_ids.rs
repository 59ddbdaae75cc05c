//! The recorded calls of ShenYu's concurrent limit: our slots are held and given back as those of
//! the core's replay.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tollgate_replay::{
    Class, Comparison, Header, Malformed, Op, Replay, Source, read_text, run_text,
};

use super::{Episode, SOME_DAY, classes, server};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::kind::{Kind, Mark};
use crate::server::call::{self, Call, Part};

#[path = "../../../../tests/traces/sources/shenyu_concurrent.rs"]
mod shenyu_concurrent;

// What the adapter takes from its parent.
type Begun = Result<Box<dyn Replay>, Malformed>;

const FILE: &str = "redis_shenyu_concurrent.jsonl.gz";

#[test]
fn recorded_ids_hold_slots_as_in_the_core() {
    let expected = include_str!("../../../../tests/traces/expected.txt");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let recorder = Recorder::default();
    let text = read_text(&folder.join(FILE)).expect("a recording");
    let report = run_text(FILE, &text, &[&recorder]);
    assert!(expected.contains(&format!("\n{report}\n")), "{report}");
    let traces = recorder.traces.take();
    server::on_each_server(|connection| {
        let mut steps = 0;
        for (number, (limit, trace)) in traces.iter().enumerate() {
            let mut slots = Slots {
                key: format!("ids{number}"),
                kind: limit.kind,
                holders: BTreeMap::new(),
                connection,
            };
            for step in trace.borrow().iter() {
                slots.run(step);
                steps += 1;
            }
        }
        // Each call, and 13 repeated ids that take no second place.
        assert_eq!(steps, 1000 + 13);
    });
}

/// What was done with an id.
#[derive(Debug)]
enum Step {
    /// It asked for a place. Says whether the core had one.
    Enter { id: String, ok: bool },
    /// It left. Says whether the core had it.
    Leave { id: String, was_inside: bool },
    /// The first of its two places was given back.
    LeaveOnce { id: String },
}

type Steps = Rc<RefCell<Vec<Step>>>;

#[derive(Default)]
struct Recorder {
    traces: RefCell<Vec<(Limit, Steps)>>,
}

impl Source for Recorder {
    fn knows(&self, _: &Header) -> bool {
        true
    }

    fn begin(&self, header: &Header) -> Begun {
        let replay = shenyu_concurrent::begin(header)?;
        let long = Duration::from_secs(365 * 24 * 3600);
        let limit = Limit::concurrency(header.config.u64("capacity")?, long).expect("accepted");
        let steps = Steps::default();
        self.traces.borrow_mut().push((limit, Rc::clone(&steps)));
        Ok(Box::new(Recorded { replay, steps }))
    }
}

struct Recorded {
    replay: Box<dyn Replay>,
    steps: Steps,
}

impl Replay for Recorded {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let comparison = self.replay.call(op)?;
        let id = op.args.text("id")?.to_owned();
        self.steps.borrow_mut().push(match op.name.as_str() {
            "acquire" => Step::Enter {
                id,
                ok: op.result.flag("ok")? == comparison.agrees_on("ok"),
            },
            _ => Step::Leave {
                id,
                was_inside: (op.result.u64("removed")? == 1) == comparison.agrees_on("removed"),
            },
        });
        Ok(comparison)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        self.replay.class(op, comparison, field)
    }

    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let does = self.replay.take_over(op)?;
        if does {
            let id = op.args.text("id")?.to_owned();
            self.steps.borrow_mut().push(Step::LeaveOnce { id });
        }
        Ok(does)
    }
}

/// The slots of a trace on a server.
struct Slots<'a> {
    key: String,
    kind: Kind,
    /// The marks of each id's places.
    holders: BTreeMap<String, Vec<Mark>>,
    connection: &'a mut redis::Connection,
}

impl Slots<'_> {
    fn part(&self) -> Part<'_> {
        Part {
            key: self.key.as_bytes(),
            kind: &self.kind,
            n: 1,
        }
    }

    fn send(&mut self, call: &Call) -> Reply {
        let mut episode = Episode::new();
        episode.call(call, SOME_DAY);
        // The leases are so long that no key expires.
        episode.replies(self.connection).next().expect("a reply")
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Enter { id, ok } => {
                let take = call::take(&[self.part()]).expect("not never");
                let reply = self.send(&take);
                let taken = call::taken(&[self.part()], &reply).expect("a reply");
                assert_eq!(taken.is_ok(), *ok, "{step:?}");
                for taken in taken.into_iter().flatten() {
                    let at = taken.mark;
                    let is_reserved = false;
                    let marks = self.holders.entry(id.clone()).or_default();
                    marks.push(Mark {
                        at,
                        is_reserved,
                        ..Mark::default()
                    });
                }
            }
            Step::Leave { id, was_inside } => {
                let marks = self.holders.remove(id).unwrap_or_default();
                assert_eq!(!marks.is_empty(), *was_inside, "{step:?}");
                for mark in marks {
                    self.give(mark);
                }
            }
            Step::LeaveOnce { id } => {
                let marks = self.holders.get_mut(id).expect("an id that is inside");
                assert_eq!(marks.len(), 2, "{step:?}");
                let first = marks.remove(0);
                self.give(first);
            }
        }
    }

    fn give(&mut self, mark: Mark) {
        let give = call::give(&[(self.part(), Some(mark))]);
        let reply = self.send(&give);
        let given = call::given(&[(self.part(), Some(mark))], &reply);
        assert_eq!(given, Ok(vec![1]));
    }
}
