//! Evaluates expressions the way the kernel does when a rule or set is added.
//!
//! [`evaluate_list`] and [`evaluate_one`] take the expressions in a request, and return Linux 6.18's listing of them,
//! or the error number of its refusal. [`validate`] checks whether packets of a base chain may reach an accepted
//! expression.
//!
//! Like the kernel, this module processes a rule's expressions twice. First it checks the attributes of all of them
//! ([`KernelExpression::select`]: the length of each attribute's type, the values that its policy allows, the variant of the
//! expression for these attributes); then it initializes one after the other ([`KernelExpression::init`]).
//!
//! The module does not check conditions that only a kernel can check:
//!
//! - `match` and `target`: whether the extension exists, the length of its data, and whether the extension accepts it;
//! - `socket`: whether control groups are as deep as requested;
//! - the size of a rule: the kernel refuses rules whose expressions take 4096 bytes of its memory;
//! - the kernel's modules: all expressions exist. `queue`, `flow_offload`, and `reject` of the family bridge were not
//!   compared, because the reference kernel lacks them; DCCP in `exthdr` is refused, as on that kernel;
//! - the kernel's tick: times are listed as given, while the kernel rounds them down to whole ticks (4 ms);
//! - `last` set without a time: the kernel lists its uptime, this module 0;
//! - the generated seed of `hash`, and the state of `numgen`.
//!
//! Of a repeated attribute the last one counts; the kernel also checks the length and the limits of the first.
//!
//! Sources for this module and the expressions' files: the kernel's `net/netfilter/nft_*.c`, and Linux 6.18, with which
//! the tests compare random expressions, those of rulesets that real tools wrote, and all kinds of base chains.

use std::borrow::Cow;

use bstr::{BStr, ByteSlice};
use chainwright_sys::nf_tables::{
    NFTA_DATA_VERDICT, NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_LIST_ELEM,
};

use chainwright::Errno;
use chainwright::netlink::{Attributes, Malformed, MessageWriter};
use chainwright::nft::Family;
use chainwright::nft::Field;
use chainwright::nft::expr::{
    Data, Dup, Expression, ExpressionRef, ExpressionView, Fib, Fwd, Masq, Redir, Reject, Tunnel,
};

mod around;
mod base;
mod context;
mod errors;

mod bitwise;
mod byteorder;
mod cmp;
mod connlimit;
mod counter;
mod ct;
mod dup;
mod dynset;
mod exthdr;
mod fib;
mod flow_offload;
mod fwd;
mod hash;
mod immediate;
mod inner;
mod last;
mod limit;
mod log;
mod lookup;
mod masq;
#[path = "match.rs"]
mod match_;
mod meta;
mod nat;
mod notrack;
mod numgen;
mod objref;
mod osf;
mod payload;
mod queue;
mod quota;
mod range;
mod redir;
mod reject;
mod rt;
mod socket;
mod synproxy;
mod target;
mod tproxy;
mod tunnel;
mod xfrm;

#[cfg(all(test, target_endian = "little"))]
mod tests;

pub(crate) use around::{ChainInfo, Reference, RulesetView, SetInfo};
pub(crate) use base::Base;
use context::Context;
use errors::{EINVAL, ENOENT, ERANGE};

/// Maximum number of expressions of a rule (`NFT_RULE_MAXEXPRS`).
const MAX_EXPRESSIONS: usize = 128;
/// Maximum length of an expression's name.
const MAX_NAME_LENGTH: usize = 42;

/// The kernel's treatment of one kind of expression; implemented by its view.
trait KernelExpression<'a> {
    /// The expression as listed.
    type Listed: Expression;

    /// Checks the attributes independently of the ruleset.
    ///
    /// # Errors
    /// The kernel's error number.
    fn select(&self, _family: Family) -> Result<(), Errno> {
        Ok(())
    }

    /// Initializes the expression.
    ///
    /// # Errors
    /// The kernel's error number.
    fn init(&self, context: &mut Context<'_>) -> Result<Self::Listed, Errno>;

    /// Checks whether packets of this base chain may reach the expression.
    ///
    /// # Errors
    /// The kernel's error number.
    fn validate(&self, _family: Family, _base: &Base<'_>) -> Result<(), Errno> {
        Ok(())
    }
}

/// Accepted expressions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Evaluated {
    /// The expressions as listed.
    pub(crate) listed: Vec<u8>,
    /// The references; a repeated reference appears repeatedly.
    pub(crate) references: Vec<Reference>,
}

