//! Named places at which tests let the process die, as `kill -9` there would, or let a write fail.
//!
//! `POSTRIDER_CRASH_AT=name:n` ends the process at the n-th passing of a place;
//! `POSTRIDER_FAIL_AT=n` makes the n-th durable write fail, as a full or broken disk would. Only in
//! builds with debug assertions; a release has nothing of this.

/// Places on the way of mail, in the order of the work.
pub const NAMES: [&str; 17] = [
    "append keys stored",
    "append batch written",
    "append keys lost",
    "catalog committed",
    "text committed",
    "erasure confirmed",
    "purge text merged",
    "purge catalog written",
    "purge catalog renamed",
    "purge content dropped",
    "purge keys copied",
    "purge keys renamed",
    "purge proven",
    "rebuild built",
    "rebuild catalog swapped",
    "rebuild text swapped",
    "journal begun",
];

/// Places on the way of vectors.
pub const EMBEDDING: [&str; 5] = [
    "embedding kept",
    "embedding indexed",
    "embedding complete",
    "spaces written",
    "embedding swapped",
];

/// Passes a place.
#[inline]
pub fn reach(name: &'static str) {
    #[cfg(debug_assertions)]
    armed::reach(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Stands in front of a durable write.
///
/// # Errors
/// When a test wants this write to fail.
#[inline]
pub fn write() -> std::io::Result<()> {
    #[cfg(debug_assertions)]
    armed::write()?;
    Ok(())
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static AT: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    static FAILING: OnceLock<Option<u64>> = OnceLock::new();
    static WRITTEN: AtomicU64 = AtomicU64::new(0);

    pub(super) fn write() -> std::io::Result<()> {
        let failing = FAILING.get_or_init(|| std::env::var("POSTRIDER_FAIL_AT").ok()?.parse().ok());
        if failing.is_some_and(|nth| WRITTEN.fetch_add(1, Ordering::SeqCst) + 1 == nth) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(super) fn reach(name: &'static str) {
        let mut names = super::NAMES.iter().chain(&super::EMBEDDING);
        debug_assert!(names.any(|known| *known == name), "{name} is not listed");
        let at = AT.get_or_init(|| {
            let setting = std::env::var("POSTRIDER_CRASH_AT").ok()?;
            let (name, nth) = setting.rsplit_once(':')?;
            Some((name.to_owned(), nth.parse().ok()?))
        });
        if let Some((wanted, nth)) = at
            && wanted == name
            && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth
        {
            std::process::abort();
        }
    }
}
