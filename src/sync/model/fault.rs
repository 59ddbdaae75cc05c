/// A protocol's fault: its code asks for it by `inject_fault!`, where the fault would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Shards: what was taken in vain is rolled back whatever the word is by now.
    RollsBackBlindly,
    /// Shards: it is rolled back although permits were given back since.
    IgnoresGiveBacks,
    /// Shards: permits are given back while another thread is rolling back.
    LowersMeanwhile,
    /// Shards: what was taken in vain is kept.
    RollsNothingBack,
    /// Shards: the epoch of the hint is raised before a word is lowered.
    RaisesTheEpochFirst,
    /// Shards: a hint is set whatever epoch it is by now.
    SetsTheHintBlindly,
    /// Shards: a tick that is over is exchanged for the next one, with no epoch in between.
    KeepsTheTickThatIsOver,
    /// Leases: a lease that is dropped releases its size first, and then its permits.
    ReleasesSizeFirst,
    /// Reservations: one in the middle comes back although somebody waits after it.
    CancelsInTheMiddle,
    /// Slots: a slot is finished without its word being frozen.
    SkipsTheFreeze,
    /// Slots: permits are taken from a frozen word.
    IgnoresTheFreeze,
    /// Slots: a finished slot is recorded by a store.
    RecordsByStore,
    /// Slots: only who froze the word records.
    LeavesRecordingToOthers,
    /// Log: what was claimed is entered before it is claimed.
    EntersFirst,
    /// Log: nobody enters what another has claimed.
    NeverHelps,
    /// Log: permits are claimed before the last claim is entered.
    TakesUnentered,
    /// Log: a helper enters its own tick, whatever was seen before.
    HelpsAtItsTick,
    /// Log: places are entered although the state has gone on.
    EntersLate,
    /// Changes: what was read of the parameters is not checked.
    ReadsUnchecked,
    /// Changes: parameters are written before it is said whose they are.
    AnnouncesAfterwards,
    /// Changes: a decision compares the word alone, and not the version.
    ComparesTheWordAlone,
    /// Changes: the version is changed first, and the word is carried over afterwards.
    CarriesAfterwards,
    /// Changes: a grant is undone by its mark, whatever version it is of.
    UndoesOldMarks,
    /// Concurrency: who comes does not look whether somebody waits.
    Overtakes,
    /// Concurrency: who found no room says that somebody waits whatever the word is by now.
    WaitsBlindly,
    /// Concurrency: who leaves lets nobody in.
    LeavesSilently,
    /// Concurrency: who gives up the first place in the line lets nobody in.
    GivesUpSilently,
    /// Concurrency: who gives up after being let in keeps what was handed over.
    KeepsWhatWasHanded,
    /// Concurrency: a raised limit lets nobody in.
    RaisesSilently,
    /// Concurrency: who was let in at the last moment is told that it is too late.
    TooLateAnyhow,
    /// Concurrency: a limit is set by a load and a store.
    SetsByStore,
    /// Concurrency: a lowered limit refuses nobody who waits for more.
    LowersSilently,
    /// Smooth: a new rate is written over the one in force.
    OverwritesTheRate,
    /// Smooth: the rate is read before the state.
    ReadsTheRateFirst,
    /// Smooth: when the versions begin anew, the next turn stays where it is.
    KeepsTheTurn,
    /// Smooth: two set rates at once.
    SetsTogether,
    /// Smooth: a rate is told without another look at the state.
    TellsWithoutALook,
    /// Table: who claims does not look round for the key a second time.
    LooksOnce,
    /// Table: all claims have the same number.
    NumbersAlike,
    /// Table: a key that is not idle is taken for one that is.
    TakesWhoIsBusy,
    /// Table: the horizon is raised after an idle key has left.
    RaisesAfterwards,
    /// Table: who comes into it does so at a tick of its own.
    IgnoresTheHorizon,
    /// Table: a change of quotas leaves old slots as they are.
    SweepsNothing,
    /// Table: a decision compares the word alone, and not whose it is.
    ForgetsTheOwner,
    /// Table: the bit is set after the decision, on the key that has the slot by then.
    ProtectsBlindly,
    /// Table: a key whose tag is the same is taken for the same one in either of its pairs of
    /// lines.
    IgnoresThePair,
    /// Table: a claim is established, and other claims for the key are left as they are.
    LeavesOtherClaims,
    /// Table: whose claim has come to nothing gives up whatever is in the slot by now.
    GivesUpBlindly,
    /// Table: who finds the key claimed waits for who claimed it.
    WaitsForClaims,
    /// Table: who finds no room doesn't look whether the key has come meanwhile.
    BelievesTheFirstLook,
    /// Table: the neighbours are skipped also for a slot that was given up.
    SkipsByFree,
    /// Table: a change of one plan leaves slots of others as they are.
    SweepsOnePlan,
    /// Table: a change of quotas leaves claims as they are.
    SparesClaims,
    /// Table: which version is in force is looked at before a slot is claimed.
    ReadsTheVersionFirst,
    /// Keyed concurrency: a key with guards is evicted where there is no room.
    EvictsWhoIsInside,
    /// Overrides: a key's claims are left as they are when its algorithm is changed.
    SparesClaimsOfTheKey,
    /// Overrides: a key's slot is left as it is when its algorithm is changed.
    LeavesTheSlot,
    /// Overrides: a quota is changed while a key goes back to its plan.
    ChangesQuotasMeanwhile,
    /// Keyed map: a key is taken out while its word can still be taken from.
    RemovesUnretired,
    /// Keyed map: a key that is new counts at its caller's tick.
    CountsAtOwnTick,
    /// Keyed map: it is read before the key is there up to when others have left.
    ReadsTheHorizonFirst,
    /// Keyed map: a thread that finds a key whose algorithm is being changed takes it out.
    TakesOutMoving,
    /// Keyed map: the thread that first decides on a key does not look whether the quota was set
    /// since the key was brought in.
    TrustsItsBirth,
    /// Keyed map: a grant ends a ban before it is made.
    EndsTheBanFirst,
    /// Keyed map: a new quota is published after all keys were brought to it.
    WalksFirst,
    /// Keyed map: an algorithm is carried over from a word that can still be taken from.
    CarriesUnretired,
    /// Keyed map: whoever wants room has it, if there was some.
    LooksForRoomFirst,
    /// Keyed map: a key is protected after its second grant.
    ProtectsAfterwards,
    /// Keyed map: a key is evicted although it has been protected since it was chosen.
    EvictsAsItWas,
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