/// Evaluates the payload of `NFTA_RULE_EXPRESSIONS`; `listed` is such a payload, too.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn evaluate_list(list: &[u8], around: &mut dyn RulesetView) -> Result<Evaluated, Errno> {
    let family = around.family();
    let mut elements = Vec::new();
    for attribute in Attributes::new(list).map_while(Result::ok) {
        if attribute.kind != NFTA_LIST_ELEM || elements.len() == MAX_EXPRESSIONS {
            return Err(EINVAL);
        }
        elements.push(Element::parse(attribute.payload, family)?);
    }
    let mut context = Context::new(around);
    let mut listed = Vec::new();
    for element in &elements {
        let mut writer = MessageWriter::bare(&mut listed).without_nested_flag();
        let mut result = Ok(());
        writer.nested(NFTA_LIST_ELEM, |writer| {
            result = element.init(&mut context, writer);
        });
        result?;
        writer.finish_bare().map_err(|_| EINVAL)?;
    }
    Ok(Evaluated {
        listed,
        references: context.references,
    })
}

/// Evaluates one expression: the payload of `NFTA_LIST_ELEM`, `NFTA_SET_EXPR` or a similar attribute; `listed` is such
/// a payload, too.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn evaluate_one(
    element: &[u8],
    around: &mut dyn RulesetView,
) -> Result<Evaluated, Errno> {
    let mut context = Context::new(around);
    Ok(Evaluated {
        listed: evaluate_nested(element, &mut context)?,
        references: context.references,
    })
}

/// Evaluates the verdict of an element: the payload of `NFTA_SET_ELEM_DATA`; `listed` is such a payload, too.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn evaluate_verdict(
    data: &[u8],
    around: &mut dyn RulesetView,
) -> Result<Evaluated, Errno> {
    let mut context = Context::new(around);
    context.in_element = true;
    let verdict = context.verdict(&Data::Opaque(data.into()))?;
    let mut listed = Vec::new();
    let mut writer = MessageWriter::bare(&mut listed).without_nested_flag();
    verdict.encode(&mut writer, NFTA_DATA_VERDICT);
    writer.finish_bare().map_err(|_| EINVAL)?;
    Ok(Evaluated {
        listed,
        references: context.references,
    })
}

/// Checks whether packets of a base chain may reach a listed expression: the payload of `NFTA_LIST_ELEM`.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn validate(element: &[u8], family: Family, base: Base<'_>) -> Result<(), Errno> {
    let element = Element::of(element)?;
    each!(element.view()?, expression => KernelExpression::validate(&expression, family, &base))
}

/// Evaluates an expression inside of another one.
fn evaluate_nested(element: &[u8], context: &mut Context<'_>) -> Result<Vec<u8>, Errno> {
    Element::parse(element, context.family())?.taken(context)
}

/// An expression as sent.
struct Element<'a> {
    name: &'a BStr,
    /// The attributes, all valid for their types.
    attributes: Cow<'a, [u8]>,
}

impl<'a> Element<'a> {
    /// Checks the attributes independently of the ruleset.
    fn parse(element: &'a [u8], family: Family) -> Result<Self, Errno> {
        let (name, _) = name_and_attributes(element)?;
        if !exists(name, family) {
            return Err(ENOENT);
        }
        let this = Self::of(element)?;
        each!(this.view()?, expression => KernelExpression::select(&expression, family))?;
        Ok(this)
    }

    fn of(element: &'a [u8]) -> Result<Self, Errno> {
        let (name, attributes) = name_and_attributes(element)?;
        let mut attributes = Cow::Borrowed(well_formed(attributes));
        while let Err(malformed) = ExpressionRef::new(name, &attributes).view() {
            attributes = Cow::Owned(with_placeholder(&attributes, &malformed)?);
        }
        Ok(Self { name, attributes })
    }

    fn view(&self) -> Result<ExpressionView<'_>, Errno> {
        let expression = ExpressionRef::new(self.name, &self.attributes);
        expression.view().map_err(|_| ERANGE)
    }

    /// Returns the expression as listed inside of another one.
    fn taken(&self, context: &mut Context<'_>) -> Result<Vec<u8>, Errno> {
        let mut listed = Vec::new();
        let mut writer = MessageWriter::bare(&mut listed).without_nested_flag();
        self.init(context, &mut writer)?;
        writer.finish_bare().map_err(|_| EINVAL)?;
        Ok(listed)
    }

    /// Initializes the expression and writes it as listed.
    fn init(&self, context: &mut Context<'_>, writer: &mut MessageWriter<'_>) -> Result<(), Errno> {
        each!(self.view()?, expression => {
            let listed = KernelExpression::init(&expression, context)?;
            writer.string(NFTA_EXPR_NAME, self.name.as_bytes());
            if listed.has_data() {
                writer.nested(NFTA_EXPR_DATA, |writer| listed.write_listed(writer));
            }
            Ok(())
        })
    }
}

