//! A play by scripts, where loom has nothing to choose: what the outcomes of threads are compared
//! with.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate::primitive::modelled::{Conditions, Stop, stopping, under};

use super::{Play, Played};
use crate::script::{Script, Step};

/// Runs scripts on the correct crate. A script whose beginning was the whole deed gives nothing.
pub(super) fn read<G, M>(play: &Arc<Play<G, M>>, scripts: Vec<Script>) -> Vec<Option<Played>>
where
    G: Send + Sync + 'static,
    M: Default + Clone + Send + 'static,
{
    let mut all = Vec::new();
    // Loom counts the operations of one execution.
    for scripts in scripts.chunks(100) {
        let (play, scripts) = (Arc::clone(play), scripts.to_vec());
        all.extend(alone(move || {
            let outcomes = scripts.iter().map(|script| follow(&play, script));
            outcomes.collect::<Vec<_>>()
        }));
    }
    all
}

/// Runs something in a model with one thread.
fn alone<T: Send + 'static>(act: impl Fn() -> T + Send + Sync + 'static) -> T {
    let told = Arc::new(Mutex::new(None));
    let tells = Arc::clone(&told);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    under(Conditions::default(), || {
        builder.check(move || {
            let done = act();
            *tells.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
    });
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    told.take().expect("it ran")
}

fn follow<G, M>(play: &Play<G, M>, script: &Script) -> Option<Played>
where
    G: Send + Sync + 'static,
    M: Default + Clone + Send + 'static,
{
    let (gate, before, mut memories) = play.begin();
    let mut answers = vec![Vec::new(); play.actors.len()];
    for step in script {
        match *step {
            Step::Do(who) => {
                let deed = &play.actors[who][answers[who].len()];
                answers[who].push(deed.act(&gate, &mut memories[who]));
            }
            Step::Begin(who, writes) => {
                let deed = &play.actors[who][answers[who].len()];
                let mut memory = memories[who].clone();
                let done = stopping(Stop::Writes(writes), || deed.act(&gate, &mut memory));
                if done.is_some() {
                    return None;
                }
            }
        }
    }
    let after = (play.after)(&gate, &mut memories);
    Some(Played {
        before,
        answers,
        after,
    })
}
