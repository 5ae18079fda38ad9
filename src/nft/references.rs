//! References in operations: ids of objects in the same batch, names of existing objects, expressions.

use bstr::{BStr, ByteSlice as _};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_CHAIN_ID, NFTA_DATA_VERDICT,
    NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS, NFTA_DYNSET_SET_ID, NFTA_DYNSET_SET_NAME,
    NFTA_EXPR_DATA, NFTA_FLOW_TABLE_NAME, NFTA_IMMEDIATE_DATA, NFTA_INNER_EXPR, NFTA_LIST_ELEM,
    NFTA_LOOKUP_SET, NFTA_LOOKUP_SET_ID, NFTA_OBJREF_IMM_NAME, NFTA_OBJREF_SET_ID,
    NFTA_OBJREF_SET_NAME, NFTA_RULE_CHAIN_ID, NFTA_RULE_EXPRESSIONS, NFTA_RULE_ID,
    NFTA_RULE_POSITION_ID, NFTA_SET_ELEM_DATA, NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET_ID, NFTA_SET_ELEM_OBJREF, NFTA_SET_EXPR,
    NFTA_SET_EXPRESSIONS, NFTA_SET_ID, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID,
};

use super::declare::Field;
use super::expr::ExpressionRef;
use crate::netlink::{Attributes, Message};

/// Length of a message's header and the following `nfgenmsg`.
const HEADERS: usize = 20;

/// The kinds of objects that have ids in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum IdKind {
    Set,
    Chain,
    Rule,
}

/// The kinds of named objects; each kind is a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameKind {
    Table,
    Chain,
    Set,
    Object,
    Flowtable,
}

impl NameKind {
    /// Returns the kind that a message of this type names, after the table.
    pub(super) const fn by(kind: u8) -> Option<Self> {
        Some(match kind {
            NFT_MSG_NEWTABLE | NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => Self::Table,
            NFT_MSG_NEWCHAIN | NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN | NFT_MSG_NEWRULE
            | NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => Self::Chain,
            NFT_MSG_NEWSET
            | NFT_MSG_DELSET
            | NFT_MSG_DESTROYSET
            | NFT_MSG_NEWSETELEM
            | NFT_MSG_DELSETELEM
            | NFT_MSG_DESTROYSETELEM => Self::Set,
            NFT_MSG_NEWOBJ | NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => Self::Object,
            NFT_MSG_NEWFLOWTABLE | NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => {
                Self::Flowtable
            }
            _ => return None,
        })
    }
}

/// The meaning of an attribute.
#[derive(Clone, Copy)]
enum Meaning {
    /// The id of the object that the message creates.
    Definition(IdKind),
    /// The id of another object.
    Reference(IdKind),
    /// The name of another object in the same table.
    Name(NameKind),
    /// Nested attributes, of which these matter.
    Attributes(&'static [(u16, Meaning)]),
    /// An expression.
    Expression,
    /// An expression in another one or in an element; it cannot contain further expressions.
    Inner,
}

const VERDICT: Meaning = Meaning::Attributes(&[(
    NFTA_DATA_VERDICT,
    Meaning::Attributes(&[
        (NFTA_VERDICT_CHAIN, Meaning::Name(NameKind::Chain)),
        (NFTA_VERDICT_CHAIN_ID, Meaning::Reference(IdKind::Chain)),
    ]),
)]);
const INNER: Meaning = Meaning::Attributes(&[(NFTA_LIST_ELEM, Meaning::Inner)]);
const ELEMENTS: &[(u16, Meaning)] = &[
    (NFTA_SET_ELEM_LIST_SET_ID, Meaning::Reference(IdKind::Set)),
    (
        NFTA_SET_ELEM_LIST_ELEMENTS,
        Meaning::Attributes(&[(
            NFTA_LIST_ELEM,
            Meaning::Attributes(&[
                (NFTA_SET_ELEM_DATA, VERDICT),
                (NFTA_SET_ELEM_OBJREF, Meaning::Name(NameKind::Object)),
                (NFTA_SET_ELEM_EXPR, Meaning::Inner),
                (NFTA_SET_ELEM_EXPRESSIONS, INNER),
            ]),
        )]),
    ),
];
const NEW_RULE: &[(u16, Meaning)] = &[
    (NFTA_RULE_ID, Meaning::Definition(IdKind::Rule)),
    (NFTA_RULE_POSITION_ID, Meaning::Reference(IdKind::Rule)),
    (NFTA_RULE_CHAIN_ID, Meaning::Reference(IdKind::Chain)),
    (
        NFTA_RULE_EXPRESSIONS,
        Meaning::Attributes(&[(NFTA_LIST_ELEM, Meaning::Expression)]),
    ),
];
const OLD_RULE: &[(u16, Meaning)] = &[
    (NFTA_RULE_ID, Meaning::Reference(IdKind::Rule)),
    (NFTA_RULE_CHAIN_ID, Meaning::Reference(IdKind::Chain)),
];

/// Returns the attributes that matter in a message of this type.
const fn of_message(kind: u8) -> &'static [(u16, Meaning)] {
    match kind {
        NFT_MSG_NEWSET => &[
            (NFTA_SET_ID, Meaning::Definition(IdKind::Set)),
            (NFTA_SET_EXPR, Meaning::Inner),
            (NFTA_SET_EXPRESSIONS, INNER),
        ],
        NFT_MSG_NEWCHAIN => &[(NFTA_CHAIN_ID, Meaning::Definition(IdKind::Chain))],
        NFT_MSG_NEWRULE => NEW_RULE,
        NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => OLD_RULE,
        NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => ELEMENTS,
        _ => &[],
    }
}