/// Returns an expression's name and its attributes, in any order.
fn name_and_attributes(element: &[u8]) -> Result<(&BStr, &[u8]), Errno> {
    let (mut name, mut data): (Option<&BStr>, &[u8]) = (None, &[]);
    for attribute in Attributes::new(element).map_while(Result::ok) {
        match attribute.kind {
            NFTA_EXPR_NAME => {
                let payload = attribute.payload;
                name = chainwright::nft::Name::parse_payload(payload)
                    .filter(|name| !payload.is_empty() && name.len() <= MAX_NAME_LENGTH);
                if name.is_none() {
                    return Err(ERANGE);
                }
            }
            NFTA_EXPR_DATA => data = attribute.payload,
            _ => {}
        }
    }
    if matches!(data.len(), 1..4) {
        return Err(ERANGE);
    }
    Ok((name.filter(|name| !name.is_empty()).ok_or(EINVAL)?, data))
}

/// Returns the attributes before the first malformed one: the kernel ignores the rest.
fn well_formed(attributes: &[u8]) -> &[u8] {
    let mut whole = Attributes::new(attributes);
    let mut end = 0;
    while let Some(Ok(_)) = whole.next() {
        end = whole.offset();
    }
    &attributes[..end]
}

/// Replaces a malformed nested attribute, which the kernel parses only later, with an empty one, which it refuses with
/// the same error.
fn with_placeholder(attributes: &[u8], malformed: &Malformed) -> Result<Vec<u8>, Errno> {
    let (before, rest) = attributes.split_at(malformed.offset.min(attributes.len()));
    let Some(Ok(attribute)) = Attributes::new(rest).next() else {
        return Err(ERANGE);
    };
    let behind = attribute.raw.len().next_multiple_of(4).min(rest.len());
    let mut with_placeholder = before.to_vec();
    let mut writer = MessageWriter::bare(&mut with_placeholder);
    match malformed.what {
        // The kernel ignores it.
        "NFTA_HASH_SET_ID" | "NFTA_NG_SET_ID" => {}
        _ if matches!(attribute.payload.len(), 1..4) => return Err(ERANGE),
        what if what.ends_with("_EXPR") => {
            writer.nested(attribute.kind, |writer| {
                _ = writer.string(NFTA_EXPR_NAME, b"")
            });
        }
        what if ["_DATA", "_MASK", "_XOR"]
            .iter()
            .any(|end| what.ends_with(end)) =>
        {
            let whole = well_formed(attribute.payload);
            writer.nested(attribute.kind, |writer| {
                match whole {
                    [] => writer.bytes(0, &[]),
                    _ => writer.encoded(whole),
                };
            });
        }
        _ => return Err(ERANGE),
    }
    writer.finish_bare().map_err(|_| ERANGE)?;
    with_placeholder.extend_from_slice(&rest[behind..]);
    Ok(with_placeholder)
}

/// Returns `true` if the kernel has an expression in this family; all families have those without a case.
fn exists(name: &BStr, family: Family) -> bool {
    let is_ip = matches!(family, Family::IP | Family::IP6 | Family::INET);
    match name.to_str().unwrap_or_default() {
        Masq::NAME | Redir::NAME => is_ip,
        Fib::NAME => is_ip || family == Family::NETDEV,
        Reject::NAME => is_ip || matches!(family, Family::NETDEV | Family::BRIDGE),
        Dup::NAME => matches!(family, Family::IP | Family::IP6 | Family::NETDEV),
        Fwd::NAME | Tunnel::NAME => family == Family::NETDEV,
        _ => true,
    }
}

/// Runs the body for the typed view of any kind of expression; the kernel doesn't have expressions without a typed
/// form.
macro_rules! each {
    ($view:expr, $expression:ident => $body:expr) => {
        each!($view, $expression => $body,
            Bitwise Byteorder Cmp Connlimit Counter Ct Dup Dynset Exthdr Fib FlowOffload Fwd Hash
            Immediate Inner Last Limit Log Lookup Masq Match Meta Nat Notrack Numgen Objref Osf
            Payload Queue Quota Range Redir Reject Rt Socket Synproxy Target Tproxy Tunnel Xfrm)
    };
    ($view:expr, $expression:ident => $body:expr, $($Variant:ident)*) => {
        match $view {
            $(ExpressionView::$Variant($expression) => $body,)*
            // `Opaque`, and what a later version of the library knows.
            _ => Err(ENOENT),
        }
    };
}
use each;
