//! A private server that knows the scripts with a controlled clock.

use crate::script;

#[allow(dead_code, reason = "shared with the tests of faults")]
#[path = "../support/server.rs"]
mod support;

/// Runs a test on each server that this machine has.
pub(super) fn on_each_server(test: impl Fn(&mut redis::Connection)) {
    support::on_each_server(|mut server| {
        server.start(false);
        let mut connection = server.connection();
        for script in script::all() {
            let load = redis::cmd("SCRIPT")
                .arg("LOAD")
                .arg(script.controlled())
                .exec(&mut connection);
            load.expect("the script has no error of syntax");
        }
        test(&mut connection);
    });
}
