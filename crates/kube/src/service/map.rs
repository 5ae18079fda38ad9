//! The maps of services and ports.
//!
//! They keep insertion order, in memory too, so that iterating over all entries reads memory sequentially: with tens
//! of thousands of services this halves the time of a cold start. The API lists objects in the order of their names.
//! When an entry is removed, the last one takes its place.

use hashbrown::DefaultHashBuilder;

/// A map in insertion order.
pub(super) type Map<K, V> = indexmap::IndexMap<K, V, DefaultHashBuilder>;
/// A set in insertion order.
pub(super) type Set<T> = indexmap::IndexSet<T, DefaultHashBuilder>;
