//! CRC-32 (IEEE 802.3, as in Ethernet, gzip and PNG), eight bytes at a time.

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 {
                0xedb8_8320 ^ (sum >> 1)
            } else {
                sum >> 1
            };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = tables[0][(before & 0xff) as usize] ^ (before >> 8);
            byte += 1;
        }
        table += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

/// The checksum of the bytes so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksum(u32);

impl Checksum {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut sum = self.0;
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            let both = u64::from_le_bytes(*eight) ^ u64::from(sum);
            let byte = |index: u32| (both >> (8 * index)) as usize & 0xff;
            sum = TABLES[7][byte(0)]
                ^ TABLES[6][byte(1)]
                ^ TABLES[5][byte(2)]
                ^ TABLES[4][byte(3)]
                ^ TABLES[3][byte(4)]
                ^ TABLES[2][byte(5)]
                ^ TABLES[1][byte(6)]
                ^ TABLES[0][byte(7)];
        }
        for &byte in rest {
            sum = TABLES[0][(sum as u8 ^ byte) as usize] ^ (sum >> 8);
        }
        self.0 = sum;
    }

    pub(crate) const fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    fn of(bytes: &[u8]) -> u32 {
        let mut sum = Checksum::new();
        sum.update(bytes);
        sum.value()
    }

    /// Values that other implementations give.
    #[test]
    fn known_values() {
        assert_eq!(of(b""), 0);
        assert_eq!(of(b"123456789"), 0xcbf4_3926);
        assert_eq!(
            of(b"The quick brown fox jumps over the lazy dog"),
            0x414f_a339
        );
        assert_eq!(of(&[0; 32]), 0x190a_55ad);
    }

    #[test]
    fn parts_give_the_same_as_the_whole() {
        let bytes: Vec<u8> = (0..100_u8).map(|number| number.wrapping_mul(7)).collect();
        for at in 0..bytes.len() {
            let mut sum = Checksum::new();
            sum.update(&bytes[..at]);
            sum.update(&bytes[at..]);
            assert_eq!(sum.value(), of(&bytes), "{at}");
        }
    }
}
