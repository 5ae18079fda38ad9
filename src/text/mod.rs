//! Words of `nft`'s language: the types and the elements of sets.
//!
//! ```
//! use chainwright::nft::DataType;
//! use chainwright::text::{Milliseconds, data_type};
//!
//! let key = DataType::concatenation([DataType::IPV4_ADDR, DataType::INET_SERVICE]);
//! assert_eq!(data_type(key), "ipv4_addr . inet_service");
//! assert_eq!(Milliseconds(9_000_000).to_string(), "2h30m");
//! ```

mod value;

pub use value::{data_type, element, elements};

pub use crate::nft::Milliseconds;
