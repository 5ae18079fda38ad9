//! What an operation was, in words: for the errors of a transaction.

use std::fmt;

use bstr::BString;
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFTA_CHAIN_HANDLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_EXPR_DATA, NFTA_LIST_ELEM,
    NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE, NFTA_RULE_TABLE, NFTA_TABLE_HANDLE,
    NFTA_TABLE_NAME,
};

use super::declare::Field;
use super::expr::Expressions;
use super::name::Name;
use super::object::{Messages, Object};
use super::{Chain, Family, Rule, Table};
use crate::error::Errno;
use crate::netlink::{Attributes, Message};

/// One operation of a transaction, in words: `add rule ip nat KUBE-SERVICES #17`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Which operation of the transaction it is, counted from 0.
    pub index: usize,
    /// What was to be done: `add`, `create`, `insert`, `replace`, `delete`, `destroy` or `flush`.
    pub verb: &'static str,
    /// What it was to be done to: `table`, `chain`, `rule`, …
    pub kind: &'static str,
    /// The object's family.
    pub family: Family,
    /// Names that say which object: table, chain.
    pub path: Vec<BString>,
    /// The object's handle, if the operation names one.
    pub handle: Option<u64>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb, self.kind, self.family)?;
        for name in &self.path {
            write!(f, " {name}")?;
        }
        if let Some(handle) = self.handle {
            write!(f, " handle {handle}")?;
        }
        write!(f, " #{}", self.index)
    }
}

/// How a kind of object is described: its messages, the attributes that name it, its handle's
/// attribute and the names of all its attributes.
struct Kind {
    messages: Messages,
    path: &'static [u16],
    handle: u16,
    attributes: &'static [(u16, &'static str)],
}

/// One line an object.
const KINDS: &[Kind] = &[
    Kind {
        messages: Table::MESSAGES,
        path: &[NFTA_TABLE_NAME],
        handle: NFTA_TABLE_HANDLE,
        attributes: Table::ATTRIBUTES,
    },
    Kind {
        messages: Chain::MESSAGES,
        path: &[NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME],
        handle: NFTA_CHAIN_HANDLE,
        attributes: Chain::ATTRIBUTES,
    },
    Kind {
        messages: Rule::MESSAGES,
        path: &[NFTA_RULE_TABLE, NFTA_RULE_CHAIN],
        handle: NFTA_RULE_HANDLE,
        attributes: Rule::ATTRIBUTES,
    },
];

