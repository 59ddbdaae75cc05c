//! Guides: first steps, testing with time, statistics, and moving from governor.
//!
//! They are pages of the repository's folder `docs`.

/// Defines where links between the pages lead in this documentation. In the repository, each page
/// defines the same labels at its end. Markdown uses the first definition.
macro_rules! links {
    () => {
        "
[first-steps]: crate::guide::first_steps
[time-in-tests]: crate::guide::time_in_tests
[statistics]: crate::guide::statistics
[from-governor]: crate::guide::from_governor
"
    };
}

macro_rules! guides {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = links!()]
            #[doc = include_str!(concat!("../docs/", $file))]
            pub mod $name {}
        )*
    };
}

guides! {
    first_steps "FIRST_STEPS.md"
    time_in_tests "TIME_IN_TESTS.md"
    statistics "STATISTICS.md"
    from_governor "FROM_GOVERNOR.md"
}
