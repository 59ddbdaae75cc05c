//! The protocol of leases, checked for all orders of events: messages that are lost, come twice or
//! late, nodes that restart or stand still, and clocks that run at different rates.
//!
//! The nodes are the crate's own code. The server is its reference: `server.rs`.

mod held;
mod keeper;
mod model;
mod options;
mod server;
mod simulation;
mod slot_pool;
mod slots;

mod word;

use model::{Mistake, Model};
use server::Kind;

const BUCKET: Kind = Kind::Bucket { burst: 2 };
const WINDOW: Kind = Kind::Window {
    limit: 2,
    period: 3,
};
const SLOTS: Kind = Kind::Slots { limit: 2 };

fn assert_kept(model: Model) {
    let outcome = model.check();
    println!("{model:?}: {outcome}");
    outcome.assert_kept();
}

#[test]
fn no_limit_is_exceeded_in_any_order_of_events() {
    assert_kept(Model::of_messages(SLOTS));
    assert_kept(Model::of_clocks(WINDOW));
    assert_kept(Model::of_restarts(SLOTS));
    assert_kept(Model::of_undos(WINDOW).with_ticks(3));
    // The others have the most states: debug builds visit fewer.
    assert_kept(Model::of_clocks(BUCKET).with_ticks(4));
    if !cfg!(debug_assertions) {
        for kind in [BUCKET, WINDOW, SLOTS] {
            assert_kept(Model::of_messages(kind));
            assert_kept(Model::of_messages(kind).with_two_faulty());
            assert_kept(Model::of_clocks(kind));
            assert_kept(Model::of_restarts(kind));
        }
        assert_kept(Model::of_undos(WINDOW));
    }
}

#[test]
fn each_mistake_exceeds_the_limit() {
    for mistake in Mistake::ALL {
        for model in mistake.models() {
            let model = model.with(mistake);
            let outcome = model.check();
            println!("{model:?}: {outcome}");
            outcome.assert_exceeded();
        }
    }
}
