//! Imports of every statement and object.

pub(crate) use std::fmt::{self, Write};

pub(crate) use super::clauses::{Clause, ClauseObject, Clauses, Flags, Number, clauses};
pub(crate) use super::{Delinearize, Linearize, Object, Stateful, Text, end_by_operands};
#[cfg(feature = "json")]
pub(crate) use super::{Json, ObjectJson};
pub(crate) use crate::compile::rule_builder::RuleBuilder;
#[cfg(feature = "json")]
pub(crate) use crate::json::{
    Expression, Fields, JsonReader, Key, Kind, Node, Record, Writer, numeric,
};
pub(crate) use crate::list::Options;
pub(crate) use crate::parse::Diagnostic;
pub(crate) use crate::parse::error::shown;
pub(crate) use crate::parse::parser::Parser;
pub(crate) use crate::parts::RuleEnd;
pub(crate) use crate::print::Printer;
pub(crate) use crate::read::rule::Reader;
pub(crate) use crate::syntax::{Expr, Span};
pub(crate) use chainwright::nft::expr::{self, ObjectType};
pub(crate) use chainwright::nft::{DataType, Family, ObjectData};
