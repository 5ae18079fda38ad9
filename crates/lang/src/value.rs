//! Data types of set keys and map data.

use chainwright::nft::DataType;

/// Bits that each field occupies in the type number of a concatenation.
const FIELD_TYPE_BITS: u32 = 6;

/// Splits a concatenation into the types of its fields. Any other type is its own single field.
pub(super) fn fields(data_type: DataType) -> Vec<DataType> {
    let mask = (1 << FIELD_TYPE_BITS) - 1;
    if data_type.0 <= mask || data_type.name().is_some() {
        return vec![data_type];
    }
    let mut fields = Vec::new();
    let mut left = data_type.0;
    while left > 0 {
        fields.push(DataType(left & mask));
        left >>= FIELD_TYPE_BITS;
    }
    fields.reverse();
    fields
}

/// Returns the name of a type. The fields of a concatenation are joined with dots: `ipv4_addr . inet_service`.
#[must_use]
pub fn data_type(data_type: DataType) -> String {
    let names = fields(data_type)
        .into_iter()
        .map(|field| match field.name() {
            Some(name) => name.to_owned(),
            None => format!("type {}", field.0),
        });
    names.collect::<Vec<_>>().join(" . ")
}

/// Decrements a big-endian byte string; `None` if all bytes are zero.
pub(super) fn before(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut before = bytes.to_vec();
    for byte in before.iter_mut().rev() {
        let (less, borrowed) = byte.overflowing_sub(1);
        *byte = less;
        if !borrowed {
            return Some(before);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainwright::nft::Milliseconds;

    #[test]
    fn durations() {
        assert_eq!(Milliseconds(0).to_string(), "0ms");
        assert_eq!(Milliseconds(3_599_992).to_string(), "59m59s992ms");
        assert_eq!(Milliseconds(90_000_000).to_string(), "1d1h");
    }

    #[test]
    fn types_by_name() {
        let both = DataType::concatenation([DataType::IPV4_ADDR, DataType::INET_SERVICE]);
        assert_eq!(data_type(both), "ipv4_addr . inet_service");
        assert_eq!(data_type(DataType::VERDICT), "verdict");
        assert_eq!(data_type(DataType(63)), "type 63");
    }

    #[test]
    fn values_before() {
        assert_eq!(before(&[1, 0, 0]), Some(vec![0, 255, 255]));
        assert_eq!(before(&[0, 0]), None);
    }
}
