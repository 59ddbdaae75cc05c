//! Guides: from the first limiter to how tollgate is built and checked.
//!
//! They are the pages of the repository's folder `docs`, which also has the pictures.

/// Defines where the pictures are: in this folder, a URL. In the repository, a page with pictures
/// defines the same labels at its end. Markdown uses the first definition.
macro_rules! pictures {
    ($folder:expr) => {
        pictures!($folder,
            "fixed-window-first-hit.svg"
            "fixed-window.svg"
            "gcra.svg"
            "intervals-greedy.svg"
            "intervals.svg"
            "leaky-meter.svg"
            "leaky-queue.svg"
            "sliding-window.svg"
            "token-bucket.svg"
        )
    };
    ($folder:expr, $($file:literal)*) => {
        concat!($("[", $file, "]: <", $folder, $file, ">\n"),*)
    };
}

macro_rules! guides {
    ($($name:ident $file:literal)*) => {
        $(
            // In the same way, where links between the pages lead.
            #[doc = include_str!("links.md")]
            // docs.rs serves the files of the package. A local build shows those on this machine.
            #[cfg_attr(docsrs, doc = pictures!(concat!(
                "https://docs.rs/crate/tollgate/", env!("CARGO_PKG_VERSION"), "/source/docs/pictures/"
            )))]
            #[cfg_attr(all(doc, not(docsrs)), doc = pictures!(concat!(
                "file://", env!("CARGO_MANIFEST_DIR"), "/docs/pictures/"
            )))]
            #[doc = include_str!(concat!("../../docs/", $file))]
            pub mod $name {}
        )*
    };
}

guides! {
    first_steps "FIRST_STEPS.md"
    which_limiter "WHICH_LIMITER.md"
    keys "KEYS.md"
    compose "COMPOSE.md"
    waiting "WAITING.md"
    time_in_tests "TIME_IN_TESTS.md"
    many_cores "MANY_CORES.md"
    no_std "NO_STD.md"
    statistics "STATISTICS.md"
    from_governor "FROM_GOVERNOR.md"
    performance "dev/PERFORMANCE.md"
    design "dev/DESIGN.md"
    own_algorithm "OWN_ALGORITHM.md"
    verification "dev/VERIFICATION.md"
    orderings "dev/ORDERINGS.md"
    traces "dev/TRACES.md"
    glossary "GLOSSARY.md"
}
