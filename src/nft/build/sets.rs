//! Lookups in sets and maps, and updates of sets from rules.

use std::time::Duration;

use super::key::{register, register_after};
use super::value::{Match, Test};
use super::{AnonymousSet, Build, BuildError, Key, Selector};
use crate::nft::Set;
use crate::nft::expr::{Dynset, DynsetOp, Expression, Expressions, NestedExpression, Register};
use crate::nft::name::Name;

/// A reference to a set or map: a name, or a [`Set`] or [`AnonymousSet`] of the same transaction. For
/// the latter two the builder checks the length of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetName<'a> {
    pub(super) name: Name<'a>,
    pub(super) id: Option<u32>,
    pub(super) key_length: Option<u32>,
}

impl<'a> From<Name<'a>> for SetName<'a> {
    fn from(name: Name<'a>) -> Self {
        Self {
            name,
            id: None,
            key_length: None,
        }
    }
}

impl<'a> From<&'a str> for SetName<'a> {
    fn from(name: &'a str) -> Self {
        Name::from(name).into()
    }
}

impl<'a> From<&'a String> for SetName<'a> {
    fn from(name: &'a String) -> Self {
        Name::from(name).into()
    }
}

impl<'a> From<&'a Set<'_>> for SetName<'a> {
    fn from(set: &'a Set<'_>) -> Self {
        Self {
            name: set.name.as_ref().map(Name::from).unwrap_or_default(),
            id: set.id,
            key_length: set.key_length,
        }
    }
}

impl<'a> From<&'a AnonymousSet<'_>> for SetName<'a> {
    fn from(set: &'a AnonymousSet<'_>) -> Self {
        set.set().into()
    }
}

/// An element that a rule adds to, updates in or deletes from a set: see [`element`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetElement<'k> {
    key: Key<'k>,
    data: Option<Key<'k>>,
    timeout: Option<Duration>,
    /// The first expression, the list of all, and their number.
    expressions: Option<(NestedExpression<'static>, Expressions<'static>, u32)>,
}

/// Creates an element with this key.
pub fn element<'k>(key: impl Into<Key<'k>>) -> SetElement<'k> {
    SetElement {
        key: key.into(),
        data: None,
        timeout: None,
        expressions: None,
    }
}

impl<'k> From<Selector> for SetElement<'k> {
    fn from(key: Selector) -> Self {
        element(key)
    }
}

impl<'k, const N: usize> From<&'k [Selector; N]> for SetElement<'k> {
    fn from(key: &'k [Selector; N]) -> Self {
        element(key)
    }
}

