//! What a thread does to a limiter that has several words.

use std::fmt;
use std::sync::Arc;

use crate::verb::Answer;

type Act<G, M> = dyn Fn(&Arc<G>, &mut M) -> Answer + Send + Sync;

/// One call on a limiter `G`, by a thread that remembers `M`: its last grant, say.
pub struct Action<G, M> {
    name: String,
    act: Arc<Act<G, M>>,
}

impl<G, M> Action<G, M> {
    /// A call, and what to call it.
    pub fn new(
        name: impl Into<String>,
        act: impl Fn(&Arc<G>, &mut M) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            act: Arc::new(act),
        }
    }

    /// Does it.
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
