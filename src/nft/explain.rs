//! What an operation was, in words: for the errors of a transaction.

use std::fmt;

use bstr::{BString, ByteSlice};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFTA_EXPR_DATA, NFTA_LIST_ELEM, NFTA_OBJ_DATA, NFTA_OBJ_TYPE, NFTA_RULE_EXPRESSIONS,
    NFTA_SET_ELEM_LIST_ELEMENTS,
};

use super::declare::{Field, Known, Note, noted};
use super::element::{Element, ElementRef, Elements};
use super::expr::{Expressions, ObjectType};
use super::name::{Bytes, Name};
use super::object::{Messages, Written};
use super::{Chain, Family, Flowtable, ObjectData, Rule, Set, StatefulObject, Table};
use crate::errno::Errno;
use crate::escape::Escaped;
use crate::netlink::{Attribute, Attributes, Message};

/// One operation of a transaction, in words: `add rule ip nat KUBE-SERVICES #17`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Which operation of the transaction it is, counted from 0.
    pub index: usize,
    /// What was to be done: `add`, `create`, `insert`, `replace`, `delete`, `destroy` or `flush`.
    pub verb: &'static str,
    /// What it was to be done to: `table`, `chain`, `rule`, `set`, `element`, `flowtable`; a stateful
    /// object by its type: `counter`, `quota`, … , or `object`.
    pub kind: &'static str,
    /// The object's family.
    pub family: Family,
    /// Names that say which object: its table and itself; of a rule its chain, of elements their set.
    pub path: Vec<BString>,
    /// The object's handle, if the operation names one.
    pub handle: Option<u64>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_words(f)?;
        write!(f, " #{}", self.index)
    }
}

impl Operation {
    /// Writes it without its number.
    pub(super) fn fmt_words(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// How a kind of object is described: its messages, what is known of its attributes, and their names.
struct Kind {
    messages: Messages,
    known: &'static [Known],
    attributes: &'static [(u16, &'static str)],
}

/// One line an object.
const KINDS: &[Kind] = &[
    Kind::described::<Table<'_>>(),
    Kind::described::<Chain<'_>>(),
    Kind::described::<Rule<'_>>(),
    Kind::described::<Set<'_>>(),
    Kind::described::<Elements<'_>>(),
    Kind::described::<StatefulObject<'_>>(),
    Kind::described::<Flowtable<'_>>(),
];

/// What a stateful object of a type without a name is called.
const OBJECT: &str = StatefulObject::MESSAGES.kind;

impl Kind {
    const fn described<T: Written>() -> Self {
        Self {
            messages: T::MESSAGES,
            known: T::KNOWN,
            attributes: T::NAMES,
        }
    }

    /// The attributes that name an object, the outermost first.
    fn path(&self) -> impl Iterator<Item = u16> {
        const NAMES: [Note; 4] = [Note::table, Note::chain, Note::set, Note::name];
        let names = |(_, notes): &&Known| notes.iter().any(|note| NAMES.contains(note));
        self.known.iter().filter(names).map(|(kind, _)| *kind)
    }

    fn of(message: u8) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|k| [k.messages.new, k.messages.delete, k.messages.destroy].contains(&message))
    }

    /// What a message of this type, one of the kind's, and these flags is to do.
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

/// What a message is for of which no more is known than its type and flags: `delete chain`.
#[cold]
pub(super) fn name_of_operation(message: u8, flags: u16) -> String {
    match Kind::of(message) {
        Some(kind) => format!("{} {}", kind.verb(message, flags), kind.messages.kind),
        None => format!("send a message of type {message}"),
    }
}

/// Describes the operation in this message.
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
        .filter_map(Name::keep)
        .map(BString::from)
        .collect::<Vec<_>>();
    let handle = noted(kind.known, Note::handle)
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

/// Both, for the fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) fn explained(message: &Message<'_>, offset: u32) -> (Operation, Option<String>) {
    (describe(0, message), attribute_at(message, offset))
}

/// Names the attribute that starts `offset` bytes into the message: its path from the outermost
/// one inwards, for instance `NFTA_RULE_EXPRESSIONS, expression 2 (cmp), NFTA_CMP_DATA`.
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

/// Names an attribute of what a stateful object holds.
fn in_object(message: &[u8], data: &Attribute<'_>, at: usize, wanted: usize) -> Option<String> {
    let object_type = Attributes::new(message)
        .find(NFTA_OBJ_TYPE)
        .and_then(ObjectType::decode)?;
    let (inner, _) = covering(data.payload, at + 4, wanted)?;
    let name = name_of(ObjectData::attribute_names(object_type), inner.kind);
    Some(format!(", {name}"))
}

/// Names an element, by its number in the message and its key, and its attribute.
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

/// Names an expression, by its number in the rule, and its attribute.
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

/// The attribute of `bytes`, which start at `base`, that the byte at `wanted` belongs to, and
/// where it starts.
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