impl<'k> SetElement<'k> {
    /// Sets the data of a map's element.
    #[must_use]
    pub fn data(mut self, data: impl Into<Key<'k>>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Sets the timeout, with millisecond resolution. The default is the set's timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds an expression to the element, such as a counter or a limit.
    #[must_use]
    pub fn with(mut self, expression: &impl Expression) -> Self {
        let (_, all, number) = self.expressions.get_or_insert_with(|| {
            let first = NestedExpression::new(expression);
            (first, Expressions::new(), 0)
        });
        all.push(expression);
        *number += 1;
        self
    }
}

impl Build<'_> {
    /// Matches if a key is in a set: `ip saddr . tcp dport @set`. For a single field, pass
    /// [`in_set`](super::in_set) to the field's own method.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, ip, meta, th, CtStatus};
    /// use chainwright::nft::expr::NatRangeFlags;
    /// use chainwright::nft::Family;
    ///
    /// // ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections
    /// // masquerade fully-random
    /// let rule = Build::new(Family::IP, "kube-proxy", "masquerading")
    ///     .ct_status(CtStatus::DNAT)
    ///     .lookup(&[ip::SADDR, ip::DADDR, meta::L4PROTO, th::DPORT], "hairpin-connections")
    ///     .masquerade(NatRangeFlags::PROTO_RANDOM_FULLY)?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn lookup<'m>(mut self, key: impl Into<Key<'m>>, set: impl Into<SetName<'m>>) -> Self {
        self.compare(
            &key.into(),
            Match {
                test: Test::Set(set.into()),
                not: false,
            },
        );
        self
    }

    /// Matches if a key is not in a set: `ip saddr . tcp dport != @set`.
    pub fn lookup_not<'m>(mut self, key: impl Into<Key<'m>>, set: impl Into<SetName<'m>>) -> Self {
        self.compare(
            &key.into(),
            Match {
                test: Test::Set(set.into()),
                not: true,
            },
        );
        self
    }

    /// Applies the verdict that a map has for a key: `… vmap @map`. The rest of the rule is
    /// evaluated only if that verdict continues or its chain returns, and not for packets whose key
    /// is not in the map.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, ip, meta, numgen_random, th};
    /// use chainwright::nft::Family;
    ///
    /// // ip daddr . meta l4proto . th dport vmap @service-ips
    /// let services = Build::new(Family::IP, "kube-proxy", "services")
    ///     .vmap(&[ip::DADDR, meta::L4PROTO, th::DPORT], "service-ips")
    ///     .finish()?;
    /// // numgen random mod 2 vmap @backends
    /// let spread = Build::new(Family::IP, "kube-proxy", "service")
    ///     .vmap(numgen_random(2), "backends")
    ///     .finish()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn vmap<'m>(mut self, key: impl Into<Key<'m>>, map: impl Into<SetName<'m>>) -> Self {
        self.load_from_map(&key.into(), &map.into(), Register::VERDICT);
        self
    }

    /// Loads the value that a map has for a key into a register.
    pub(super) fn load_from_map(&mut self, key: &Key<'_>, map: &SetName<'_>, dreg: Register) {
        if self.error.is_none() && self.add_key_dependencies(key) {
            self.look_up(key, map, Some(dreg), None);
        }
    }

    /// Adds an element to a set: `add @set { … }`. An existing element is not changed.
    pub fn add_element<'m>(
        self,
        set: impl Into<SetName<'m>>,
        element: impl Into<SetElement<'m>>,
    ) -> Self {
        self.dynset(DynsetOp::ADD, set.into(), element.into())
    }

    /// Adds an element to a set, or restarts the timeout of an existing one: `update @set { … }`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use chainwright::nft::build::{Build, Rate, element, ip};
    /// use chainwright::nft::expr::Limit;
    /// use chainwright::nft::Family;
    ///
    /// // update @seen { ip saddr timeout 1m limit rate over 10/second burst 5 packets } drop
    /// let rule = Build::new(Family::IP, "filter", "input")
    ///     .update_element(
    ///         "seen",
    ///         element(ip::SADDR)
    ///             .timeout(Duration::from_secs(60))
    ///             .with(&Limit::from(Rate::per_second(10).over())),
    ///     )
    ///     .drop()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn update_element<'m>(
        self,
        set: impl Into<SetName<'m>>,
        element: impl Into<SetElement<'m>>,
    ) -> Self {
        self.dynset(DynsetOp::UPDATE, set.into(), element.into())
    }

    /// Deletes an element from a set: `delete @set { … }`.
    pub fn delete_element<'m>(
        self,
        set: impl Into<SetName<'m>>,
        element: impl Into<SetElement<'m>>,
    ) -> Self {
        self.dynset(DynsetOp::DELETE, set.into(), element.into())
    }

    fn dynset(mut self, op: DynsetOp, set: SetName<'_>, element: SetElement<'_>) -> Self {
        let SetElement {
            key,
            data,
            timeout,
            expressions,
        } = element;
        if self.error.is_some() || !self.add_key_dependencies(&key) {
            return self;
        }
        let length = key.length();
        if let Some(expected) = set.key_length.filter(|&expected| expected != length) {
            self.fail(BuildError::SetKey { length, expected });
            return self;
        }
        let mut sreg_data = None;
        if let Some(data) = &data {
            let word = register_after(0, length);
            if !self.add_key_dependencies(data) {
                return self;
            }
            let both = word * 4 + data.length();
            if both > 64 {
                self.fail(BuildError::Key { length: both });
                return self;
            }
            self.load_key(&key, 0);
            self.load_key(data, word);
            sreg_data = Some(register(word));
        } else {
            self.load_key(&key, 0);
        }
        let dynset = Dynset {
            op: Some(op),
            sreg_data,
            timeout: timeout.map(Into::into),
            set_id: set.id,
            ..Dynset::add(Name::from(&set.name), Register::R1)
        };
        self.push(&match expressions {
            None => dynset,
            Some((first, _, 1)) => Dynset {
                expr: Some(first),
                ..dynset
            },
            Some((_, all, _)) => dynset.with_expressions(all),
        });
        self
    }
}
