//! Evaluates nf_tables expressions.
//!
//! | expressions | module |
//! |---|---|
//! | loads and writes of packet data | `loads.rs` |
//! | bitwise operations, comparisons | `bits.rs`, `compare.rs` |
//! | number generators and hashes | `numbers.rs` |
//! | rates, quotas and other bounds | `bounds.rs` |
//! | sets and objects | `lookup.rs` |
//! | statements | `statements.rs` |
//! | x_tables extensions | `../xt/` |

mod bits;
mod bounds;
mod compare;
mod loads;
mod lookup;
mod numbers;
mod statements;
#[cfg(test)]
mod tests;

pub(super) use bits::{masked, shifted};
pub(super) use bounds::Bound;
pub(super) use loads::{ct_order, meta_order};

use std::iter::Enumerate;

use bstr::ByteSlice;

use super::path_state::{Effect, PathState, Undetermined};
use super::registers::{Order, Registers};
use super::rules::TableOfRules;
use super::sets::SetChange;
use super::steps::{Action, StateOwner};
use super::value::Value;
use super::xt as extensions;
use chainwright::nft::expr::{
    Data, ExpressionIter, ExpressionRef, ExpressionView, Register, Verdict,
};

/// The continuation of a rule after an expression.
#[derive(Debug)]
pub(super) enum Continuation<'s> {
    /// With the next expression.
    On,
    /// No match: the rule ends.
    Break,
    /// Ends with this verdict.
    Verdict(Verdict<'s>),
    /// Ends with this effect.
    Effect(Effect),
}

impl Continuation<'_> {
    /// Continues if `is` is true; otherwise the rule ends without a match.
    const fn on_if(is: bool) -> Self {
        match is {
            true => Self::On,
            false => Self::Break,
        }
    }
}

/// State that expressions read and write.
pub(super) struct Evaluator<'b, 's> {
    pub(super) path_state: &'b mut PathState,
    pub(super) registers: &'b mut Registers,
    pub(super) changes: &'b mut Vec<SetChange>,
    /// Owners of the state that the expression changes, with whether the packet exceeds a bound. They are discarded if
    /// the branch splits.
    pub(super) state_owners: &'b mut Vec<(StateOwner, Option<bool>)>,
    pub(super) table: &'b TableOfRules<'s>,
    /// Expressions after the current one, with their indexes.
    pub(super) rest: Enumerate<ExpressionIter<'s>>,
}

/// Returns a required attribute.
fn needed<T>(attribute: Option<T>) -> Result<T, Undetermined> {
    attribute.ok_or_else(|| Undetermined::unknown("missing or malformed attribute"))
}

