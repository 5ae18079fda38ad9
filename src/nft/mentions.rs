//! What operations mention: numbers of what is made in the same batch, names of what is there, expressions.

use bstr::{BStr, ByteSlice as _};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELRULE, NFT_MSG_DELSETELEM, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFTA_CHAIN_ID,
    NFTA_DATA_VERDICT, NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS, NFTA_DYNSET_SET_ID,
    NFTA_DYNSET_SET_NAME, NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_FLOW_TABLE_NAME,
    NFTA_IMMEDIATE_DATA, NFTA_INNER_EXPR, NFTA_LIST_ELEM, NFTA_LOOKUP_SET, NFTA_LOOKUP_SET_ID,
    NFTA_OBJREF_IMM_NAME, NFTA_OBJREF_SET_ID, NFTA_OBJREF_SET_NAME, NFTA_RULE_CHAIN_ID,
    NFTA_RULE_EXPRESSIONS, NFTA_RULE_ID, NFTA_RULE_POSITION_ID, NFTA_SET_ELEM_DATA,
    NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_LIST_ELEMENTS,
    NFTA_SET_ELEM_LIST_SET_ID, NFTA_SET_ELEM_OBJREF, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS,
    NFTA_SET_ID, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID,
};

use super::expr::ExpressionRef;
use crate::netlink::{Attributes, Message};

/// Length of a message's header and the `nfgenmsg` behind it.
const HEADERS: usize = 20;

/// What has a number in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sort {
    Set,
    Chain,
    Rule,
}

/// What stands in an attribute.
#[derive(Clone, Copy)]
enum Holds {
    /// The number of what the message makes.
    Made(Sort),
    /// The number of something else.
    Meant(Sort),
    /// The name of something else in the same table.
    Name,
    /// Attributes, of which these are of interest.
    Attributes(&'static [(u16, Holds)]),
    /// An expression.
    Expression,
    /// An expression in another one, or in an element, which holds no more of them.
    Inner,
}

const VERDICT: Holds = Holds::Attributes(&[(
    NFTA_DATA_VERDICT,
    Holds::Attributes(&[
        (NFTA_VERDICT_CHAIN, Holds::Name),
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
                (NFTA_SET_ELEM_OBJREF, Holds::Name),
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

/// What is of interest in a message of this type.
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

/// The same in an expression.
fn of_expression(name: &BStr) -> &'static [(u16, Holds)] {
    match name.as_bytes() {
        b"immediate" => &[(NFTA_IMMEDIATE_DATA, VERDICT)],
        b"lookup" => &[
            (NFTA_LOOKUP_SET, Holds::Name),
            (NFTA_LOOKUP_SET_ID, Holds::Meant(Sort::Set)),
        ],
        b"dynset" => &[
            (NFTA_DYNSET_SET_NAME, Holds::Name),
            (NFTA_DYNSET_SET_ID, Holds::Meant(Sort::Set)),
            (NFTA_DYNSET_EXPR, Holds::Inner),
            (NFTA_DYNSET_EXPRESSIONS, INNER),
        ],
        b"inner" => &[(NFTA_INNER_EXPR, Holds::Inner)],
        b"objref" => &[
            (NFTA_OBJREF_IMM_NAME, Holds::Name),
            (NFTA_OBJREF_SET_NAME, Holds::Name),
            (NFTA_OBJREF_SET_ID, Holds::Meant(Sort::Set)),
        ],
        b"flow_offload" => &[(NFTA_FLOW_TABLE_NAME, Holds::Name)],
        _ => &[],
    }
}

/// What is found in a message.
pub(super) enum Found<'m> {
    Made(Sort, u32),
    Meant(Sort, u32),
    Name(&'m BStr),
    Expression(ExpressionRef<'m>),
}

/// A string, without the NUL at its end.
fn text(payload: &[u8]) -> &BStr {
    payload.strip_suffix(&[0]).unwrap_or(payload).into()
}

/// Visits what is found in attributes, which begin this far into the message: also where they stand.
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
        let number = payload.first_chunk().copied().map(u32::from_be_bytes);
        match (holds, number) {
            (Holds::Made(sort), Some(number)) => visit(at, Found::Made(*sort, number)),
            (Holds::Meant(sort), Some(number)) => visit(at, Found::Meant(*sort, number)),
            (Holds::Made(_) | Holds::Meant(_), None) => {}
            (Holds::Name, _) => visit(at, Found::Name(text(payload))),
            (Holds::Attributes(known), _) => walk(payload, at, known, visit),
            (Holds::Expression | Holds::Inner, _) => {
                let find = |kind| Attributes::new(payload).find(kind).unwrap_or_default();
                let name = text(find(NFTA_EXPR_NAME));
                let expression = ExpressionRef::new(name, find(NFTA_EXPR_DATA));
                visit(at, Found::Expression(expression));
                if let Holds::Expression = holds {
                    let data = [(NFTA_EXPR_DATA, Holds::Attributes(of_expression(name)))];
                    walk(payload, at, &data, visit);
                }
            }
        }
    }
}

/// Visits the numbers, names and expressions in an operation, each with its place in the message.
pub(super) fn each_mention<'m>(message: &Message<'m>, visit: &mut dyn FnMut(usize, Found<'m>)) {
    if let Some(attributes) = message.raw.get(HEADERS..) {
        walk(attributes, HEADERS, of_message(message.kind as u8), visit);
    }
}