/// What most often lies behind an error, and what can be done about it. `attribute` is the one that the
/// kernel points at, as a path of names.
pub(super) fn hint(
    errno: Errno,
    operation: Option<&Operation>,
    attribute: Option<&str>,
) -> Option<&'static str> {
    let points_at = |name| attribute.is_some_and(|path| path.starts_with(name));
    let kind = operation.map(|operation| operation.kind);
    let verb = operation.map(|operation| operation.verb);
    // A stateful object is called by its type.
    let is_object = |kind: &str| kind == OBJECT || ObjectType::from_name(kind).is_some();
    Some(match errno.number() {
        libc::ENOENT => match (verb, kind) {
            (_, Some("flowtable")) if verb != Some("delete") => {
                "its table or a device does not exist, or the kernel is built without flowtables \
                 (CONFIG_NF_FLOW_TABLE)"
            }
            (Some("delete"), Some("element")) => {
                "its set does not exist, or an element is not in it (any more); `destroy` deletes \
                 only those that are there (Linux 6.3)"
            }
            (Some("delete" | "replace" | "flush"), _) => {
                "it does not exist (any more); `destroy` deletes only what is there (Linux 6.3)"
            }
            (_, Some("rule")) if points_at("NFTA_RULE_TABLE") => {
                "the table does not exist; it must stand before the rule in the transaction"
            }
            (_, Some("rule")) if points_at("NFTA_RULE_CHAIN") => {
                "the table has no such chain; it must stand before the rule in the transaction"
            }
            (_, Some("rule")) if points_at("NFTA_RULE_EXPRESSIONS") => {
                "what the expression refers to does not exist: a chain that it jumps to, a set, an \
                 object, an extension; it must stand before the rule in the transaction. Or the kernel \
                 lacks the expression"
            }
            (_, Some("rule")) => {
                "its table, chain, a chain that it jumps to, a set that it uses, or an expression or \
                 extension of it does not exist here; what a rule refers to must stand before it in \
                 the transaction"
            }
            (_, Some("chain")) if points_at("NFTA_CHAIN_TYPE") => {
                "the kernel has no chains of this type: filter, nat and route are there, if it is built \
                 with them"
            }
            (_, Some("chain")) => {
                "its table does not exist, or the kernel lacks this chain type or device"
            }
            (_, Some("set")) => "its table does not exist, or the kernel lacks an expression of it",
            (_, Some("element")) => {
                "its set, a chain that it jumps to, or the object that it names does not exist; what \
                 an element refers to must stand before it in the transaction"
            }
            (_, Some(kind)) if is_object(kind) => {
                "its table does not exist, the kernel is built without this type of object, or has \
                 no helper of this name"
            }
            _ => "something that it refers to does not exist",
        },
        libc::EEXIST => match verb {
            _ if kind == Some("element") => {
                "an element with this key is there already, with other data if it was added, or \
                 overlaps a range that is there; the attribute names it"
            }
            Some("create") => "it exists already; `add` takes what is there",
            _ if kind == Some("set") => {
                "a set of this name exists already, with keys, data or flags of another kind"
            }
            _ => "something of this name exists already, and is of another kind",
        },
        libc::EBUSY if kind == Some("rule") && verb != Some("delete") => {
            "an anonymous set is used by one rule, once: this one is used already, or two sets of the \
             transaction have the same number (NFTA_SET_ID)"
        }
        libc::EBUSY => {
            "it is still in use: rules or map elements refer to it; delete those first, in the same \
             transaction before it, or in one of its own (a kernel that lacks the corrections of Linux 6.4 counts \
             the elements of a map that goes until the transaction is over)"
        }
        libc::EPERM if kind == Some("rule") && verb != Some("delete") => {
            "CAP_NET_ADMIN in the namespace's user namespace is needed, and by some kernels (7.2) in the \
             first one for a rule that writes into packets; a table that another process owns is closed \
             to all others"
        }
        libc::EPERM => {
            "CAP_NET_ADMIN in the namespace's user namespace is needed; a table that another \
             process owns is closed to all others"
        }
        libc::EMSGSIZE => "the message is larger than the socket's send buffer",
        libc::EOPNOTSUPP if kind == Some("set") => {
            "the kernel has no implementation of sets with these flags, lengths and fields"
        }
        libc::EOPNOTSUPP if kind.is_some_and(is_object) => {
            "the kernel does not do this here: built without this type of object, or not for this \
             family or protocol"
        }
        libc::EOPNOTSUPP if kind == Some("chain") => {
            "the kernel does not do this here: the family has no hook of this number, chains of this type \
             do not go to this hook or with this priority, or the flag goes with no such chain"
        }
        libc::EOPNOTSUPP if kind == Some("rule") => {
            "the kernel does not do this here: an expression that does not go together with the family or \
             with the chains that lead to it, `dynset` on a set whose flags do not allow it (timeout, \
             interval), or (7.2) a `byteorder` of less than a unit of its size"
        }
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
            None => {
                "an anonymous set or chain is used by no rule of the transaction, or a rule is not \
                 allowed where the hooks lead to it"
            }
            Some("add" | "create") if kind == Some("set") => {
                "an attribute is missing or not as the kernel wants it: the length of the key, fields \
                 that do not add up to it, flags that do not go together; or it is an anonymous set \
                 that no rule of the transaction uses"
            }
            Some("add" | "create") if kind == Some("element") => {
                "an attribute is missing or not as the kernel wants it: a key or data of another \
                 length than the set's, data in a set or none in a map, a timeout where the set has \
                 none, expressions that are not the set's"
            }
            Some("add" | "insert" | "replace") if kind == Some("rule") => {
                "an attribute is missing or not as the kernel wants it; before Linux 6.5 a look-up in a \
                 map must take the value"
            }
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
        libc::ENFILE if kind == Some("element") => {
            "the set is full: it holds as many elements as it was made for (its size)"
        }
        libc::ENOSPC => "there is no room left: a set that is full, or a hook with too many chains",
        libc::ENFILE | libc::EOVERFLOW => "a number of objects or references reached its limit",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