impl Kind {
    fn of(message: &Message<'_>) -> Option<&'static Self> {
        let kind = message.kind as u8;
        KINDS
            .iter()
            .find(|k| [k.messages.new, k.messages.delete, k.messages.destroy].contains(&kind))
    }
}

/// Describes the operation in this message.
pub(super) fn describe(index: usize, message: &Message<'_>) -> Operation {
    let (header, attributes) = match message.nfgenmsg() {
        Ok((header, attributes)) => (Family(header.family), Attributes::new(attributes)),
        Err(_) => (Family::UNSPEC, Attributes::new(&[])),
    };
    let Some(kind) = Kind::of(message) else {
        return Operation {
            index,
            verb: "send",
            kind: "message",
            family: header,
            path: vec![format!("of type {}", message.kind & 0xff).into()],
            handle: None,
        };
    };
    let path = kind
        .path
        .iter()
        .filter_map(|&attribute| attributes.clone().find(attribute))
        .filter_map(Name::keep)
        .map(BString::from)
        .collect::<Vec<_>>();
    let handle = attributes.find(kind.handle).and_then(Field::decode);
    let message_kind = message.kind as u8;
    let has = |flag: u16| message.flags & flag != 0;
    let verb = if message_kind == kind.messages.destroy {
        "destroy"
    } else if message_kind == kind.messages.delete {
        let everything = path.is_empty() && handle.is_none();
        if everything || (kind.messages.ordered && handle.is_none()) {
            "flush"
        } else {
            "delete"
        }
    } else if has(NLM_F_REPLACE) {
        "replace"
    } else if has(NLM_F_EXCL) {
        "create"
    } else if kind.messages.ordered && has(NLM_F_CREATE) && !has(NLM_F_APPEND) {
        "insert"
    } else {
        "add"
    };
    Operation {
        index,
        verb,
        kind: kind.messages.kind,
        family: header,
        path,
        handle,
    }
}

/// Names the attribute that starts `offset` bytes into the message: its path from the outermost
/// one inwards, for instance `NFTA_RULE_EXPRESSIONS, expression 2 (cmp), NFTA_CMP_DATA`.
pub(super) fn attribute_at(message: &Message<'_>, offset: u32) -> Option<String> {
    let (_, bytes) = message.nfgenmsg().ok()?;
    let wanted = usize::try_from(offset).ok()?;
    let base = message.raw.len() - bytes.len();
    let kind = Kind::of(message)?;
    let (attribute, at) = covering(bytes, base, wanted)?;
    let mut path = name_of(kind.attributes, attribute.kind);
    if at == wanted || attribute.kind != NFTA_RULE_EXPRESSIONS || !kind.messages.ordered {
        return Some(path);
    }
    // Into the list of expressions.
    let (element, element_at) = covering(attribute.payload, at + 4, wanted)?;
    if element.kind != NFTA_LIST_ELEM {
        return Some(path);
    }
    let number = Attributes::new(attribute.payload)
        .map_while(Result::ok)
        .position(|other| other.raw.as_ptr() == element.raw.as_ptr())?;
    let list = Expressions::decode(element.raw)?;
    let expression = list.iter().next()?.ok()?;
    path.push_str(&format!(", expression {number} ({})", expression.name));
    if let Some((data, data_at)) = covering(element.payload, element_at + 4, wanted)
        && data.kind == NFTA_EXPR_DATA
        && data_at != wanted
        && let Some((inner, _)) = covering(data.payload, data_at + 4, wanted)
    {
        path.push_str(", ");
        path.push_str(&name_of(expression.attribute_names(), inner.kind));
    }
    Some(path)
}

/// The attribute of `bytes`, which start at `base`, that the byte at `wanted` belongs to, and
/// where it starts.
fn covering<'a>(
    bytes: &'a [u8],
    base: usize,
    wanted: usize,
) -> Option<(crate::netlink::Attribute<'a>, usize)> {
    let mut at = base;
    for attribute in Attributes::new(bytes).map_while(Result::ok) {
        let end = at + attribute.raw.len();
        if (at..end).contains(&wanted) {
            return Some((attribute, at));
        }
        at = end;
    }
    None
}

