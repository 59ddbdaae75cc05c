//! The contract of an atomic word: an exchange succeeds if the word is as expected and otherwise
//! returns the current one, and a swap returns what it replaced. So no value is replaced twice, and
//! none is lost.

use tollgate_loom_tests::prelude::*;

/// Two threads swap the word.
fn replace_twice(run: &mut Run, make: MakeWord) {
    run.explore_all(vec![(1, 2, 3), (3, 1, 2)], move |layout| {
        let place = make(1);
        let actors = [2, 3].map(|next| {
            let place = Arc::clone(&place);
            actor(move || place.swap(next))
        });
        let found = layout.act(actors.into());
        (found[0], found[1], place.load())
    });
}

/// One thread swaps the word, and the other exchanges it.
fn replace_and_exchange(run: &mut Run, make: MakeWord) {
    run.explore_all(vec![(Ok(()), 3, 2), (Err(2), 1, 2)], move |layout| {
        let place = make(1);
        let (one, other) = (Arc::clone(&place), Arc::clone(&place));
        let exchange = move || one.compare_exchange(1, 3);
        let (exchanged, found) = layout.both(exchange, move || other.swap(2));
        (exchanged, found, place.load())
    });
}

fn both(run: &mut Run, make: MakeWord) {
    replace_twice(run, make);
    replace_and_exchange(run, make);
}

#[test]
fn no_value_is_lost() {
    model("word::no_value_is_lost", None, |run| both(run, words::cell));
}

#[test]
fn broken_words_lose_values() {
    let name = "word::replaces by a load and a store";
    broken(name, "no order", None, |run| {
        both(run, words::replaces_by_store)
    });
    let name = "word::gives up if another thread intervenes";
    broken(name, "no order", None, |run| both(run, words::gives_up));
    let name = "word::compares and stores";
    broken(name, "no order", None, |run| {
        replace_and_exchange(run, words::stores)
    });
    let name = "word::exchanges unconditionally";
    broken(name, "no order", None, |run| {
        replace_and_exchange(run, words::overwrites)
    });
}
