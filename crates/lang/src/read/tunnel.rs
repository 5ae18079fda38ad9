//! Decodes matches of packets inside tunnels.
//!
//! Each tunnel has its own [`Context`]. nft's language cannot match the protocol of an inner packet explicitly: such a
//! match must be one that a following field implies. Otherwise nft's language cannot represent the rule.

use super::context::{Context, Layer, is_default_tag};
use super::rule::Reader;
use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Payload, Relation, Statement, Value};
use crate::tunnels::{self, Tunnel};
use crate::types;
use chainwright::nft::expr::{Decoded, Inner, PayloadBase};
use chainwright::nft::{DataType, Family};

impl Reader<'_, '_> {
    /// Loads bytes or metadata of an inner packet into a register.
    pub(crate) fn inner(&mut self, inner: &Inner<'_>) -> Option<()> {
        let tunnel = tunnels::of(inner)?;
        self.context.enter(tunnel, &mut self.statements)?;
        if !self.inside.iter().any(|(known, _)| *known == tunnel) {
            self.inside.push((tunnel, Context::inside(tunnel)));
        }
        match inner.expr.as_ref()?.decode().ok()? {
            Decoded::Payload(payload) if payload.unknown.is_empty() && payload.sreg.is_none() => {
                let place = self.place(&payload, Some(tunnel))?;
                self.load(payload.dreg?, Expr::Payload(place))
            }
            Decoded::Meta(meta) if meta.unknown.is_empty() && meta.sreg.is_none() => {
                let key = meta.key.filter(|key| tunnels::is_implicit_key(*key))?;
                self.load(meta.dreg?, Expr::Inside(tunnel, key))
            }
            _ => None,
        }
    }

