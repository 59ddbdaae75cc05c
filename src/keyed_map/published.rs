//! Values that are replaced now and then, and read without waiting.

use core::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use papaya::HashMap;

/// A value that is replaced now and then, and read without waiting. It is stored in a map with one
/// key.
pub(super) struct Published<T>(HashMap<(), Arc<T>, BuildHasherDefault<AsItIs>>);

impl<T> Published<T> {
    pub(super) fn nothing() -> Self {
        Self(HashMap::default())
    }

    /// Returns the last published value.
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

/// The hasher for keys that are already hashed.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    /// Not used: only `u64` is written.
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
}
