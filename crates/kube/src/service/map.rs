//! The tables of services and ports.
//!
//! They are in the order in which things came, in memory too, so that who goes through all of them reads memory from
//! one end to the other: of tens of thousands of services that is the half of a cold start's time. The API lists
//! objects in the order of their names. Something that is removed leaves its place to the last one.

use hashbrown::DefaultHashBuilder;

/// A table in the order of what came.
pub(super) type Map<K, V> = indexmap::IndexMap<K, V, DefaultHashBuilder>;
/// A set in the order of what came.
pub(super) type Set<T> = indexmap::IndexSet<T, DefaultHashBuilder>;
