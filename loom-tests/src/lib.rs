//! What the models share.
