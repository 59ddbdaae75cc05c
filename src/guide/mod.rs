//! Guides: from the first limiter to how tollgate is built and checked.
//!
//! They are the pages of the repository's folder `docs`, which also has the pictures.

/// Defines where links between the pages lead in this documentation. In the repository, each page
/// defines the same labels at its end. Markdown uses the first definition.
macro_rules! links {
    () => {
        "
[first-steps]: crate::guide::first_steps
[which-limiter]: crate::guide::which_limiter
[keys]: crate::guide::keys
[waiting]: crate::guide::waiting
[time-in-tests]: crate::guide::time_in_tests
[many-cores]: crate::guide::many_cores
[statistics]: crate::guide::statistics
[from-governor]: crate::guide::from_governor
[performance]: crate::guide::performance
[design]: crate::guide::design
[own-algorithm]: crate::guide::own_algorithm
[verification]: crate::guide::verification
[orderings]: crate::guide::orderings
[traces]: crate::guide::traces
[glossary]: crate::guide::glossary
"
    };
}

macro_rules! guides {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = links!()]
            #[doc = include_str!(concat!("../../docs/", $file))]
            pub mod $name {}
        )*
    };
}

guides! {
    first_steps "FIRST_STEPS.md"
    which_limiter "WHICH_LIMITER.md"
    keys "KEYS.md"
    waiting "WAITING.md"
    time_in_tests "TIME_IN_TESTS.md"
    many_cores "MANY_CORES.md"
    statistics "STATISTICS.md"
    from_governor "FROM_GOVERNOR.md"
    performance "PERFORMANCE.md"
    design "DESIGN.md"
    own_algorithm "OWN_ALGORITHM.md"
    verification "VERIFICATION.md"
    orderings "ORDERINGS.md"
    traces "TRACES.md"
    glossary "GLOSSARY.md"
}
