//! The messages of a node about one key. Nothing here waits, or reads a clock.

/// What a node asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ask {
    /// Grows with each message about a key.
    pub(crate) number: u64,
    /// The permits that the node keeps.
    pub(crate) keeps: u64,
    /// The permits that it gives back, and had before.
    pub(crate) returns: u64,
    /// The most permits that it wants in addition.
    pub(crate) wants: u64,
}

/// What the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    /// The number of the message.
    pub(crate) number: u64,
    /// How many of the permits that the node keeps it may keep: fewer if its lease had ended, or if
    /// the server has forgotten it.
    pub(crate) keeps: u64,
    pub(crate) granted: u64,
}

/// The holder of a key's lease: what it asked, and has no answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Holder {
    asked: Option<Asked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Asked {
    ask: Ask,
    /// When it was sent for the first time.
    at_ns: u64,
}

/// What an answer brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Brought {
    /// Permits that the node kept, and may not spend.
    pub(crate) lost: u64,
    pub(crate) granted: u64,
    /// When the message was sent for the first time: the life of the lease counts from here.
    pub(crate) sent_ns: u64,
}

impl Holder {
    /// Takes a message that is to be sent. Until it is answered or given up, the holder takes none.
    pub(crate) fn ask(&mut self, now_ns: u64, ask: Ask) -> bool {
        let is_free = self.asked.is_none();
        if is_free {
            self.asked = Some(Asked { ask, at_ns: now_ns });
        }
        is_free
    }

    /// Returns the message without an answer, to be sent again, and when it was first sent.
    pub(crate) fn unanswered(&self) -> Option<(Ask, u64)> {
        self.asked.map(|asked| (asked.ask, asked.at_ns))
    }

    /// Gives up waiting for an answer: what was returned, and what may have been granted, counts as
    /// spent.
    pub(crate) fn give_up(&mut self) {
        self.asked = None;
    }

    /// Reads an answer. Returns nothing if the holder does not wait for it.
    pub(crate) fn answered(&mut self, answer: Answer) -> Option<Brought> {
        let asked = self
            .asked
            .filter(|asked| asked.ask.number == answer.number)?;
        self.asked = None;
        Some(Brought {
            lost: asked.ask.keeps.saturating_sub(answer.keeps),
            granted: answer.granted,
            sent_ns: asked.at_ns,
        })
    }
}
