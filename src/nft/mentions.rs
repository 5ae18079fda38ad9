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
pub(super) enum Sort {
    Set,
    Chain,
    Rule,
}

/// The kinds of named objects; each kind is a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Named {
    Table,
    Chain,
    Set,
    Object,
    Flowtable,
}

impl Named {
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
enum Holds {
    /// The id of the object that the message creates.
    Made(Sort),
    /// The id of another object.
    Meant(Sort),
    /// The name of another object in the same table.
    Name(Named),
    /// Nested attributes, of which these matter.
    Attributes(&'static [(u16, Holds)]),
    /// An expression.
    Expression,
    /// An expression in another one or in an element; it cannot contain further expressions.
    Inner,
}

const VERDICT: Holds = Holds::Attributes(&[(
    NFTA_DATA_VERDICT,
    Holds::Attributes(&[
        (NFTA_VERDICT_CHAIN, Holds::Name(Named::Chain)),
        (NFTA_VERDICT_CHAIN_ID, Holds::Meant(Sort::Chain)),
    ]),
)]);
const INNER: Holds = Holds::Attributes(&[(NFTA_LIST_ELEM, Holds::Inner)]);
const ELEMENTS: &[(u16, Holds)] = &[
    (NFTA_SET_ELEM_LIST_SET_ID, Holds::Meant(Sort::Set)),
    (
        NFTA_SET_ELEM_LIST_ELEMENTS,
        Holds::Attributes(&[(
            NFTA_LIST_ELEM,
            Holds::Attributes(&[
                (NFTA_SET_ELEM_DATA, VERDICT),
                (NFTA_SET_ELEM_OBJREF, Holds::Name(Named::Object)),
                (NFTA_SET_ELEM_EXPR, Holds::Inner),
                (NFTA_SET_ELEM_EXPRESSIONS, INNER),
            ]),
        )]),
    ),
];
const NEW_RULE: &[(u16, Holds)] = &[
    (NFTA_RULE_ID, Holds::Made(Sort::Rule)),
    (NFTA_RULE_POSITION_ID, Holds::Meant(Sort::Rule)),
    (NFTA_RULE_CHAIN_ID, Holds::Meant(Sort::Chain)),
    (
        NFTA_RULE_EXPRESSIONS,
        Holds::Attributes(&[(NFTA_LIST_ELEM, Holds::Expression)]),
    ),
];
const OLD_RULE: &[(u16, Holds)] = &[
    (NFTA_RULE_ID, Holds::Meant(Sort::Rule)),
    (NFTA_RULE_CHAIN_ID, Holds::Meant(Sort::Chain)),
];

/// Returns the attributes that matter in a message of this type.
const fn of_message(kind: u8) -> &'static [(u16, Holds)] {
    match kind {
        NFT_MSG_NEWSET => &[
            (NFTA_SET_ID, Holds::Made(Sort::Set)),
            (NFTA_SET_EXPR, Holds::Inner),
            (NFTA_SET_EXPRESSIONS, INNER),
        ],
        NFT_MSG_NEWCHAIN => &[(NFTA_CHAIN_ID, Holds::Made(Sort::Chain))],
        NFT_MSG_NEWRULE => NEW_RULE,
        NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => OLD_RULE,
        NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => ELEMENTS,
        _ => &[],
    }
}

/// Returns the attributes that matter in an expression.
fn of_expression(name: &BStr) -> &'static [(u16, Holds)] {
    match name.as_bytes() {
        b"immediate" => &[(NFTA_IMMEDIATE_DATA, VERDICT)],
        b"lookup" => &[
            (NFTA_LOOKUP_SET, Holds::Name(Named::Set)),
            (NFTA_LOOKUP_SET_ID, Holds::Meant(Sort::Set)),
        ],
        b"dynset" => &[
            (NFTA_DYNSET_SET_NAME, Holds::Name(Named::Set)),
            (NFTA_DYNSET_SET_ID, Holds::Meant(Sort::Set)),
            (NFTA_DYNSET_EXPR, Holds::Inner),
            (NFTA_DYNSET_EXPRESSIONS, INNER),
        ],
        b"inner" => &[(NFTA_INNER_EXPR, Holds::Inner)],
        b"objref" => &[
            (NFTA_OBJREF_IMM_NAME, Holds::Name(Named::Object)),
            (NFTA_OBJREF_SET_NAME, Holds::Name(Named::Set)),
            (NFTA_OBJREF_SET_ID, Holds::Meant(Sort::Set)),
        ],
        b"flow_offload" => &[(NFTA_FLOW_TABLE_NAME, Holds::Name(Named::Flowtable))],
        _ => &[],
    }
}

/// A reference found in a message.
pub(super) enum Found<'m> {
    Made(Sort, u32),
    Meant(Sort, u32),
    Name(Named, &'m BStr),
    Expression(ExpressionRef<'m>),
}

/// Returns a string without its trailing NUL.
fn text(payload: &[u8]) -> &BStr {
    payload.strip_suffix(&[0]).unwrap_or(payload).into()
}

/// Visits the references in attributes, which start at this offset in the message, with their offsets.
fn walk<'m>(
    bytes: &'m [u8],
    start: usize,
    known: &[(u16, Holds)],
    visit: &mut dyn FnMut(usize, Found<'m>),
) {
    let mut attributes = Attributes::new(bytes);
    loop {
        let at = start + attributes.offset();
        let Some(Ok(attribute)) = attributes.next() else {
            return;
        };
        let Some((_, holds)) = known.iter().find(|(kind, _)| *kind == attribute.kind) else {
            continue;
        };
        let payload = attribute.payload;
        let at = at + attribute.raw.len().min(4);
        let number = u32::decode(payload);
        match (holds, number) {
            (Holds::Made(sort), Some(number)) => visit(at, Found::Made(*sort, number)),
            (Holds::Meant(sort), Some(number)) => visit(at, Found::Meant(*sort, number)),
            (Holds::Made(_) | Holds::Meant(_), None) => {}
            (Holds::Name(named), _) => visit(at, Found::Name(*named, text(payload))),
            (Holds::Attributes(known), _) => walk(payload, at, known, visit),
            (Holds::Expression | Holds::Inner, _) => {
                // The kernel rejects an expression without a name too.
                let Ok(expression) = ExpressionRef::read(payload, &[]) else {
                    continue;
                };
                let known = of_expression(expression.name);
                visit(at, Found::Expression(expression));
                if let Holds::Expression = holds {
                    let data = [(NFTA_EXPR_DATA, Holds::Attributes(known))];
                    walk(payload, at, &data, visit);
                }
            }
        }
    }
}

/// Visits the ids, names and expressions in an operation, each with its offset in the message.
pub(super) fn each_mention<'m>(message: &Message<'m>, visit: &mut dyn FnMut(usize, Found<'m>)) {
    if let Some(attributes) = message.raw.get(HEADERS..) {
        walk(attributes, HEADERS, of_message(message.kind as u8), visit);
    }
}
