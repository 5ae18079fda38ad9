//! Conversion from and to the structs of the crate `nftables`, which represent libnftables' JSON.

use std::collections::HashSet;
use std::fmt;

use nftables::schema::Nftables;
use serde::Deserialize;
use serde_json::Value;

use crate::dialect::NftVersion;
use crate::list::Listing;
use crate::parse::Error;
use crate::script::Script;

/// A listing that the structs of the crate `nftables` cannot represent.
#[derive(Clone, PartialEq, Eq)]
pub struct UnrepresentableListing {
    /// Path of the value: `nftables[3].rule.expr[0].match.right`.
    pub path: String,
    /// The value as the structs represent it.
    pub reason: String,
}

chainwright::debug_as_message!(UnrepresentableListing);

impl fmt::Display for UnrepresentableListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the crate nftables cannot represent {}: {}",
            self.path, self.reason
        )
    }
}

impl std::error::Error for UnrepresentableListing {}

impl Script {
    /// Converts the objects of a program that uses the crate [`nftables`], which would otherwise run `nft` with them.
    /// They are parsed like their JSON by [`parse_json`](Self::parse_json), except that a `null` counter of an element
    /// means no counter: the structs cannot omit it.
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
    /// The first error in the document, shown in its JSON.
    pub fn from_nftables(ruleset: &Nftables<'_>) -> Result<Self, Error> {
        // The structs only contain strings and numbers, which are always valid JSON. Otherwise nothing would be
        // parsed.
        let mut json = serde_json::to_value(ruleset).unwrap_or_default();
        without_null_counters(&mut json);
        Self::parse_json("nftables", json.to_string())
    }
}

impl Listing<'_> {
    /// Converts the listing to the objects that the crate [`nftables`] reads from the output of `nft`: in the form of nft
    /// 1.0, which its structs have, whatever the options select.
    ///
    /// # Errors
    /// The first value that its structs would lose or change.
    pub fn to_nftables(&self) -> Result<Nftables<'static>, UnrepresentableListing> {
        let refused = |path: &str, error: serde_json::Error| UnrepresentableListing {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let mut options = self.options.clone();
        options.nft_version = NftVersion::V1_0;
        let listing = Listing::new(self.snapshot, &options).part(self.part);
        let json =
            serde_json::to_value(listing.json()).map_err(|error| refused("nftables", error))?;
        let mut objects = Vec::new();
        let listed = json.get("nftables").and_then(Value::as_array);
        for (index, ours) in listed.into_iter().flatten().enumerate() {
            let path = format!("nftables[{index}]");
            let object = Deserialize::deserialize(ours).map_err(|error| refused(&path, error))?;
            let theirs = serde_json::to_value(&object).map_err(|error| refused(&path, error))?;
            if let Some((path, why)) = lost(ours, &theirs, path) {
                return Err(UnrepresentableListing { path, reason: why });
            }
            objects.push(object);
        }
        Ok(Nftables {
            objects: objects.into(),
        })
    }
}

/// Removes null counters of elements, which nft treats as new counters.
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

/// Returns the first value that is missing or different, with what replaces it.
fn lost(ours: &Value, theirs: &Value, path: String) -> Option<(String, String)> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => ours.iter().find_map(|(key, ours)| {
            let path = format!("{path}.{key}");
            match theirs.get(key) {
                Some(theirs) => lost(ours, theirs, path),
                None if ours.is_null() => None,
                None => Some((path, "its value would be lost".to_owned())),
            }
        }),
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            // The order of flags does not matter.
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
        // A single entry without a list.
        (Value::String(_), Value::Array(theirs)) if theirs.len() == 1 => {
            lost(ours, &theirs[0], path)
        }
        (ours, theirs) if ours == theirs => None,
        (_, theirs) => Some((path, format!("it would become {theirs}"))),
    }
}
