//! What stands in for a map of one key in a model: a value is published by a Release, to a thread
//! that reads it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::sync::{AtomicU64, Ordering};

/// What stands in for a map of one key.
pub(super) struct Published<T> {
    /// The number, in what was ever published, of the last, from 1 on.
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
