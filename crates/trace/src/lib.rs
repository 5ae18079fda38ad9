//! Where a packet goes: a walk through rulesets of both backends, from what is known of a packet.
//!
//! | step | where |
//! |---|---|
//! | what is known of the packet and of the machine | `packet.rs`; as fields `known.rs` |
//! | what rules can ask for | `field.rs` |
//! | numbers bit by bit; what one that is not known may still be | `value.rs`, `unknown.rs`, `domain.rs` |
//! | a branch of the walk; questions, and what splits it | `flow.rs` |
//! | bytes of headers as fields; what is kept beside a packet | `headers.rs`, `meta.rs` |
//! | connections; routes and addresses; translations | `ct.rs`, `route.rs`, `nat.rs` |
//! | the chains of each hook | `rules.rs` |
//! | hook by hook, chain by chain, one branch after the other | `engine.rs`, `frame.rs`, `trail.rs` |
//! | nf_tables' expressions, registers and sets | `nft/`, `registers.rs`, `sets.rs` |
//! | entries of legacy tables | `legacy.rs` |
//! | x_tables' matches and targets | `xt/` |
//! | what is answered to a packet that is rejected | `reject.rs` |
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
mod frame;
pub mod graph;
mod headers;
mod known;
mod legacy;
mod meta;
mod nat;
mod nft;
mod owner;
mod packet;
mod ranges;
mod registers;
mod reject;
mod route;
mod rules;
mod sets;
mod steps;
mod trail;
mod unknown;
mod value;
mod xt;

pub use compare::{Comparison, Difference, Values, compare};
pub use field::{Field, PacketOption, TupleField};
pub use owner::owner;
pub use packet::{Connection, Direction, Hook, Interface, Node, Packet, State, Tuple};
pub use rules::{Options, Rules};
pub use steps::{Action, Arrived, End, HookVerdict, Outcome, Part, RuleAt, Step, Verdict, Walk};