/// Returns the attributes that matter in an expression.
fn of_expression(name: &BStr) -> &'static [(u16, Meaning)] {
    match name.as_bytes() {
        b"immediate" => &[(NFTA_IMMEDIATE_DATA, VERDICT)],
        b"lookup" => &[
            (NFTA_LOOKUP_SET, Meaning::Name(NameKind::Set)),
            (NFTA_LOOKUP_SET_ID, Meaning::Reference(IdKind::Set)),
        ],
        b"dynset" => &[
            (NFTA_DYNSET_SET_NAME, Meaning::Name(NameKind::Set)),
            (NFTA_DYNSET_SET_ID, Meaning::Reference(IdKind::Set)),
            (NFTA_DYNSET_EXPR, Meaning::Inner),
            (NFTA_DYNSET_EXPRESSIONS, INNER),
        ],
        b"inner" => &[(NFTA_INNER_EXPR, Meaning::Inner)],
        b"objref" => &[
            (NFTA_OBJREF_IMM_NAME, Meaning::Name(NameKind::Object)),
            (NFTA_OBJREF_SET_NAME, Meaning::Name(NameKind::Set)),
            (NFTA_OBJREF_SET_ID, Meaning::Reference(IdKind::Set)),
        ],
        b"flow_offload" => &[(NFTA_FLOW_TABLE_NAME, Meaning::Name(NameKind::Flowtable))],
        _ => &[],
    }
}

/// A reference found in a message.
pub(super) enum MessageItem<'m> {
    Definition(IdKind, u32),
    Reference(IdKind, u32),
    Name(NameKind, &'m BStr),
    Expression(ExpressionRef<'m>),
}

/// Returns a string without its trailing NUL.
fn text(payload: &[u8]) -> &BStr {
    payload.strip_suffix(&[0]).unwrap_or(payload).into()
}

/// Visits the references in attributes, which start at this offset in the message, with their offsets.
fn visit_attributes<'m>(
    bytes: &'m [u8],
    start: usize,
    meanings: &[(u16, Meaning)],
    visit: &mut dyn FnMut(usize, MessageItem<'m>),
) {
    let mut attributes = Attributes::new(bytes);
    loop {
        let at = start + attributes.offset();
        let Some(Ok(attribute)) = attributes.next() else {
            return;
        };
        let Some((_, meaning)) = meanings.iter().find(|(kind, _)| *kind == attribute.kind) else {
            continue;
        };
        let payload = attribute.payload;
        let at = at + attribute.raw.len().min(4);
        let number = u32::decode(payload);
        match (meaning, number) {
            (Meaning::Definition(sort), Some(number)) => {
                visit(at, MessageItem::Definition(*sort, number))
            }
            (Meaning::Reference(sort), Some(number)) => {
                visit(at, MessageItem::Reference(*sort, number))
            }
            (Meaning::Definition(_) | Meaning::Reference(_), None) => {}
            (Meaning::Name(named), _) => visit(at, MessageItem::Name(*named, text(payload))),
            (Meaning::Attributes(meanings), _) => visit_attributes(payload, at, meanings, visit),
            (Meaning::Expression | Meaning::Inner, _) => {
                // The kernel rejects an expression without a name too.
                let Ok(expression) = ExpressionRef::read(payload, &[]) else {
                    continue;
                };
                let meanings = of_expression(expression.name);
                visit(at, MessageItem::Expression(expression));
                if let Meaning::Expression = meaning {
                    let data = [(NFTA_EXPR_DATA, Meaning::Attributes(meanings))];
                    visit_attributes(payload, at, &data, visit);
                }
            }
        }
    }
}

/// Visits the ids, names and expressions in an operation, each with its offset in the message.
pub(super) fn each_mention<'m>(
    message: &Message<'m>,
    visit: &mut dyn FnMut(usize, MessageItem<'m>),
) {
    if let Some(attributes) = message.raw.get(HEADERS..) {
        visit_attributes(attributes, HEADERS, of_message(message.kind as u8), visit);
    }
}
