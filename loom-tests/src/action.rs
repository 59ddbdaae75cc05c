//! What a thread does to a limiter with several words.

use std::fmt;
use std::sync::Arc;

use crate::verbs::Answer;

type Act<G, M> = dyn Fn(&Arc<G>, &mut M) -> Answer + Send + Sync;

/// One call on a limiter `G`, by a thread whose memory `M` holds, for example, its last grant.
pub struct Action<G, M> {
    name: String,
    act: Arc<Act<G, M>>,
}

impl<G, M> Action<G, M> {
    /// Makes an action with the name that reports use.
    pub fn new(
        name: impl Into<String>,
        act: impl Fn(&Arc<G>, &mut M) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            act: Arc::new(act),
        }
    }

    /// Makes the call.
    pub fn act(&self, limiter: &Arc<G>, memory: &mut M) -> Answer {
        (self.act)(limiter, memory)
    }
}

impl<G, M> Clone for Action<G, M> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            act: Arc::clone(&self.act),
        }
    }
}

impl<G, M> fmt::Display for Action<G, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