    /// Returns the context of the packets, or of the packets inside a tunnel.
    pub(crate) fn context_in(&self, tunnel: Option<&'static Tunnel>) -> &Context {
        let is_it = |known: &&(&'static Tunnel, Context)| Some(known.0) == tunnel;
        let found = self.inside.iter().find(is_it);
        found.map_or(&self.context, |(_, context)| context)
    }

    fn changed_context_in(&mut self, tunnel: Option<&'static Tunnel>) -> &mut Context {
        let is_it = |known: &&mut (&'static Tunnel, Context)| Some(known.0) == tunnel;
        let found = self.inside.iter_mut().find(is_it);
        found.map_or(&mut self.context, |(_, context)| context)
    }

    /// Removes the implicit protocol match for this field.
    pub(crate) fn remove_implicit(&mut self, payload: &Payload) {
        let mut statements = std::mem::take(&mut self.statements);
        let context = self.changed_context_in(payload.tunnel);
        context.remove_implicit(payload, &mut statements);
        self.statements = statements;
    }

    /// Records a match; it becomes the next statement.
    pub(crate) fn record_match(&mut self, left: &Expr, right: &Value) {
        let number = self.statements.len();
        let context = self.changed_context_in(left.tunnel());
        context.record_match(left, right, number);
        for (index, layer) in [Layer::Network, Layer::Transport].into_iter().enumerate() {
            if context.established_by(layer) == Some(number) {
                context.is_established_twice |= context.was_established[index];
                context.was_established[index] = true;
            }
        }
        // After two tags at the same offset, fields would be at another offset when parsed again.
        self.is_lost |= left.tunnel().is_some() && self.context_in(left.tunnel()).has_same_tags();
    }

    /// Records a match of several values.
    pub(crate) fn record_matches(&mut self, left: &Expr) {
        self.changed_context_in(left.tunnel()).record_matches(left);
    }

    /// Keeps all matches: a statement acted on the packets that they let through.
    pub(crate) fn keep_all(&mut self) {
        self.context.keep_all();
        for (_, context) in &mut self.inside {
            context.keep_all();
        }
    }
}

impl Context {
    /// Creates the context inside a tunnel. Frames are treated as in bridge tables, packets as in netdev tables.
    fn inside(tunnel: &'static Tunnel) -> Self {
        let mut context = Self::new(match tunnel.has_frames {
            true => Family::BRIDGE,
            false => Family::NETDEV,
        });
        context.tunnel = Some(tunnel);
        context
    }

    /// Returns whether the rule matches the tunnel's carrier protocol, which nft requires for inner matches. The match
    /// is removed for GRE, where nft adds it implicitly, and kept otherwise.
    fn enter(
        &mut self,
        tunnel: &'static Tunnel,
        statements: &mut [Option<Statement>],
    ) -> Option<()> {
        let is_below = self.transport == Some(tunnel.below);
        if !tunnel.has_implicit_carrier() {
            self.keep_transport();
            return (is_below || self.may_be_several).then_some(());
        }
        let is_added = matches!(
            self.established_by(Layer::Transport)
                .and_then(|established_by| statements.get(established_by)),
            Some(Some(Statement::Match {
                left: Expr::Meta(_),
                ..
            }))
        );
        if is_below && is_added {
            self.take(Layer::Transport, statements);
        }
        is_below.then_some(())
    }

    /// Removes the implicit matches for a field of this inner protocol, as far as nft adds them again.
    pub(crate) fn remove_implicit_inner(
        &mut self,
        tunnel: &Tunnel,
        layer: Layer,
        protocol: &Protocol,
        statements: &mut [Option<Statement>],
    ) {
        let Some(established_by) = self
            .established_by(layer)
            .filter(|_| !self.is_established_twice)
        else {
            return;
        };
        let by = statements.get(established_by).and_then(Option::as_ref);
        let is_added = match layer {
            // nft only adds the tag match if the ether type of the frame is not known.
            Layer::Link => protocol.name == "vlan" && !self.is_by_type && is_default_tag(by),
            Layer::Network => self.adds_network(tunnel, by, protocol.name == "arp"),
            Layer::Transport => protocol.name != "th" && is_inside(by),
        };
        if !is_added {
            // It is stricter than the implicit match of a field.
            if layer == Layer::Network {
                self.keep_network();
            }
            return;
        }
        // ICMP and IGMP fields also imply the IP version, before the protocol.
        let version = match (layer, protocol.name) {
            (Layer::Transport, "icmp" | "igmp") => Some(&protocols::IP),
            (Layer::Transport, "icmpv6") => Some(&protocols::IP6),
            _ => None,
        };
        if version.is_some() && self.network != version {
            return;
        }
        if version.is_some() {
            let by = self
                .established_by(Layer::Network)
                .filter(|network| *network < established_by);
            let by = by.and_then(|network| statements.get(network)?.as_ref());
            let is_igmp = protocol.name == "igmp" && !is_inside(by);
            match self.adds_network(tunnel, by, true) && !is_igmp {
                true => {
                    self.keep_tag_of(by);
                    self.take(Layer::Network, statements);
                }
                // It must precede this field when parsed again.
                false => self.keep_network(),
            }
        }
        if layer == Layer::Network {
            self.keep_tag_of(statements.get(established_by).and_then(Option::as_ref));
        }
        self.take(layer, statements);
    }

    /// The tag must be established before the matches that nft adds for the protocol after it.
    fn keep_tag_of(&mut self, by: Option<&Statement>) {
        if !is_inside(by) && self.has_tags() {
            self.keep_link();
        }
    }

    /// Returns `true` if nft adds this match of the network layer implicitly. It matches the ether type if a further
    /// field implies the network protocol, for ARP, and after a tag; otherwise the inner packet's `meta protocol`.
    fn adds_network(&self, tunnel: &Tunnel, by: Option<&Statement>, by_type: bool) -> bool {
        let protocol = match by {
            Some(Statement::Match {
                left: Expr::Payload(payload),
                ..
            }) => payload.field.map(|(protocol, _)| protocol.name),
            _ => None,
        };
        match protocol {
            Some("ether") => by_type && !self.has_tags(),
            Some(name) => name == "vlan",
            None => is_inside(by) && !self.has_tags() && !(by_type && tunnel.has_frames),
        }
    }
}

/// Returns `true` if the statement matches inner metadata, which has no syntax.
fn is_inside(statement: Option<&Statement>) -> bool {
    let left = match statement {
        Some(Statement::Match { left, .. }) => left,
        _ => return false,
    };
    matches!(left, Expr::Inside(..))
}

/// Returns `true` if the expression is a field of a tunnel's own header, or an operation on one.
pub(crate) fn is_of_header(expr: &Expr) -> bool {
    match expr {
        Expr::Payload(payload) => payload.base == PayloadBase::TUNNEL,
        Expr::Binary(_, left, _) => is_of_header(left),
        _ => false,
    }
}

/// Returns the type of the values that an expression is compared with. Values of fields in a tunnel's own header are
/// unnamed integers in a comparison with one value, otherwise raw, as in nft.
pub(crate) fn compared_type(left: &Expr, relation: Relation) -> DataType {
    let is_plain = matches!(left, Expr::Payload(_))
        && matches!(relation, Relation::Implicit | Relation::NotEqual);
    match is_of_header(left) {
        true if is_plain => DataType::INTEGER,
        _ => written_type(left),
    }
}

/// Like [`compared_type`], for values of sets, masks and ranges.
pub(crate) fn written_type(left: &Expr) -> DataType {
    match is_of_header(left) {
        true => types::RAW,
        false => left.data_type(),
    }
}

/// Returns `true` if a statement contains an expression without syntax: inner bytes that are not a field, or inner
/// metadata.
pub(crate) fn has_no_syntax(statement: &Statement) -> bool {
    statement.operands().into_iter().any(in_expr)
}

fn in_expr(expr: &Expr) -> bool {
    match expr {
        Expr::Inside(..) => true,
        Expr::Payload(payload) => payload.tunnel.is_some() && payload.field.is_none(),
        Expr::Hash { key: Some(key), .. } => in_expr(key),
        Expr::Binary(_, one, other)
        | Expr::Range(one, other)
        | Expr::Masked(one, other)
        | Expr::Map(one, other) => in_expr(one) || in_expr(other),
        Expr::Prefix(value, _) => in_expr(value),
        Expr::Concat(parts) | Expr::Flags(parts) => parts.iter().any(in_expr),
        // Sets only contain constants.
        _ => false,
    }
}
