//! Converts listed expressions into the form that the kernel accepts.
//!
//! A listed expression can be sent again unchanged, with these exceptions (observed on Linux 6.18, which returns
//! `EINVAL`):
//!
//! | expression | listed with | see |
//! |---|---|---|
//! | `exthdr` that writes or removes | attributes of one that reads | [`Exthdr::into_request`] |
//! | `dynset` with several expressions | no `NFT_DYNSET_F_EXPR` | [`Dynset::into_request`] |
//! | `dynset` without a timeout | a timeout of 0 (`EOPNOTSUPP`) | [`Dynset::into_request`] |
//! | a used-up `quota` | `NFT_QUOTA_F_DEPLETED` | [`Quota::into_request`] |
//! | `osf` without a version | empty flags | [`Osf::into_request`] |

use std::cmp::Ordering;

use super::{
    Decoded, Dynset, Expression, ExpressionRef, Expressions, Exthdr, NestedExpression, Osf, Quota,
};

impl<'a> ExpressionRef<'a> {
    /// Returns the listed expression in the form that the kernel accepts; `None` if the listed form is accepted.
    /// Malformed expressions are not converted.
    #[must_use]
    pub fn to_request(&self) -> Option<Decoded<'a>> {
        let name: &[u8] = self.name;
        let names = [Exthdr::NAME, Dynset::NAME, Quota::NAME, Osf::NAME];
        if !names.iter().any(|known| known.as_bytes() == name) {
            return None;
        }
        let listed = self.decode().ok()?;
        let request = match listed.clone() {
            Decoded::Exthdr(exthdr) => exthdr.into_request().into(),
            Decoded::Quota(quota) => quota.into_request().into(),
            Decoded::Osf(osf) => osf.into_request().into(),
            Decoded::Dynset(mut dynset) => {
                if let Some(list) = dynset
                    .expressions
                    .as_ref()
                    .and_then(Expressions::to_request)
                {
                    dynset.expressions = Some(list);
                }
                let one = dynset.expr.as_ref().and_then(|expr| {
                    let request = expr.get().ok()?.to_request()?;
                    Some(NestedExpression::of_decoded(&request))
                });
                dynset.expr = one.or(dynset.expr);
                dynset.into_request().into()
            }
            _ => return None,
        };
        (request != listed).then_some(request)
    }
}

impl Expressions<'_> {
    /// Returns the listed expressions in the form that the kernel accepts; `None` if the listed form is accepted.
    #[must_use]
    pub fn to_request(&self) -> Option<Expressions<'static>> {
        let expressions = || self.iter().map_while(Result::ok).enumerate();
        // Converts each only once: nested expressions make it recursive.
        let (first, decoded) = expressions()
            .find_map(|(number, expression)| Some((number, expression.to_request()?)))?;
        let mut first_decoded = Some(decoded);
        let mut request = Expressions::new();
        for (number, expression) in expressions() {
            let decoded = match number.cmp(&first) {
                Ordering::Less => None,
                Ordering::Equal => first_decoded.take(),
                Ordering::Greater => expression.to_request(),
            };
            match decoded {
                Some(decoded) => request.push_decoded(&decoded),
                None => request.push_raw(&expression),
            };
        }
        Some(request)
    }
}
