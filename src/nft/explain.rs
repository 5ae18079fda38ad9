//! Descriptions of operations, for the errors of a transaction.

use std::fmt;

use bstr::{BString, ByteSlice};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFTA_EXPR_DATA, NFTA_LIST_ELEM, NFTA_OBJ_DATA, NFTA_OBJ_TYPE, NFTA_RULE_EXPRESSIONS,
    NFTA_SET_ELEM_LIST_ELEMENTS,
};

use super::declare::{AttributeNote, AttributeNotes, Field, noted};
use super::element::{Element, ElementRef, Elements};
use super::expr::{Expressions, ObjectType};
use super::name::{Bytes, Name};
use super::object::{Identified as _, Messages, Written};
use super::{Chain, Family, Flowtable, ObjectData, Rule, Set, StatefulObject, Table};
use crate::errno::Errno;
use crate::escape::Escaped;
use crate::netlink::{Attribute, Attributes, Message};

/// The description of an operation of a transaction: `add rule ip nat KUBE-SERVICES #17`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Index of the operation in the transaction, from 0.
    pub index: usize,
    /// The kind of operation: `add`, `create`, `insert`, `replace`, `delete`, `destroy` or `flush`.
    pub verb: &'static str,
    /// The kind of object: `table`, `chain`, `rule`, `set`, `element`, `flowtable`; for a stateful
    /// object its type: `counter`, `quota`, …, or `object`.
    pub kind: &'static str,
    /// The object's family.
    pub family: Family,
    /// Names that identify the object: its table and its own name; for a rule its chain, for elements
    /// their set.
    pub path: Vec<BString>,
    /// The object's handle, if the operation has one.
    pub handle: Option<u64>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_without_index(f)?;
        write!(f, " #{}", self.index)
    }
}

impl Operation {
    /// Formats it without its index.
    pub(super) fn fmt_without_index(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb, self.kind, self.family)?;
        for name in &self.path {
            write!(f, " {}", Escaped(name.as_bstr()))?;
        }
        if let Some(handle) = self.handle {
            write!(f, " handle {handle}")?;
        }
        Ok(())
    }
}

/// The description of a kind of object: its messages, its attributes' notes, and their names.
struct Kind {
    messages: Messages,
    known: &'static [AttributeNotes],
    attributes: &'static [(u16, &'static str)],
}

/// One line per object.
const KINDS: &[Kind] = &[
    Kind::described::<Table<'_>>(),
    Kind::described::<Chain<'_>>(),
    Kind::described::<Rule<'_>>(),
    Kind::described::<Set<'_>>(),
    Kind::described::<Elements<'_>>(),
    Kind::described::<StatefulObject<'_>>(),
    Kind::described::<Flowtable<'_>>(),
];

/// The description of a stateful object whose type has no name.
const OBJECT: &str = StatefulObject::MESSAGES.kind;

impl Kind {
    const fn described<T: Written>() -> Self {
        Self {
            messages: T::MESSAGES,
            known: T::ATTRIBUTE_NOTES,
            attributes: T::NAMES,
        }
    }

    /// Returns the attributes that name an object, outermost first.
    fn path(&self) -> impl Iterator<Item = u16> {
        const NAMES: [AttributeNote; 4] = [
            AttributeNote::table,
            AttributeNote::chain,
            AttributeNote::set,
            AttributeNote::name,
        ];
        let names = |(_, notes): &&AttributeNotes| notes.iter().any(|note| NAMES.contains(note));
        self.known.iter().filter(names).map(|(kind, _)| *kind)
    }

    fn of(message: u8) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|k| [k.messages.new, k.messages.delete, k.messages.destroy].contains(&message))
    }

    /// Returns the verb for a message of this kind with this type and flags.
    fn verb(&self, message: u8, flags: u16) -> &'static str {
        let has = |flag: u16| flags & flag != 0;
        if message == self.messages.destroy {
            "destroy"
        } else if message == self.messages.delete {
            "delete"
        } else if has(NLM_F_REPLACE) {
            "replace"
        } else if has(NLM_F_EXCL) {
            "create"
        } else if self.messages.ordered && has(NLM_F_CREATE) && !has(NLM_F_APPEND) {
            "insert"
        } else {
            "add"
        }
    }
}

