//! What the comparisons share.
