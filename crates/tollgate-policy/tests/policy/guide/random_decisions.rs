//! The policy and the model decide random requests in the same way.

use std::collections::BTreeSet;

use crate::guide::decided::{Decided, Decider};
use crate::guide::model::Model;
use crate::guide::random_policies::{end, idle, policy, policy_on_server, request};
use crate::guide::{Held, Tested};
use crate::random::Random;

/// Of several limits that deny for the same time, either may be named. Rules may be listed in any
/// order.
fn agree(ours: &Decided, model: &Decided) -> bool {
    let by = |decided: &Decided| decided.by.iter().cloned().collect::<BTreeSet<_>>();
    let shadows = |decided: &Decided| decided.shadows.iter().cloned().collect::<BTreeSet<_>>();
    ours.is_allowed == model.is_allowed
        && ours.retry_after == model.retry_after
        && (!ours.is_allowed || by(ours) == by(model))
        && ours.left == model.left
        // Where the names differ, two rules deny for the same time.
        && (ours.by != model.by || ours.status == model.status)
        && shadows(ours) == shadows(model)
}

#[test]
fn random_requests_are_decided_as_by_the_model() {
    let (mut allowed, mut denied) = (0, 0);
    for seed in 0..260 {
        let random = &mut Random(seed);
        let text = match seed {
            0..200 => policy(random),
            _ => policy_on_server(random),
        };
        let (mut ours, mut model) = (Tested::new(&text), Model::new(&text));
        let mut in_progress: Vec<(Held, _)> = Vec::new();
        for step in 0..60 {
            let time = idle(random);
            ours.clock().advance(time);
            model.clock().advance(time);
            let facts = request(random);
            let (mine, held) = ours.decide(&facts);
            let (theirs, taken) = model.decide(&facts);
            assert!(
                agree(&mine, &theirs),
                "seed {seed}, step {step}: {facts:?}\n{mine:?}\n{theirs:?}\n{text}"
            );
            *(if mine.is_allowed {
                &mut allowed
            } else {
                &mut denied
            }) += 1;
            in_progress.push((held, taken));
            while in_progress.len() > 4 || (!in_progress.is_empty() && random.one_in(2)) {
                let (held, taken) = in_progress.remove(0);
                let end = end(random);
                ours.end(held, &end);
                model.end(taken, &end);
            }
        }
    }
    assert!(allowed > 3000 && denied > 1500, "{allowed} {denied}");
}
