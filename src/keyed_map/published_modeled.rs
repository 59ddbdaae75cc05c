//! The stand-in for `published.rs` in models: a Release publishes a value to a thread that reads
//! it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::sync::{AtomicU64, Ordering};

/// Stands in for a map with one key.
pub(super) struct Published<T> {
    /// The index, counted from 1, of the last published value.
    last: AtomicU64,
    published: Mutex<Vec<Arc<T>>>,
}

impl<T> Published<T> {
    pub(super) fn nothing() -> Self {
        Self {
            last: AtomicU64::new(0),
            published: Mutex::default(),
        }
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(Option<&Arc<T>>) -> R) -> R {
        read(self.get().as_ref())
    }

    pub(super) fn get(&self) -> Option<Arc<T>> {
        let index = self.last.load(Ordering::Acquire).checked_sub(1)?;
        self.lock().get(index as usize).map(Arc::clone)
    }

    pub(super) fn set(&self, value: Arc<T>) {
        let mut published = self.lock();
        published.push(value);
        let last = published.len() as u64;
        drop(published);
        self.last.swap(last, Ordering::AcqRel);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<T>>> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
