//! The structs of the crate `nftables`, which are libnftables' JSON.

use std::collections::HashSet;
use std::fmt;

use nftables::schema::Nftables;
use serde::Deserialize;
use serde_json::Value;

use crate::list::Listing;
use crate::parse::Error;
use crate::script::Script;

/// Why a listing is not made of the structs of the crate `nftables`: they have no place for something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInStructs {
    /// Where that is: `nftables[3].rule.expr[0].match.right`.
    pub path: String,
    /// What the structs say of it.
    pub why: String,
}

impl fmt::Display for NotInStructs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the crate nftables has no place for {}: {}",
            self.path, self.why
        )
    }
}

impl std::error::Error for NotInStructs {}

impl Script {
    /// What a program asks for that uses the crate [`nftables`]: its objects are handed over instead of running `nft`
    /// with them. They are read as [`parse_json`](Self::parse_json) reads what that program would get, but that an element
    /// whose counter is `null` has none: the structs cannot leave it away.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use chainwright_lang::Script;
    /// use nftables::batch::Batch;
    /// use nftables::schema::{NfListObject, Table};
    /// use nftables::types::NfFamily;
    ///
    /// let mut batch = Batch::new();
    /// batch.add(NfListObject::Table(Table {
    ///     family: NfFamily::INet,
    ///     name: Cow::Borrowed("filter"),
    ///     handle: None,
    /// }));
    /// let script = Script::from_nftables(&batch.to_nftables())?;
    /// assert_eq!(script.transaction(None)?.transaction().len(), 1);
    /// # Ok::<(), chainwright_lang::Error>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with it first, shown in the JSON that it is.
    pub fn from_nftables(ruleset: &Nftables<'_>) -> Result<Self, Error> {
        // The structs have text and numbers only, which JSON has, too; were it otherwise, nothing would be read.
        let mut json = serde_json::to_value(ruleset).unwrap_or_default();
        without_null_counters(&mut json);
        Self::parse_json("nftables", json.to_string())
    }
}

impl Listing<'_> {
    /// The objects that the crate [`nftables`] reads of what `nft` lists.
    ///
    /// # Errors
    /// What its structs have no place for, first: they would be read without it, as something else than is there.
    pub fn to_nftables(&self) -> Result<Nftables<'static>, NotInStructs> {
        let refused = |path: &str, error: serde_json::Error| NotInStructs {
            path: path.to_owned(),
            why: error.to_string(),
        };
        let json = serde_json::to_value(self.json()).map_err(|error| refused("nftables", error))?;
        let mut objects = Vec::new();
        let listed = json.get("nftables").and_then(Value::as_array);
        for (index, ours) in listed.into_iter().flatten().enumerate() {
            let path = format!("nftables[{index}]");
            let object = Deserialize::deserialize(ours).map_err(|error| refused(&path, error))?;
            let theirs = serde_json::to_value(&object).map_err(|error| refused(&path, error))?;
            if let Some((path, why)) = lost(ours, &theirs, path) {
                return Err(NotInStructs { path, why });
            }
            objects.push(object);
        }
        Ok(Nftables {
            objects: objects.into(),
        })
    }
}

/// Elements without a counter are written with null for it, which nft takes for a counter of nothing yet.
fn without_null_counters(json: &mut Value) {
    match json {
        Value::Object(object) => {
            if let Some(Value::Object(element)) = object.get_mut("elem")
                && element.get("counter").is_some_and(Value::is_null)
            {
                element.remove("counter");
            }
            object.values_mut().for_each(without_null_counters);
        }
        Value::Array(list) => list.iter_mut().for_each(without_null_counters),
        _ => {}
    }
}

/// Where something is not there any more, or not the same, and what is there instead.
fn lost(ours: &Value, theirs: &Value, path: String) -> Option<(String, String)> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => ours.iter().find_map(|(key, ours)| {
            let path = format!("{path}.{key}");
            match theirs.get(key) {
                Some(theirs) => lost(ours, theirs, path),
                None if ours.is_null() => None,
                None => Some((path, "it is passed over".to_owned())),
            }
        }),
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            // Flags are in no order.
            let words = |list: &[Value]| -> Option<HashSet<String>> {
                let words = list.iter().map(|word| word.as_str().map(str::to_owned));
                words.collect()
            };
            if words(ours).is_some() && words(ours) == words(theirs) {
                return None;
            }
            let mut pairs = ours.iter().zip(theirs).enumerate();
            pairs.find_map(|(index, (ours, theirs))| lost(ours, theirs, format!("{path}[{index}]")))
        }
        // One without a list.
        (Value::String(_), Value::Array(theirs)) if theirs.len() == 1 => {
            lost(ours, &theirs[0], path)
        }
        (ours, theirs) if ours == theirs => None,
        (_, theirs) => Some((path, format!("it becomes {theirs}"))),
    }
}
