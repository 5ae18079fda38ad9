//! Persistent lists that branches share.

use std::fmt;
use std::sync::Arc;

/// List that grows at its end. Copies share their common elements.
pub(super) struct PersistentList<T>(Option<Arc<Link<T>>>);

struct Link<T> {
    one: T,
    before: PersistentList<T>,
}

impl<T> PersistentList<T> {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    pub(super) fn push(&mut self, one: T) {
        let before = Self(self.0.take());
        self.0 = Some(Arc::new(Link { one, before }));
    }

    /// Iterates from the last to the first element.
    pub(super) fn backwards(&self) -> impl Iterator<Item = &T> {
        let mut at = self.0.as_deref();
        std::iter::from_fn(move || {
            let link = at?;
            at = link.before.0.as_deref();
            Some(&link.one)
        })
    }
}

impl<T> Clone for PersistentList<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for PersistentList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.backwards()).finish()
    }
}

/// Drops iteratively: recursive drops of a long list would overflow the stack.
impl<T> Drop for PersistentList<T> {
    fn drop(&mut self) {
        let mut rest = self.0.take();
        while let Some(mut link) = rest.and_then(Arc::into_inner) {
            rest = link.before.0.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_existing_elements() {
        let mut one = PersistentList::new();
        one.push(1);
        let mut other = one.clone();
        one.push(2);
        other.push(3);
        assert_eq!(one.backwards().collect::<Vec<_>>(), [&2, &1]);
        assert_eq!(other.backwards().collect::<Vec<_>>(), [&3, &1]);
        drop(one);
        assert_eq!(other.backwards().collect::<Vec<_>>(), [&3, &1]);
    }

    #[test]
    fn dropping_a_long_list_does_not_recurse() {
        let mut long = PersistentList::new();
        for number in 0..1_000_000 {
            long.push(number);
        }
        let other = long.clone();
        drop(long);
        assert_eq!(other.backwards().count(), 1_000_000);
    }
}