fn name_of(names: &[(u16, &'static str)], kind: u16) -> String {
    names.iter().find(|(known, _)| *known == kind).map_or_else(
        || format!("attribute {kind}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// What most often lies behind an error, and what can be done about it.
pub(super) fn hint(errno: Errno, operation: Option<&Operation>) -> Option<&'static str> {
    let kind = operation.map(|operation| operation.kind);
    let verb = operation.map(|operation| operation.verb);
    Some(match errno.number() {
        libc::ENOENT => match (verb, kind) {
            (Some("delete" | "replace" | "flush"), _) => {
                "it does not exist (any more); `destroy` deletes only what is there (Linux 6.3)"
            }
            (_, Some("rule")) => {
                "its table, chain, a chain that it jumps to, a set that it uses, or an expression or \
                 extension of it does not exist here; what a rule refers to must stand before it in \
                 the transaction"
            }
            (_, Some("chain")) => {
                "its table does not exist, or the kernel lacks this chain type or device"
            }
            _ => "something that it refers to does not exist",
        },
        libc::EEXIST => match verb {
            Some("create") => "it exists already; `add` takes what is there",
            _ => "something of this name exists already, and is of another kind",
        },
        libc::EBUSY => {
            "it is still in use: rules or map elements refer to it; delete those first, or in the \
             same transaction before it (before Linux 6.2 references from maps linger)"
        }
        libc::EPERM => {
            "CAP_NET_ADMIN in the namespace's user namespace is needed; a table that another \
             process owns is closed to all others"
        }
        libc::EMSGSIZE => "the message is larger than the socket's send buffer",
        libc::EOPNOTSUPP => {
            "the kernel does not do this here: a chain type, hook, priority, flag or expression that \
             does not go together with the family or with the chains that lead to it"
        }
        libc::ERESTART => "somebody else changed the ruleset in between: read it again and retry",
        libc::ELOOP => "a chain would lead back to itself",
        libc::EMLINK => {
            "jumps would nest deeper than the kernel allows (16), or a chain would lead back to itself"
        }
        libc::EINVAL => match verb {
            Some("destroy") => {
                "an attribute is not as the kernel wants it, or the kernel is older than 6.3 and \
                 knows no `destroy`"
            }
            _ => "an attribute is missing or not as the kernel wants it",
        },
        libc::ENOMEM => "the kernel is out of memory",
        libc::ENAMETOOLONG | libc::ERANGE => {
            "a name or number is out of range; names hold at most 255 bytes, those of xtables \
             chains 28"
        }
        libc::ENFILE | libc::EOVERFLOW => "a number of objects or references reached its limit",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::Transaction;
    use crate::nft::expr::Verdict;
    use crate::nft::expr::{Cmp, Immediate, Meta, MetaKey, Register};

    fn described(tx: &Transaction) -> Vec<String> {
        crate::netlink::Messages::new(tx.operations())
            .enumerate()
            .map(|(i, m)| describe(i, &m.unwrap()).to_string())
            .collect()
    }

    #[test]
    fn every_verb_is_named() {
        let table = Table::new(Family::IP, "nat");
        let chain = Chain::new(Family::IP, "nat", "KUBE-SERVICES");
        let mut rule = Rule::new(Family::IP, "nat", "KUBE-SERVICES");
        let mut tx = Transaction::new();
        tx.add(&table).unwrap();
        tx.create(&chain).unwrap();
        tx.add(&rule).unwrap();
        tx.insert(&rule).unwrap();
        rule.handle = Some(5);
        tx.replace(&rule).unwrap();
        tx.delete(&rule).unwrap();
        tx.flush_chain(Family::IP, "nat", "KUBE-SERVICES").unwrap();
        tx.flush_table(Family::IP, "nat").unwrap();
        tx.destroy(&chain).unwrap();
        tx.flush_ruleset(Family::UNSPEC).unwrap();
        assert_eq!(
            described(&tx),
            [
                "add table ip nat #0",
                "create chain ip nat KUBE-SERVICES #1",
                "add rule ip nat KUBE-SERVICES #2",
                "insert rule ip nat KUBE-SERVICES #3",
                "replace rule ip nat KUBE-SERVICES handle 5 #4",
                "delete rule ip nat KUBE-SERVICES handle 5 #5",
                "flush rule ip nat KUBE-SERVICES #6",
                "flush rule ip nat #7",
                "destroy chain ip nat KUBE-SERVICES #8",
                "flush table all #9",
            ]
        );
    }

    #[test]
    fn an_attribute_is_named_down_into_an_expression() {
        let mark = 0x8000u32.to_ne_bytes();
        let rule = Rule::new(Family::IP, "nat", "A")
            .with(&Meta::load(MetaKey::MARK, Register::R1))
            .with(&Cmp::eq(Register::R1, &mark))
            .with(&Immediate::verdict(Verdict::Jump("B".into())));
        let mut tx = Transaction::new();
        tx.add(&rule).unwrap();
        let (message, _) = Message::split(tx.operations()).unwrap();
        let named: Vec<_> = (20..message.raw.len() as u32)
            .step_by(4)
            .filter_map(|at| attribute_at(&message, at))
            .collect();
        assert_eq!(named[0], "NFTA_RULE_TABLE");
        for wanted in [
            "NFTA_RULE_CHAIN",
            "NFTA_RULE_EXPRESSIONS",
            "NFTA_RULE_EXPRESSIONS, expression 0 (meta), NFTA_META_KEY",
            "NFTA_RULE_EXPRESSIONS, expression 1 (cmp), NFTA_CMP_DATA",
            "NFTA_RULE_EXPRESSIONS, expression 2 (immediate), NFTA_IMMEDIATE_DATA",
        ] {
            assert!(named.iter().any(|n| n == wanted), "{wanted} in {named:#?}");
        }
        assert_eq!(attribute_at(&message, 4), None);
        assert_eq!(attribute_at(&message, 9999), None);
    }
}
