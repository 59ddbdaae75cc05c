//! Values that are replaced now and then, and read without waiting.

use core::hash::BuildHasherDefault;
use std::sync::Arc;

use papaya::HashMap;

use super::stored::AsItIs;

/// A value that is replaced now and then, and read without waiting: a map of one key.
pub(super) struct Published<T>(HashMap<(), Arc<T>, BuildHasherDefault<AsItIs>>);

impl<T> Published<T> {
    pub(super) fn nothing() -> Self {
        Self(HashMap::default())
    }

    /// What was published last.
    pub(super) fn get(&self) -> Option<Arc<T>> {
        self.read(|last| last.map(Arc::clone))
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(Option<&Arc<T>>) -> R) -> R {
        read(self.0.pin().get(&()))
    }

    pub(super) fn set(&self, value: Arc<T>) {
        self.0.pin().insert((), value);
    }
}