/// Describes a message from its type and flags alone: `delete chain`.
#[cold]
pub(super) fn name_of_operation(message: u8, flags: u16) -> String {
    match Kind::of(message) {
        Some(kind) => format!("{} {}", kind.verb(message, flags), kind.messages.kind),
        None => format!("process a message of type {message}"),
    }
}

/// Describes the operation of a message.
pub(super) fn describe(index: usize, message: &Message<'_>) -> Operation {
    let (header, attributes) = match message.nfgenmsg() {
        Ok((header, attributes)) => (Family(header.family), Attributes::new(attributes)),
        Err(_) => (Family::UNSPEC, Attributes::new(&[])),
    };
    let Some(kind) = Kind::of(message.kind as u8) else {
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
        .path()
        .filter_map(|attribute| attributes.clone().find(attribute))
        .filter_map(Name::parse_payload)
        .map(BString::from)
        .collect::<Vec<_>>();
    let handle = noted(kind.known, AttributeNote::handle)
        .and_then(|handle| attributes.clone().find(handle))
        .and_then(Field::decode);
    let is_elements = kind.messages.kind == Elements::MESSAGES.kind;
    let unlisted = attributes
        .clone()
        .find(NFTA_SET_ELEM_LIST_ELEMENTS)
        .is_none();
    let message_kind = message.kind as u8;
    let verb = match kind.verb(message_kind, message.flags) {
        "delete" => {
            let everything = (path.is_empty() && handle.is_none()) || (is_elements && unlisted);
            if everything || (kind.messages.ordered && handle.is_none()) {
                "flush"
            } else {
                "delete"
            }
        }
        verb => verb,
    };
    let object_type = || {
        let number = attributes.find(NFTA_OBJ_TYPE).and_then(ObjectType::decode);
        number.and_then(ObjectType::name)
    };
    Operation {
        index,
        verb,
        kind: match kind.messages.kind {
            OBJECT => object_type().unwrap_or(OBJECT),
            kind => kind,
        },
        family: header,
        path,
        handle,
    }
}

/// Calls both functions, for the fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) fn explained(message: &Message<'_>, offset: u32) -> (Operation, Option<String>) {
    (describe(0, message), attribute_at(message, offset))
}

/// Returns the path of the attribute at `offset` bytes in the message, from the outermost one inwards,
/// for example `NFTA_RULE_EXPRESSIONS, expression 2 (cmp), NFTA_CMP_DATA`.
pub(super) fn attribute_at(message: &Message<'_>, offset: u32) -> Option<String> {
    let (_, bytes) = message.nfgenmsg().ok()?;
    let wanted = usize::try_from(offset).ok()?;
    let base = message.raw.len() - bytes.len();
    let kind = Kind::of(message.kind as u8)?;
    let (attribute, at) = covering(bytes, base, wanted)?;
    let mut path = name_of(kind.attributes, attribute.kind);
    if at == wanted {
        return Some(path);
    }
    let inside = match (kind.messages.kind, attribute.kind) {
        ("rule", NFTA_RULE_EXPRESSIONS) => in_expressions(&attribute, at, wanted),
        ("element", NFTA_SET_ELEM_LIST_ELEMENTS) => in_elements(&attribute, at, wanted),
        (OBJECT, NFTA_OBJ_DATA) => in_object(bytes, &attribute, at, wanted),
        _ => None,
    };
    path.push_str(&inside.unwrap_or_default());
    Some(path)
}

/// Returns the path of an attribute in a stateful object's data.
fn in_object(message: &[u8], data: &Attribute<'_>, at: usize, wanted: usize) -> Option<String> {
    let object_type = Attributes::new(message)
        .find(NFTA_OBJ_TYPE)
        .and_then(ObjectType::decode)?;
    let (inner, _) = covering(data.payload, at + 4, wanted)?;
    let name = name_of(ObjectData::attribute_names(object_type), inner.kind);
    Some(format!(", {name}"))
}

