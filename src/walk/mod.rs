//! Where a packet goes: a walk through rulesets of both backends, from what is known of a packet.
//!
//! | step | where |
//! |---|---|
//! | what is known of the packet and of the machine | `packet.rs` |
//! | what rules can ask for | `field.rs` |
//! | what a number that is not known may still be | `domain.rs` |
//! | a branch of the walk; questions, and what splits it | `flow.rs` |
//! | bytes of headers as fields; connections; routes and addresses; translations | `headers.rs`, `ct.rs`, `route.rs`, `nat.rs` |
//! | the chains of each hook | `rules.rs` |
//! | hook by hook, chain by chain, one branch after the other | `engine.rs` |
//! | nf_tables' expressions, registers and sets | `nft.rs`, `registers.rs`, `sets.rs` |
//! | entries of legacy tables | `legacy.rs` |
//! | x_tables' matches and targets | `xt/` |
//! | what came of it | `steps.rs` |
//! | whose chains are | `owner.rs` |
//! | packets that two rulesets treat differently | `compare.rs` |
//! | which chains lead to which, without a packet | `graph/` |

mod compare;
mod ct;
mod domain;
mod engine;
mod field;
mod flow;
pub mod graph;
mod headers;
mod legacy;
mod nat;
mod nft;
mod owner;
mod packet;
mod registers;
mod route;
mod rules;
mod sets;
mod steps;
mod xt;

pub use compare::{Comparison, Difference, Values, compare};
pub use field::{Field, PacketOption, TupleField};
pub use owner::owner;
pub use packet::{Connection, Direction, Hook, Interface, Node, Packet, State, Tuple};
pub use rules::{Options, Rules};
pub use steps::{Action, Arrived, End, HookVerdict, Outcome, Part, RuleAt, Step, Verdict, Walk};
