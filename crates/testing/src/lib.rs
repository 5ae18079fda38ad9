//! For tests of programs that use chainwright, without root: private network namespaces, and an in-memory nf_tables.
//!
//! | to | start from |
//! |---|---|
//! | test against this machine's kernel, in a private network namespace | [`Sandbox`] |
//! | make sandboxes as an ordinary user | [`sandbox_tests!`], [`become_namespace_root`] |
//! | test without a kernel | [`FakeKernel`] |
//!
//! The feature `trace` adds `FakeKernel::send`, which sends a packet through the fake kernel's rules.

mod error;
mod fake;
mod route;
mod sandbox;
mod user;

pub use error::Error;
pub use fake::FakeKernel;
#[cfg(feature = "trace")]
pub use fake::SendError;
pub use sandbox::Sandbox;
pub use user::{become_namespace_root, prepare_tests};

/// Lets all tests of a test program create [`Sandbox`]es as an ordinary user, on
/// any thread. Call it once, outside any function, in the crate's root or a test file.
///
/// The kernel lets a process become root in a user namespace only while it has a single thread, and a test
/// harness starts its threads before the first test. Therefore the macro runs
/// [`become_namespace_root`] before `main`. It does nothing outside
/// of tests (`cfg(test)`).
///
/// ```
/// chainwright_testing::sandbox_tests!();
///
/// // #[test]
/// fn a_sandbox_has_no_tables() -> Result<(), Box<dyn std::error::Error>> {
///     use chainwright::nft::{Connection, Scope};
///     use chainwright_testing::Sandbox;
///
///     let mut nft = Sandbox::new()?.run(Connection::open)??;
///     assert!(nft.tables(Scope::all())?.try_next()?.is_none());
///     Ok(())
/// }
/// # a_sandbox_has_no_tables().unwrap();
/// ```
#[macro_export]
macro_rules! sandbox_tests {
    () => {
        #[cfg(test)]
        const _: () = {
            extern "C" fn before_main() {
                $crate::prepare_tests();
            }
            // SAFETY: the section holds pointers to functions that the C library calls before `main`; it
            // passes them arguments that a function without parameters ignores.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEFORE_MAIN: extern "C" fn() = before_main;
        };
    };
}