/// Returns the path of an element, with its index in the message and its key, and of its attribute.
fn in_elements(list: &Attribute<'_>, at: usize, wanted: usize) -> Option<String> {
    let (element, element_at) = covering(list.payload, at + 4, wanted)?;
    let number = Attributes::new(list.payload)
        .map_while(Result::ok)
        .position(|other| other.raw.as_ptr() == element.raw.as_ptr())?;
    let mut path = format!(", element {number}");
    if let Ok(view) = ElementRef::parse(element.payload)
        && let Some(key) = view.key_bytes()
    {
        path.push_str(&format!(" ({})", Bytes::borrowed(key)));
    }
    if element_at != wanted
        && let Some((inner, _)) = covering(element.payload, element_at + 4, wanted)
    {
        path.push_str(", ");
        path.push_str(&name_of(Element::ATTRIBUTES, inner.kind));
    }
    Some(path)
}

/// Returns the path of an expression, with its index in the rule, and of its attribute.
fn in_expressions(attribute: &Attribute<'_>, at: usize, wanted: usize) -> Option<String> {
    let (element, element_at) = covering(attribute.payload, at + 4, wanted)?;
    if element.kind != NFTA_LIST_ELEM {
        return None;
    }
    let number = Attributes::new(attribute.payload)
        .map_while(Result::ok)
        .position(|other| other.raw.as_ptr() == element.raw.as_ptr())?;
    let list = Expressions::decode(element.raw)?;
    let expression = list.iter().next()?.ok()?;
    let mut path = format!(", expression {number} ({})", expression.name);
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

/// Returns the attribute of `bytes` that contains the byte at `wanted`, and its start; `bytes` starts
/// at `base`.
fn covering<'a>(bytes: &'a [u8], base: usize, wanted: usize) -> Option<(Attribute<'a>, usize)> {
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

/// Returns the most common cause of an error and its remedy. `attribute` is the path of the attribute
/// reported by the kernel.
pub(super) fn hint(
    errno: Errno,
    operation: Option<&Operation>,
    attribute: Option<&str>,
) -> Option<&'static str> {
    let points_at = |name| attribute.is_some_and(|path| path.starts_with(name));
    let kind = operation.map(|operation| operation.kind);
    let verb = operation.map(|operation| operation.verb);
    // A stateful object is described by its type.
    let is_object = |kind: &str| kind == OBJECT || kind.parse::<ObjectType>().is_ok();
    Some(match errno.number() {
        libc::ENOENT => match (verb, kind) {
            (_, Some("flowtable")) if verb != Some("delete") => {
                "its table or a device does not exist, or the kernel is built without flowtables \
                 (CONFIG_NF_FLOW_TABLE)"
            }
            (Some("delete"), Some("element")) => {
                "its set does not exist, or does not have an element (any more); `destroy` ignores \
                 missing elements (Linux 6.3)"
            }
            (Some("delete" | "replace" | "flush"), _) => {
                "it does not exist (any more); `destroy` ignores missing objects (Linux 6.3)"
            }
            (_, Some("rule")) if points_at("NFTA_RULE_TABLE") => {
                "the table does not exist; it must come before the rule in the transaction"
            }
            (_, Some("rule")) if points_at("NFTA_RULE_CHAIN") => {
                "the table has no such chain; it must come before the rule in the transaction"
            }
            (_, Some("rule")) if points_at("NFTA_RULE_EXPRESSIONS") => {
                "the chain, set, object or extension that the expression refers to does not exist; \
                 it must come before the rule in the transaction. Or the kernel \
                 lacks the expression"
            }
            (_, Some("rule")) => {
                "its table, chain, a chain that it jumps to, a set that it uses, or one of its expressions or \
                 extensions does not exist; what a rule refers to must come before it in \
                 the transaction"
            }
            (_, Some("chain")) if points_at("NFTA_CHAIN_TYPE") => {
                "the kernel has no chains of this type: it has filter, nat and route, if built \
                 with them"
            }
            (_, Some("chain")) => {
                "its table does not exist, or the kernel lacks this chain type or device"
            }
            (_, Some("set")) => {
                "its table does not exist, or the kernel lacks one of its expressions"
            }
            (_, Some("element")) => {
                "its set, a chain that it jumps to, or the object that it names does not exist; what \
                 an element refers to must come before it in the transaction"
            }
            (_, Some(kind)) if is_object(kind) => {
                "its table does not exist, the kernel is built without this type of object, or has \
                 no helper of this name"
            }
            _ => "something that it refers to does not exist",
        },
        libc::EEXIST => match verb {
            _ if kind == Some("element") => {
                "an element with this key already exists, with different data if it was added, or \
                 it overlaps an existing range; the attribute names the element"
            }
            Some("create") => "it already exists; `add` accepts existing objects",
            _ if kind == Some("set") => {
                "a set of this name already exists, with different keys, data or flags"
            }
            _ => "another kind of object with this name already exists",
        },
        libc::EBUSY if kind == Some("rule") && verb != Some("delete") => {
            "an anonymous set can only be used once, by one rule: this one is already used, or two sets in the \
             transaction have the same number (NFTA_SET_ID)"
        }
        libc::EBUSY => {
            "it is still in use: rules or map elements refer to it; delete those first, earlier in the same \
             transaction, or in a separate one (a kernel without the fixes of Linux 6.4 counts \
             the elements of a deleted map until the transaction ends)"
        }
        libc::EPERM if kind == Some("rule") && verb != Some("delete") => {
            "this requires CAP_NET_ADMIN in the namespace's user namespace, and on some kernels (7.2) in the \
             initial one for a rule that writes into packets; a table that another process owns cannot be changed \
             by others"
        }
        libc::EPERM if operation.is_none() => {
            "this requires CAP_NET_ADMIN in the network namespace's user namespace: run it as root, or in a namespace \
             of your own (unshare --user --map-root-user --net)"
        }
        libc::EPERM => {
            "this requires CAP_NET_ADMIN in the namespace's user namespace; a table that another \
             process owns cannot be changed by others"
        }
        libc::EMSGSIZE => "the message is larger than the socket's send buffer",
        libc::EOPNOTSUPP if kind == Some("set") => {
            "the kernel has no implementation of sets with these flags, lengths and fields"
        }
        libc::EOPNOTSUPP if kind.is_some_and(is_object) => {
            "not supported by the kernel here: built without this type of object, or not for this \
             family or protocol"
        }
        libc::EOPNOTSUPP if kind == Some("chain") => {
            "not supported by the kernel here: the family has no hook of this number, chains of this type \
             do not support this hook or priority, or such a chain does not support the flag"
        }
        libc::EOPNOTSUPP if kind == Some("rule") => {
            "not supported by the kernel here: an expression that is not allowed in this family or \
             in the chains that jump to it, `dynset` on a set whose flags do not allow it (timeout, \
             interval), or (7.2) a `byteorder` of less than a unit of its size"
        }
        libc::EOPNOTSUPP => {
            "not supported by the kernel here: a chain type, hook, priority, flag or expression that \
             is not allowed in this family or in the chains that jump to it"
        }
        libc::ERESTART => {
            "another process changed the ruleset in the meantime: read it again and retry"
        }
        libc::ELOOP => "a chain would jump to itself",
        libc::EMLINK => {
            "jumps would nest deeper than the kernel allows (16), or a chain would jump to itself"
        }
        libc::EINVAL => match verb {
            None => {
                "an anonymous set or chain is not used by a rule of the transaction, or a rule is not \
                 allowed at the hook of a base chain from which packets reach it"
            }
            Some("add" | "create") if kind == Some("set") => {
                "an attribute is missing or invalid: the length of the key, fields \
                 that do not add up to it, incompatible flags; or it is an anonymous set \
                 that no rule of the transaction uses"
            }
            Some("add" | "create") if kind == Some("element") => {
                "an attribute is missing or invalid: a key or data of a different \
                 length than the set's, data in a set or none in a map, a timeout where the set has \
                 none, expressions that differ from the set's"
            }
            Some("add" | "insert" | "replace") if kind == Some("rule") => {
                "an attribute is missing or invalid; before Linux 6.5 a lookup in a \
                 map must use the value"
            }
            Some("destroy") => {
                "an attribute is invalid, or the kernel is older than 6.3 and \
                 does not support `destroy`"
            }
            _ => "an attribute is missing or invalid",
        },
        libc::ENOMEM => "the kernel is out of memory",
        libc::ENAMETOOLONG | libc::ERANGE => {
            "a name or number is out of range; names have at most 255 bytes, those of xtables \
             chains 28"
        }
        libc::ENFILE if kind == Some("element") => {
            "the set is full: it has as many elements as its size allows"
        }
        libc::ENOSPC => "no space left: a set is full, or a hook has too many chains",
        libc::ENFILE | libc::EOVERFLOW => "the number of objects or references reached its limit",
        _ => return None,
    })
}

pub(super) mod diagnose;
#[cfg(test)]
mod tests;
