//! No user is shown: not by the server to its operator, and not by the limits in their texts.

use std::sync::{Arc, Mutex};

use tollgate::Quota;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Fallback, Keys, RedisAll, RedisLimiter};

use crate::ask::run;
use crate::seen::Seen;
use crate::server::{DEADLINE, Server, on_each_server};

/// Users as clients send them, and the part of each that must not be shown.
const USERS: [(&str, &str); 4] = [
    ("alice@example.com", "alice"),
    ("sk-live-4242", "sk-live"),
    // Its written form would be escaped.
    ("token:{s3cret}", "s3cret"),
    // The user's plain SHA-1. A reader could compute it and find out that the user exists.
    ("jürgen", "7c2336ed49150667a64ec6b1eb4932e3f2edcbfe"),
];

fn keys() -> Keys {
    Keys::new("api").expect("a namespace")
}

fn assert_hidden(texts: &str, of: &str) {
    for (user, part) in USERS {
        let line = texts.lines().find(|line| line.contains(part));
        assert_eq!(line, None, "{of} shows {user}");
    }
}

/// Calls each verb of a user's key, makes calls fail, and returns all texts about them.
async fn call_each_verb(server: &Server, keys: &Keys, user: &str) -> String {
    let events = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&events);
    let client = connect_lazily(server.url()).expect("an address");
    let connected = tollgate_redis::RedisServer::new(client)
        .with_budget(DEADLINE)
        .on_outage(move |event| told.lock().unwrap().push(format!("{event} {event:?}")));
    let connected = Arc::new(connected);
    let quota = Quota::per_day(1).burst(10);
    let [login, search] = ["login", "search"].map(|name| {
        let server = Arc::clone(&connected);
        let limiter = RedisLimiter::new(server, keys, name, quota, Fallback::Closed);
        limiter.expect("a quota")
    });
    let (key, other) = (login.key(user), search.key(user));
    let all = RedisAll::new(vec![login.key(user), search.key(user)]).expect("two limits");
    let mut texts = format!("{login:?} {key:?} {other:?} {all:?}");
    let mut tell = |text: String| texts += &format!("\n{text}");

    let grant = key.try_acquire_n(4).await.expect("a grant");
    tell(format!("{grant:?}"));
    tell(format!("{:?}", key.undo(grant).await));
    tell(format!("{:?}", key.charge(1).await));
    tell(format!("{:?}", all.try_acquire().await.expect("grants")));
    let denial = key.try_acquire_n(10).await.expect_err("a denial");
    tell(format!("{denial} {denial:?}"));
    tell(format!("{:?}", key.ban_for(DEADLINE).await));

    // A value of another program, and a user of the access control list that may not read keys.
    let stored: Vec<Vec<u8>> = server.run("KEYS *login*");
    let mut connection = server.connection();
    for name in stored {
        let set = redis::cmd("SET")
            .arg(name)
            .arg("foreign")
            .exec(&mut connection);
        set.expect("it is set");
    }
    let error = key.available().await.expect_err("a foreign value");
    tell(format!("{error} {error:?}"));
    let denial = key.try_acquire().await.expect_err("a denial");
    tell(format!("{denial} {denial:?}"));
    let _: String = server.run("ACL SETUSER default resetkeys ~other:*");
    let error = other.available().await.expect_err("no permission");
    tell(format!("{error} {error:?}"));
    let denial = other.try_acquire().await.expect_err("a denial");
    tell(format!("{denial} {denial:?}"));
    let denial = all.try_acquire().await.expect_err("a denial");
    tell(format!("{denial} {denial:?}"));
    let _: String = server.run("ACL SETUSER default allkeys");
    tell(format!("{:?} {connected:?}", events.lock().unwrap()));
    texts
}

#[test]
fn no_stored_key_command_log_or_text_shows_a_user() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            for keys in [keys(), keys().with_tag("eu").expect("a tag")] {
                let seen = Seen::start(&server);
                let mut texts = String::new();
                for (user, _) in USERS {
                    texts += &call_each_verb(&server, &keys, user).await;
                }
                let seen = seen.all(&server);
                // The record is whole: the limits are readable.
                assert!(
                    seen.contains(":login") && seen.contains(":search"),
                    "{seen}"
                );
                assert_hidden(&seen, "the server");
                assert_hidden(&texts, "a text");
            }
        });
    });
}
