//! Traces packets through rulesets of both backends, from a possibly incomplete packet description.
//!
//! | topic | module |
//! |---|---|
//! | packet and machine descriptions | `packet.rs`; as fields `convert.rs` |
//! | fields that rules can read | `field.rs` |
//! | partially known numbers | `value.rs`, `symbolic.rs`, `value_set.rs` |
//! | packet state in a branch; queries and splits | `path_state.rs` |
//! | header bytes as fields; metadata | `headers.rs`, `meta.rs` |
//! | connections; routes and addresses; NAT | `ct.rs`, `route.rs`, `nat.rs` |
//! | chains of each hook | `rules.rs` |
//! | engine: hooks, chains, branches | `engine.rs`, `chain_position.rs`, `persistent_list.rs` |
//! | nf_tables expressions, registers and sets | `nft/`, `registers.rs`, `sets.rs` |
//! | entries of legacy tables | `legacy.rs` |
//! | x_tables matches and targets | `xt/` |
//! | replies to rejected packets | `reject.rs` |
//! | results | `steps.rs` |
//! | owners of chains | `owner.rs` |
//! | packets that two rulesets treat differently | `compare/` |
//! | rules, chains and sets without effect | `check/` |
//! | rules in English, with the feature `text` | `explain/` |
//! | jump graphs of chains, without a packet | `graph/` |

mod chain_position;
pub mod check;
mod compare;
mod convert;
mod ct;
mod engine;
#[cfg(feature = "text")]
pub mod explain;
mod field;
pub mod graph;
mod headers;
mod legacy;
mod meta;
mod nat;
mod nft;
mod owner;
mod packet;
mod path_state;
mod persistent_list;
mod ranges;
mod registers;
mod reject;
mod route;
mod rules;
mod sets;
mod steps;
mod symbolic;
mod value;
mod value_set;
mod xt;

pub use compare::{Comparison, Difference, Values, compare};
pub use field::{Field, PacketOption, TupleField};
pub use owner::owner;
pub use packet::{Direction, Hook, Interface, Node, Packet, State, TrackedConnection, Tuple};
pub use rules::{Options, Rules};
pub use steps::{
    Action, ElementBytes, End, FinalPacket, FinalValue, HookVerdict, Outcome, RuleAt, RuleVerdict,
    StateChange, StateOwner, Step, Trace,
};
