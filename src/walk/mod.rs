//! Where a packet goes: a walk through rulesets of both backends, from what is known of a packet.
//!
//! | step | where |
//! |---|---|
//! | what is known of the packet and of the machine | `packet.rs` |
//! | what rules can ask for | `field.rs` |
//! | what a number that is not known may still be | `domain.rs` |
//! | a branch of the walk; questions, and what splits it | `flow.rs` |
//! | what came of it | `steps.rs` |
//! | x_tables' matches and targets | `xt/` |

mod domain;
mod field;
mod flow;
mod packet;
mod steps;
mod xt;

pub use field::{Field, PacketOption, TupleField};
pub use packet::{Connection, Direction, Hook, Interface, Node, Packet, State, Tuple};
pub use steps::{Action, Arrived, End, HookVerdict, Outcome, Part, RuleAt, Step, Verdict, Walk};
