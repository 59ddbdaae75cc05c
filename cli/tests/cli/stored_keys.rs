//! `tollgate key` prints the keys that decisions write, on private servers. Without a server
//! program, the test says that it is skipped.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tollgate_policy::Policy;
use tollgate_policy::redis::RedisStore;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Keys, RedisServer};

use super::folder;
use super::policy::run;
use super::server::on_each_server;

const RULES: &str = "
    apply = 'all'
    [[rule]]
    name = 'login'
    key = ['client-ip', 'header:x-device']
    limit = ['5/d', 'fixed-window 9/d']
    store = 'redis'
    fallback = 'closed'
    [[rule]]
    name = 'per cent %'
    key = 'user'
    limit = 'concurrency 2 lease 1h'
    store = 'redis'
    fallback = 'closed'
";

const FACTS: [(&str, &str); 3] = [
    ("client-ip", "2001:db8::7"),
    ("header:x-device", "a {strange} device"),
    ("user", "jürgen"),
];

#[test]
fn the_keys_are_those_that_a_decision_writes() {
    on_each_server(|mut private| {
        private.start(false);
        let folder = folder("stored-keys");
        fs::create_dir_all(&folder).expect("the folder can be created");
        for secret in ["", "key-secret = 'swordfish-swordfish'"] {
            let text = format!("{secret}\n{RULES}");
            fs::write(folder.join("limits.toml"), &text).expect("it can be written");
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let client = connect_lazily(private.url().as_str()).expect("an address");
                let server = RedisServer::new(client).with_budget(Duration::from_secs(20));
                let keys = Keys::new("shop").expect("a namespace");
                let store = RedisStore::new(Arc::new(server), keys);
                let builder = Policy::builder().store("redis", store);
                let policy = builder.build_toml(&text).expect("a policy");
                assert!(policy.decide_async(&FACTS).await.is_allowed());
            });
            let print = |rule_and_values: &str| {
                let command = "$ tollgate key limits.toml --namespace shop";
                run(&format!("{command} {rule_and_values}"), &folder)
            };
            let printed =
                print("login 2001:db8::9 'a {strange} device'") + &print("'per cent %' 'jürgen'");
            let mut printed: Vec<_> = printed.lines().collect();
            printed.sort_unstable();
            let mut stored: Vec<String> = private.run("KEYS *");
            stored.sort_unstable();
            assert_eq!(printed, stored);
            for key in printed {
                assert_eq!(private.run::<u64>(&format!("DEL {key}")), 1);
            }
        }
    });
}