impl<'s> Evaluator<'_, 's> {
    /// Evaluates an expression.
    ///
    /// # Errors
    /// The branch splits, or the expression cannot be evaluated.
    pub(super) fn evaluate(
        &mut self,
        expression: &ExpressionRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let Ok(view) = expression.view() else {
            return Err(Undetermined::unknown("malformed expression"));
        };
        match view {
            ExpressionView::Payload(payload) => self.payload(&payload),
            ExpressionView::Exthdr(exthdr) => self.exthdr(&exthdr),
            ExpressionView::Meta(meta) => self.meta(&meta),
            ExpressionView::Ct(ct) => self.ct(&ct),
            ExpressionView::Fib(fib) => self.fib(&fib),
            ExpressionView::Rt(rt) => self.route(&rt),
            ExpressionView::Socket(socket) => self.socket(&socket),
            ExpressionView::Osf(osf) => self.osf(&osf),
            ExpressionView::Tunnel(tunnel) => self.tunnel(&tunnel),
            ExpressionView::Xfrm(xfrm) => self.xfrm(&xfrm),
            ExpressionView::Inner(inner) => self.inner(&inner),

            ExpressionView::Bitwise(bitwise) => self.bitwise(&bitwise),
            ExpressionView::Byteorder(byteorder) => self.byteorder(&byteorder),
            ExpressionView::Cmp(cmp) => self.cmp(&cmp),
            ExpressionView::Range(range) => self.range(&range),
            ExpressionView::Numgen(numgen) => self.numgen(&numgen),
            ExpressionView::Hash(hash) => self.hash(&hash),

            ExpressionView::Immediate(immediate) => {
                let register = needed(immediate.dreg())?;
                self.store_data(register, &needed(immediate.data())?)
            }
            ExpressionView::Counter(_) | ExpressionView::Last(_) => {
                self.state_owners.push((StateOwner::Rule, None));
                Ok(Continuation::On)
            }
            ExpressionView::Limit(_) | ExpressionView::Quota(_) | ExpressionView::Connlimit(_) => {
                self.bound(expression)
            }
            ExpressionView::Lookup(lookup) => self.lookup(&lookup),
            ExpressionView::Dynset(dynset) => self.dynset(&dynset),
            ExpressionView::Objref(objref) => self.objref(&objref),

            ExpressionView::Nat(nat) => self.nat(&nat),
            ExpressionView::Masq(masq) => self.masq(&masq),
            ExpressionView::Redir(redir) => self.redir(&redir),
            ExpressionView::Reject(reject) => self.reject(&reject),
            ExpressionView::Log(log) => {
                let prefix = log.prefix().unwrap_or_default();
                self.path_state
                    .record_action(Action::Log(prefix.to_owned()));
                Ok(Continuation::On)
            }
            ExpressionView::Queue(queue) => self.queue(&queue),
            ExpressionView::Notrack(_) => {
                self.path_state.do_not_track();
                Ok(Continuation::On)
            }
            ExpressionView::Tproxy(tproxy) => self.tproxy(&tproxy),
            ExpressionView::Dup(dup) => self.dup(&dup),
            ExpressionView::Fwd(_) => Ok(Continuation::Effect(Effect::Stolen(
                "sent out through another device immediately".to_owned(),
            ))),
            ExpressionView::FlowOffload(offload) => {
                let name = offload.table_name().unwrap_or_default();
                self.path_state
                    .record_action(Action::Other(format!("its flow is offloaded to {name}")));
                Ok(Continuation::On)
            }
            ExpressionView::Synproxy(_) => self.synproxy(),

            ExpressionView::Match(found) => {
                let revision = found.revision().unwrap_or_default() as u8;
                let (name, info) = (needed(found.name())?, found.info().unwrap_or_default());
                let is = extensions::read_match(self.path_state, name.as_bytes(), revision, info)?;
                Ok(Continuation::on_if(is))
            }
            ExpressionView::Target(found) => {
                let revision = found.revision().unwrap_or_default() as u8;
                let (name, info) = (needed(found.name())?, found.info().unwrap_or_default());
                let effect =
                    extensions::read_target(self.path_state, name.as_bytes(), revision, info)?;
                Ok(match effect {
                    Effect::Continue => Continuation::On,
                    effect => Continuation::Effect(effect),
                })
            }
            ExpressionView::Opaque(opaque) => Err(Undetermined::unknown(format!(
                "unsupported expression `{}`",
                opaque.name
            ))),
            _ => Err(Undetermined::unknown("unsupported expression")),
        }
    }

    fn store(
        &mut self,
        register: Register,
        value: &Value,
        order: Order,
    ) -> Result<Continuation<'s>, Undetermined> {
        needed(self.registers.store(register, value, order))?;
        Ok(Continuation::On)
    }

    fn store_data(
        &mut self,
        register: Register,
        data: &Data<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        match data {
            Data::Value(bytes) => {
                needed(self.registers.store_bytes(register, bytes))?;
                Ok(Continuation::On)
            }
            Data::Verdict(verdict) => Ok(match verdict {
                Verdict::Continue => Continuation::On,
                Verdict::Break => Continuation::Break,
                verdict => Continuation::Verdict(verdict.clone()),
            }),
            Data::Opaque(_) => Err(Undetermined::unknown("a value has an unsupported form")),
        }
    }
}
