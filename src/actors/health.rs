//! What the whole server knows about its own state: shared, read by every door.

use std::sync::{Mutex, PoisonError};

/// Health of the server.
#[derive(Debug, Default)]
pub struct Health {
    write_failure: Mutex<Option<String>>,
}

impl Health {
    /// Records that a durable write failed: from here on nothing is written.
    pub fn fail_writes(&self, why: &str) {
        let mut failure = self.write_failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| why.to_owned());
    }

    /// Why nothing is written any more, if so.
    #[must_use]
    pub fn write_failure(&self) -> Option<String> {
        self.write_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
