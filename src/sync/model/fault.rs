/// A fault that a model can turn on. `inject_fault!` in the protocol's code marks its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Shards: a rollback restores the old word even if the word has changed.
    RollsBackBlindly,
    /// Shards: a rollback proceeds although permits were given back since.
    IgnoresGiveBacks,
    /// Shards: permits are given back while another thread is rolling back.
    LowersMeanwhile,
    /// Shards: a failed request keeps the permits that it took.
    RollsNothingBack,
    /// Shards: the epoch of the hint is raised before a word is lowered.
    RaisesTheEpochFirst,
    /// Shards: a hint is set even if its epoch has changed.
    SetsTheHintBlindly,
    /// Shards: an expired tick is exchanged for the next one, with no epoch in between.
    KeepsTheTickThatIsOver,
    /// Leases: a dropped lease releases its size before its permits.
    ReleasesSizeFirst,
    /// Reservations: one in the middle of the line gives its permits back although a caller waits
    /// behind it.
    CancelsInTheMiddle,
    /// Slots: a slot is finished without freezing its word.
    SkipsTheFreeze,
    /// Slots: permits are taken from a frozen word.
    IgnoresTheFreeze,
    /// Slots: a finished slot is recorded by a store.
    RecordsByStore,
    /// Slots: only the thread that froze the word records the slot.
    LeavesRecordingToOthers,
    /// Log: permits are entered before they are claimed.
    EntersFirst,
    /// Log: no thread enters the claim of another.
    NeverHelps,
    /// Log: permits are claimed before the last claim is entered.
    TakesUnentered,
    /// Log: a helper enters permits at its own tick, even if that is before ticks seen earlier.
    HelpsAtItsTick,
    /// Log: entries are written although the state has changed.
    EntersLate,
    /// Changes: parameters are read without checking their version.
    ReadsUnchecked,
    /// Changes: parameters are written before their version is announced.
    AnnouncesAfterwards,
    /// Changes: a decision compares only the word, and not the version.
    ComparesTheWordAlone,
    /// Changes: the version changes first, and the word is carried over afterwards.
    CarriesAfterwards,
    /// Changes: a grant is undone by its mark, even if that belongs to another version.
    UndoesOldMarks,
    /// Concurrency: a newcomer enters without checking whether a caller waits.
    Overtakes,
    /// Concurrency: a caller that finds no room sets the waiting flag even if the word has changed.
    WaitsBlindly,
    /// Concurrency: a caller that leaves lets no waiter in.
    LeavesSilently,
    /// Concurrency: a caller that gives up the first place in the line lets no waiter in.
    GivesUpSilently,
    /// Concurrency: a waiter that gives up after being let in keeps its room.
    KeepsWhatWasHanded,
    /// Concurrency: a waiter that gives up keeps its permits in the sum of those that wait.
    KeepsItsPermits,
    /// Concurrency: raising the limit lets no waiter in.
    RaisesSilently,
    /// Concurrency: a waiter that is let in at the last moment is told that it is too late.
    TooLateAnyhow,
    /// Concurrency: the limit is set by a load and a store.
    SetsByStore,
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
    /// Table: a new key starts at its caller's own tick.
    IgnoresTheHorizon,
    /// Table: a change of quotas does not update old slots.
    SweepsNothing,
    /// Table: a decision compares only the word, and not the slot's owner.
    ForgetsTheOwner,
    /// Table: the protection bit is set after the decision, on whichever key has the slot by then.
    ProtectsBlindly,
    /// Table: keys with equal tags are mistaken for the same key even if their pairs of buckets
    /// differ.
    IgnoresThePair,
    /// Table: a claim is established without ending other claims for the key.
    LeavesOtherClaims,
    /// Table: a thread whose claim failed releases the slot even if it holds something new.
    GivesUpBlindly,
    /// Table: a thread that finds the key claimed waits for the claiming thread.
    WaitsForClaims,
    /// Table: a thread that finds no free slot does not check whether the key has arrived
    /// meanwhile.
    BelievesTheFirstLook,
    /// Table: the neighbors are skipped even if a slot is free because it was released.
    SkipsByFree,
    /// Table: a change of one plan leaves the slots of other plans as they are.
    SweepsOnePlan,
    /// Table: a change of quotas leaves claims as they are.
    SparesClaims,
    /// Table: the current version is read before the slot is confirmed as the key's only one.
    ReadsTheVersionFirst,
    /// Table: a claim that takes the place of another does not say that a key in use was evicted.
    ForgetsTheEviction,
    /// Table: a thread that establishes the claim of another does not see whether it has evicted a
    /// key in use.
    HelpsWithoutALook,
    /// Keyed concurrency: a key with guards is evicted when the table is full.
    EvictsWhoIsInside,
    /// Overrides: a key's claims stay when its algorithm is changed.
    SparesClaimsOfTheKey,
    /// Overrides: a key's slot stays when its algorithm is changed.
    LeavesTheSlot,
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
