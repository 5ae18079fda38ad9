//! Every expression is preserved by its typed form.

use chainwright::netlink::Attributes;
use chainwright::nft::expr::{ExpressionRef, Expressions};

use super::*;

/// The attributes' types.
fn kinds_of(expression: &ExpressionRef<'_>) -> Vec<u16> {
    let attributes = Attributes::new(expression.attributes);
    let mut kinds: Vec<_> = attributes.map(|a| a.unwrap().kind).collect();
    kinds.sort_unstable();
    kinds
}

/// Checks that every expression is read as its type, and that the written form is read as the same
/// and contains every attribute that the kernel sent.
fn typed_forms_are_complete(sandbox: &Sandbox) -> HashMap<String, usize> {
    let mut kinds = HashMap::new();
    let mut nft = connect(sandbox);
    let listing = nft.rules(Scope::all()).unwrap();
    listing
        .for_each(|rule| {
            let mut list = Expressions::new();
            let mut raw = Expressions::new();
            let (mut decoded, mut kinds_sent) = (Vec::new(), Vec::new());
            for expression in rule.expressions().unwrap() {
                let expression = expression.unwrap();
                let typed = expression.decode().unwrap();
                let kind = match typed {
                    Decoded::Opaque(_) => format!("{}", expression.name),
                    _ => expression.name.to_string(),
                };
                *kinds.entry(kind).or_insert(0) += 1;
                list.push_decoded(&typed);
                raw.push_raw(&expression);
                decoded.push(typed);
                kinds_sent.push(kinds_of(&expression));
            }
            let kinds_written = list.iter().map(|e| kinds_of(&e.unwrap()));
            assert!(kinds_written.eq(kinds_sent), "{rule:?}");
            let again = list.iter().map(|e| e.unwrap().decode().unwrap());
            // An opaque expression consists of its bytes, so these are compared too.
            assert!(again.eq(decoded), "{rule:?}");
            // Raw expressions are appended unchanged.
            assert_eq!(
                Some(raw.as_bytes()),
                rule.attributes().find(NFTA_RULE_EXPRESSIONS)
            );
        })
        .unwrap();
    kinds
}

/// `NFTA_RULE_EXPRESSIONS` of `linux/netfilter/nf_tables.h`.
const NFTA_RULE_EXPRESSIONS: u16 = 4;

#[test]
fn every_expression_of_the_rulesets_survives_its_typed_form() {
    let (sandbox, _) = kube_proxy();
    let kinds = typed_forms_are_complete(&sandbox);
    for kind in [
        "match",
        "target",
        "counter",
        "immediate",
        "cmp",
        "bitwise",
        "meta",
        "payload",
    ] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }

    let sandbox = crate::common::sandbox();
    let tools = Tools::new(&sandbox);
    tools.load_nft(KUBE_PROXY_NFTABLES);
    tools.load_nft(EXPRESSIONS);
    let kinds = typed_forms_are_complete(&sandbox);
    for kind in [
        "bitwise",
        "cmp",
        "counter",
        "ct",
        "immediate",
        "limit",
        "log",
        "lookup",
        "masq",
        "meta",
        "nat",
        "payload",
        "redir",
        "reject",
        "fib",
        "numgen",
        "dynset",
        "exthdr",
        "hash",
        "range",
    ] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
}
