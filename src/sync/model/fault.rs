/// A fault that a model can turn on. `inject_fault!` in the protocol's code marks its place. The
/// last variants need no mark: they have the end of a file's path and a line, of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Shards: a thread lowers a word while another one does, or after another one did.
    EntersAnyhow,
    /// Shards: an expired tick is exchanged for the next one, with no epoch in between.
    KeepsTheTickThatIsOver,
    /// Leases: a dropped lease releases its size before its permits.
    ReleasesSizeFirst,
    /// Reservations: one in the middle of the line gives its permits back although a caller waits
    /// behind it.
    CancelsInTheMiddle,
    /// Slots: permits are taken from a frozen word.
    IgnoresTheFreeze,
    /// Slots: only the thread that froze the word records the slot.
    LeavesRecordingToOthers,
    /// Log: no thread enters the claim of another.
    NeverHelps,
    /// Log: permits are claimed before the last claim is entered.
    TakesUnentered,
    /// Log: what was read is used although the head has moved meanwhile.
    TrustsAnOldHead,
    /// Log: permits are claimed more than a lap past the head.
    LapsTheHead,
    /// Changes: parameters are read without checking their version.
    ReadsUnchecked,
    /// Changes: a grant is undone by its mark, even if that belongs to another version.
    UndoesOldMarks,
    /// Concurrency: a newcomer enters without checking whether a caller waits.
    Overtakes,
    /// Concurrency: a caller that makes room, or takes less, lets no waiter in.
    LetsNoneIn,
    /// Concurrency: a waiter that gives up after being let in keeps its room.
    KeepsWhatWasHanded,
    /// Concurrency: a waiter that gives up keeps its permits in the sum of those that wait.
    KeepsItsPermits,
    /// Concurrency: lowering the limit refuses no waiter that asks for more.
    LowersSilently,
    /// Table: a thread that claims a slot does not look for the key a second time.
    LooksOnce,
    /// Table: all claims have the same number.
    NumbersAlike,
    /// Table: a busy key is mistaken for an idle one.
    TakesWhoIsBusy,
    /// Table: the horizon is raised after an idle key has left.
    RaisesAfterwards,
    /// Table: keys with equal tags are mistaken for the same key even if their pairs of buckets
    /// differ.
    IgnoresThePair,
    /// Table: a thread that finds the key claimed waits for the claiming thread.
    WaitsForClaims,
    /// Table: a thread that finds no free slot does not check whether the key has arrived
    /// meanwhile.
    BelievesTheFirstLook,
    /// Table: the neighbors are skipped even if a slot is free because it was released.
    SkipsByFree,
    /// Table: the current version is read before the slot is confirmed as the key's only one.
    ReadsTheVersionFirst,
    /// Table: a claim that takes the place of another does not say that a key in use was evicted.
    ForgetsTheEviction,
    /// Keyed concurrency: a key with guards is evicted when the table is full.
    EvictsGuards,
    /// Overrides: a quota is changed while a key returns to its plan.
    ChangesQuotasMeanwhile,
    /// Composition: a request takes from its members without looking at them first.
    TakesWithoutALook,
    /// Composition: members are taken from in the caller's order.
    TakesInTheCallersOrder,
    /// Composition: what was taken before a member denied stays taken.
    ForgetsToUndo,
    /// Composition: only the last grant before the denial is undone.
    UndoesOne,
    /// Composition: what was taken comes back as a refund, whenever it was taken.
    RefundsInstead,
    /// Composition: a grant is undone after a lost race although a caller waits behind it.
    RollsBackByUndo,
    /// Line of a composition: a caller does not check whether another one waits.
    PassesTheLine,
    /// Line of a composition: a caller that is served does not pass its turn on.
    PassesNoTurn,
    /// Line of a composition: a caller that leaves keeps its permits in the sum of those that wait.
    KeepsItsPermitsInLine,
    /// Line of a composition: the next caller wakes before the permits leave the sum.
    WakesTooEarly,
    /// Line of a composition: the first in line stays inside a member while it sleeps for another.
    SleepsInside,
    /// Another crate: the fault of this name, which its own `inject_fault!` asks for.
    Of(&'static str),
    /// One operation: its ordering is `Relaxed`. (This has no effect in shuttle, where all
    /// operations are sequentially consistent.)
    Relaxed((&'static str, u32)),
    /// One operation writes whatever is there: an exchange without a comparison, or a `fetch_max`.
    Blind((&'static str, u32)),
    /// An exchange of a pair compares and writes the low half alone. (In loom only.)
    LowHalf((&'static str, u32)),
    /// An exchange of a pair compares and writes the high half alone. (In loom only.)
    HighHalf((&'static str, u32)),
    /// An exchange succeeds, but writes nothing.
    Idle((&'static str, u32)),
    /// A load returns 0.
    Zero((&'static str, u32)),
}

impl Fault {
    /// Returns the one operation that has the fault.
    pub(super) const fn operation(self) -> Option<(&'static str, u32)> {
        match self {
            Self::Relaxed(operation)
            | Self::Blind(operation)
            | Self::LowHalf(operation)
            | Self::HighHalf(operation)
            | Self::Idle(operation)
            | Self::Zero(operation) => Some(operation),
            _ => None,
        }
    }
}

macro_rules! inject_fault {
    ($fault:ident) => {
        $crate::sync::model::is_made($crate::sync::model::Fault::$fault)
    };
    ($fault:ident => $wrong:expr, else $right:expr) => {
        match inject_fault!($fault) {
            true => $wrong,
            false => $right,
        }
    };
}
pub(crate) use inject_fault;
