//! The chains that Kubernetes' components create, as tables, chains and rules.

mod error;

pub mod declared;
pub mod detect;
pub mod explain;
pub mod frontend;
pub mod guard;
pub mod kubelet;
pub mod service;

pub use error::Error;

/// Joins an error and its causes in one text. Omits a cause that the text already contains.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
