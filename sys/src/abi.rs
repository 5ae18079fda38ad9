//! Description of kernel headers: the `abi!` macro and the table that it generates.
//!
//! Every module of this crate is one invocation of `abi!` (`nf_tables` has one for each part). The
//! macro turns a list of constants and structs into Rust items and into a [`Header`] named `ABI`.
//! The test `tests/layout.rs` compares these tables with the installed kernel headers through the C
//! compiler, so that no declaration escapes the check.

/// One kernel header: its path and the declarations in this crate.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Path as in an `#include`, for example `linux/netlink.h`.
    pub path: &'static str,
    /// Every integer constant.
    pub constants: &'static [Constant],
    /// Every string constant.
    pub strings: &'static [StringConstant],
    /// Every struct.
    pub structs: &'static [Struct],
}

/// One integer constant of a header.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Name in Rust.
    pub name: &'static str,
    /// The C expression with the same value; the name itself unless C needs a cast or a `sizeof`.
    pub c: &'static str,
    /// The enum or the group of `#define`s that contains it.
    pub group: &'static str,
    /// Value in this crate.
    pub value: i128,
    /// First Linux release (major, minor) whose header has it; `None` if Linux 6.1 has it.
    pub since: Option<(u8, u8)>,
}

/// One string constant of a header.
#[derive(Clone, Copy, Debug)]
pub struct StringConstant {
    /// Name, in Rust and in C.
    pub name: &'static str,
    /// Value without the closing NUL.
    pub value: &'static str,
}

/// One struct of a header.
#[derive(Clone, Copy, Debug)]
pub struct Struct {
    /// Name in Rust.
    pub name: &'static str,
    /// The C type, for example `struct nlmsghdr`.
    pub c: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
    /// Every field, padding included.
    pub fields: &'static [Field],
}

/// One field of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in Rust.
    pub name: &'static str,
    /// Path of the member in C (`u.user.match_size`); `None` for padding, which C leaves unnamed.
    pub c: Option<&'static str>,
    /// Distance from the start of the struct, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// Declares the items of one kernel header.
///
/// ```text
/// abi! {
///     header "linux/example.h";
///     constants {
///         /// Purpose of the group, in one line.
///         "enum example_flags": u32 {
///             EXAMPLE_F_OLD = 0x1;
///             EXAMPLE_F_NEW = 0x2, since (6, 3);        // first Linux release that has it
///             EXAMPLE_MASK = 0x3, c "(__u32)EXAMPLE_MASK"; // C expression, when not the name
///         }
///     }
///     strings {
///         /// One line.
///         EXAMPLE_NAME = "example";
///     }
///     structs {
///         /// Description of the struct.
///         struct example {                              // or: struct example = "union example"
///             /// Description of the field.
///             field size: u16 = "u.user.size",          // C path, when not the name
///             pad __pad: [u8; 2],
///         }
///     }
/// }
/// ```
macro_rules! abi {
    (
        header $header:literal;
        $(constants { $(
            #[doc = $group_doc:literal]
            $group:literal: $ty:ty { $(
                $(#[doc = $constant_doc:literal])*
                $constant:ident = $value:expr $(, since ($major:literal, $minor:literal))? $(, c $constant_c:literal)?;
            )* }
        )* })?
        $(strings { $(
            #[doc = $string_doc:literal]
            $string:ident = $string_value:literal;
        )* })?
        $(structs { $(
            $(#[$struct_meta:meta])+
            struct $name:ident $(= $struct_c:literal)? { $(
                $(#[doc = $field_doc:literal])*
                $(#[cfg($($cfg:tt)*)])?
                $kind:ident $field:ident: $field_ty:ty $(= $field_c:literal)?,
            )* }
        )* })?
    ) => {
        $($($(
            $(#[doc = $constant_doc])*
            #[doc = ""]
            #[doc = concat!(
                $group_doc, "\n\nDeclared in `", $group, "` of `<", $header, ">`",
                $(" since Linux ", $major, ".", $minor,)?
                "."
            )]
            pub const $constant: $ty = $value;
        )*)*)?

        $($(
            #[doc = $string_doc]
            #[doc = concat!("\n\nDeclared in `<", $header, ">`.")]
            pub const $string: &str = $string_value;
        )*)?

        $($(
            $(#[$struct_meta])+
            #[doc = concat!("\n\nDeclared in `<", $header, ">`.")]
            #[derive(
                Clone,
                Copy,
                Debug,
                PartialEq,
                Eq,
                Hash,
                zerocopy::FromBytes,
                zerocopy::IntoBytes,
                zerocopy::Immutable,
                zerocopy::KnownLayout,
            )]
            #[repr(C)]
            pub struct $name { $(
                $(#[doc = $field_doc])*
                $(#[cfg($($cfg)*)])?
                #[doc = $crate::abi::field_doc!($kind)]
                pub $field: $field_ty,
            )* }
        )*)?

        /// All declarations of this module, as a table.
        pub const ABI: $crate::abi::Header = $crate::abi::Header {
            path: $header,
            constants: &[$($($(
                $crate::abi::Constant {
                    name: stringify!($constant),
                    c: $crate::abi::first!($($constant_c,)? stringify!($constant)),
                    group: $group,
                    value: $constant as i128,
                    since: $crate::abi::first!($(Some(($major, $minor)),)? None),
                },
            )*)*)?],
            strings: &[$($(
                $crate::abi::StringConstant { name: stringify!($string), value: $string },
            )*)?],
            structs: &[$($(
                $crate::abi::Struct {
                    name: stringify!($name),
                    c: $crate::abi::first!($($struct_c,)? concat!("struct ", stringify!($name))),
                    size: core::mem::size_of::<$name>(),
                    align: core::mem::align_of::<$name>(),
                    fields: &[$(
                        $(#[cfg($($cfg)*)])?
                        $crate::abi::Field {
                            name: stringify!($field),
                            c: $crate::abi::field_c!(
                                $kind, $crate::abi::first!($($field_c,)? stringify!($field))
                            ),
                            offset: core::mem::offset_of!($name, $field),
                            size: core::mem::size_of::<$field_ty>(),
                        },
                    )*],
                },
            )*)?],
        };
    };
}

/// Expands to its first argument.
macro_rules! first {
    ($first:expr $(, $rest:expr)* $(,)?) => {
        $first
    };
}

/// Expands to the C member of a field; padding has none.
macro_rules! field_c {
    (field, $c:expr) => {
        Some($c)
    };
    (pad, $c:expr) => {
        None
    };
}

/// Expands to an addition to the documentation of a field.
macro_rules! field_doc {
    (field) => {
        ""
    };
    (pad) => {
        "Padding that C leaves unnamed; zero."
    };
}

pub(crate) use {abi, field_c, field_doc, first};
