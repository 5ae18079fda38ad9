//! Sets as listed by the kernel and as sent to it.

use super::*;
use crate::nft::captured::hex;
use crate::nft::expr::{Counter, Decoded, Limit};
use crate::nft::object::{Identified as _, Written as _};

const IP: Family = Family::IP;

/// Returns the attributes in these bytes sorted by type, without the flag of nested ones.
fn sorted(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all: Vec<_> = Attributes::new(bytes)
        .map(|attribute| attribute.unwrap())
        .map(|attribute| (attribute.kind, attribute.payload.to_vec()))
        .collect();
    all.sort();
    all
}

/// Asserts that a set is encoded as `sent`, the attributes of nft's `NFT_MSG_NEWSET`, in any
/// order.
#[track_caller]
fn assert_sent(set: &Set<'_>, sent: &str) {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    set.write(&mut writer);
    writer.finish_bare().unwrap();
    assert_eq!(sorted(&bytes), sorted(&hex(sent)), "{set:?}");
}

/// Asserts that `listed`, the payload of a listed message, is parsed as the set.
#[track_caller]
fn assert_listed(set: &Set<'_>, listed: &str) {
    let listed = hex(listed);
    let view = SetRef::of_payload(&listed).unwrap();
    assert!(
        SetRef::in_order(Family(listed[0]), &listed[4..]).is_some(),
        "encoding should take one pass"
    );
    let built = view.to_builder();
    assert_eq!(&built, set);
    assert_eq!(&built.clone().into_owned(), set);
    assert_eq!(view.set_id(), SetId::new(IP, "t", view.name()));
    // Any other order is parsed as the same set.
    let mut shuffled = listed[..4].to_vec();
    let attributes: Vec<_> = view.attributes().map(|a| a.unwrap().raw).collect();
    shuffled.extend(attributes.iter().rev().copied().flatten());
    let again = SetRef::of_payload(&shuffled).unwrap();
    assert_eq!(again.to_builder(), built);
    assert_eq!(again.count(), view.count());
    for end in 0..listed.len() {
        let _ = SetRef::of_payload(&listed[..end]).map(|view| format!("{view:?}"));
    }
    #[cfg(feature = "serde")]
    {
        let json = serde_json::to_string(&built).unwrap();
        assert_eq!(serde_json::from_str::<Set<'_>>(&json).unwrap(), built);
    }
}

/// nft 1.0.6: `add set ip t plain { type ipv4_addr; comment "a set"; size 100; }`, then two
/// elements.
#[test]
fn plain() {
    let mut set = Set::new(IP, "t", "plain", DataType::IPV4_ADDR, 4)
        .with_size(100)
        .with_comment("a set")
        .unwrap();
    set.id = Some(1);
    set.flags = Some(SetFlags::empty());
    assert_sent(
        &set,
        "
                06000100 74000000                           ; NFTA_SET_TABLE
                0a000200 706c6169 6e000000                  ; NFTA_SET_NAME
                08000300 00000000                           ; NFTA_SET_FLAGS
                08000400 00000007                           ; NFTA_SET_KEY_TYPE
                08000500 00000004                           ; NFTA_SET_KEY_LEN
                08000a00 00000001                           ; NFTA_SET_ID
                0c000980 08000100 00000064                  ; NFTA_SET_DESC
                12000d00 00040200 00000706 61207365 74000000 ; NFTA_SET_USERDATA
            ",
    );
    (set.id, set.flags, set.handle) = (None, None, Some(2));
    let listed = "
            02000002 06000100 74000000 0a000200 706c6169 6e000000 0c001000 00000000
            00000002 08000400 00000007 08000500 00000004 12000d00 00040200 00000706
            61207365 74000000 0c000900 08000100 00000064 17001300 30786666 66666666
            66663832 35303764 63300000 08001400 00000002
        ";
    assert_listed(&set, listed);
    let listed = hex(listed);
    let view = SetRef::of_payload(&listed).unwrap();
    assert_eq!(view.comment(), Some("a set".into()));
    assert_eq!(view.count(), Some(2));
    assert_eq!(view.implementation(), Some("0xffffffff82507dc0".into()));
    assert_eq!(view.to_string(), "ip t @plain");
    assert!(!view.is_map());
}

/// The kernel requires an id for every set: 0 if the builder has none.
#[test]
fn a_set_without_an_id_gets_one() {
    let set = Set::new(IP, "t", "s", DataType::NF_PROTO, 1);
    assert_sent(
        &set,
        "
                06000100 74000000 06000200 73000000 08000400 00000002 08000500 00000001
                08000a00 00000000
            ",
    );
}

/// nft 1.0.6: `add map ip t m { type ipv4_addr : mark; }`, `… : verdict; }`, `… : counter; }`.
#[test]
fn maps() {
    let mut values = Set::new(IP, "t", "m", DataType::IPV4_ADDR, 4).with_data(DataType::MARK, 4);
    values.id = Some(2);
    // nft also writes `typeof` entries.
    let userdata = hex("00040200 00000104 01000000 06040000 0000");
    assert_eq!(values.userdata.as_deref(), Some(&userdata[..12]));
    values.userdata = Some(userdata.clone().into());
    assert_sent(
        &values,
        "
                06000100 74000000 06000200 6d000000 08000300 00000008 08000400 00000007
                08000500 00000004 08000600 00000013 08000700 00000004 08000a00 00000002
                16000d00 00040200 00000104 01000000 06040000 00000000
            ",
    );
    (values.id, values.handle) = (None, Some(3));
    values.description = Some(SetDesc::default());
    assert_listed(
        &values,
        "
                02000002 06000100 74000000 06000200 6d000000 0c001000 00000000 00000003
                08000300 00000008 08000400 00000007 08000500 00000004 08000600 00000013
                08000700 00000004 16000d00 00040200 00000104 01000000 06040000 00000000
                04000900 17001300 30786666 66666666 66663832 35303766 34300000 08001400
                00000001
            ",
    );

    let mut verdicts = Set::new(IP, "t", "v", DataType::IPV4_ADDR, 4).with_verdicts();
    verdicts.id = Some(3);
    verdicts.userdata = Some(hex("00040200 00000104 00000000 06040000 0000").into());
    assert_sent(
        &verdicts,
        "
                06000100 74000000 06000200 76000000 08000300 00000008 08000400 00000007
                08000500 00000004 08000600 ffffff00 08000700 00000000 08000a00 00000003
                16000d00 00040200 00000104 00000000 06040000 00000000
            ",
    );

    let mut objects =
        Set::new(IP, "t", "o", DataType::IPV4_ADDR, 4).with_objects(ObjectType::COUNTER);
    objects.handle = Some(6);
    objects.userdata = Some(hex("00040200 00000604 00000000").into());
    objects.description = Some(SetDesc::default());
    assert_listed(
        &objects,
        "
                02000002 06000100 74000000 06000200 6f000000 0c001000 00000000 00000006
                08000300 00000040 08000400 00000007 08000500 00000004 08000f00 00000001
                10000d00 00040200 00000604 00000000 04000900 17001300 30786666 66666666
                66663832 35303766 34300000 08001400 00000001
            ",
    );
}

/// nft 1.0.6: `add set ip t cc { type ipv4_addr . inet_service; flags interval; }`.
#[test]
fn concatenations() {
    let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
    let mut ranges = Set::new(IP, "t", "cc", DataType::VALUE, 0).with_interval_fields(&fields);
    assert_eq!(ranges.key_type, Some(DataType(0x1cd)));
    ranges.id = Some(6);
    ranges.userdata = Some(hex("00040000 00000308 00040d00 00000100").into());
    assert_sent(
        &ranges,
        "
                06000100 74000000 07000200 63630000 08000300 00000084 08000400 000001cd
                08000500 00000008 08000a00 00000006
                20000900 1c000280 0c000180 08000100 00000004 0c000180 08000100 00000002
                14000d00 00040000 00000308 00040d00 00000100
            ",
    );
    (ranges.id, ranges.handle) = (None, Some(8));
    assert_listed(
        &ranges,
        "
                02000002 06000100 74000000 07000200 63630000 0c001000 00000000 00000008
                08000300 00000084 08000400 000001cd 08000500 00000008 14000d00 00040000
                00000308 00040d00 00000100 20000900 1c000200 0c000100 08000100 00000004
                0c000100 08000100 00000002 17001300 30786666 66666666 66663832 35303831
                61300000 08001400 00000001
            ",
    );
    let description = ranges.description.unwrap();
    let lengths: Vec<_> = description.fields.unwrap().lengths().collect();
    assert_eq!(lengths, [4, 2]);

    let plain = Set::new(IP, "t", "cp", DataType::VALUE, 0).with_fields(&fields);
    assert_eq!((plain.key_length, plain.flags), (Some(8), None));
    assert_eq!(plain.description, None);
}

/// nft 1.0.6: `add set ip t to { type ipv4_addr; flags timeout; timeout 30s; gc-interval 10s; }`
/// and `add set ip t two { type ipv4_addr; flags dynamic,timeout; size 1000; counter; limit rate
/// 5/second; policy memory; }`.
#[test]
fn timeouts_and_expressions() {
    let mut timeout =
        Set::new(IP, "t", "to", DataType::IPV4_ADDR, 4).with_timeout(Some(Duration::from_secs(30)));
    timeout.gc_interval = Some(Milliseconds32(10_000));
    timeout.handle = Some(10);
    timeout.userdata = Some(hex("00040200 0000").into());
    timeout.description = Some(SetDesc::default());
    assert_listed(
        &timeout,
        "
                02000002 06000100 74000000 07000200 746f0000 0c001000 00000000 0000000a
                08000300 00000010 08000400 00000007 08000500 00000004 0c000b00 00000000
                00007530 08000c00 00002710 0a000d00 00040200 00000000 04000900 17001300
                30786666 66666666 66663832 35303766 34300000 08001400 00000001
            ",
    );

    let counter = Counter::default();
    let limit = Limit::packets(5, 1, 5);
    let mut two = Set::new(IP, "t", "two", DataType::IPV4_ADDR, 4)
        .with_updates(1000)
        .with_timeout(None)
        .with_policy(SetPolicy::MEMORY)
        .with_expression(&counter)
        .with_expression(&limit);
    assert_eq!(
        two.flags,
        Some(SetFlags::EVAL | SetFlags::TIMEOUT | SetFlags::EXPR)
    );
    two.id = Some(10);
    assert_sent(
        &two,
        "
                06000100 74000000 08000200 74776f00 08000300 00000130 08000400 00000007
                08000500 00000004 08000a00 0000000a 08000800 00000001 0c000980 08000100
                000003e8 0a000d00 00040200 00000000
                5c001280
                14000180 0c000100 636f756e 74657200 04000280
                44000180 0a000100 6c696d69 74000000 34000280 0c000100 00000000 00000005
                0c000200 00000000 00000001 08000300 00000005 08000400 00000000 08000500
                00000000
            ",
    );
    let listed = hex("
                02000002 06000100 74000000 08000200 64796e00 0c001000 00000000 0000000b
                08000300 00000020 08000400 00000007 08000500 00000004 0a000d00 00040200
                00000000 0c000900 08000100 000003e8 17001300 30786666 66666666 66663832
                35303766 34300000 08001400 00000001 2c001100 0c000100 636f756e 74657200
                1c000200 0c000100 00000000 00000000 0c000200 00000000 00000000
            ");
    let view = SetRef::of_payload(&listed).unwrap();
    let expression = view.expression().unwrap();
    assert_eq!(
        expression.decode().unwrap(),
        Decoded::Counter(Counter::new(0, 0))
    );
    assert_eq!(view.flags(), Some(SetFlags::EVAL));
}

/// nft 1.0.6: `add rule ip t c ip saddr { 1.1.1.1, 2.2.2.2 } …`.
#[test]
fn anonymous() {
    let mut set = Set::anonymous(IP, "t", "__set%d", 11, DataType::IPV4_ADDR, 4).with_size(2);
    set.userdata =
        Some(hex("00040200 00000314 00040700 0000010c 00040c00 00000104 0b000000").into());
    assert_sent(
        &set,
        "
                06000100 74000000 0c000200 5f5f7365 74256400 08000300 00000003 08000400
                00000007 08000500 00000004 08000a00 0000000b 0c000980 08000100 00000002
                20000d00 00040200 00000314 00040700 0000010c 00040c00 00000104 0b000000
            ",
    );
    assert_eq!(set.set_id().id, Some(11));
}

#[test]
fn its_identity_is_its_name_and_handle() {
    let mut set = Set::new(IP, "t", "s", DataType::MARK, 4).with_size(5);
    set.handle = Some(9);
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    set.write_identity(&mut writer);
    writer.finish_bare().unwrap();
    let expected = "06000100 74000000 06000200 73000000 0c001000 00000000 00000009";
    assert_eq!(bytes, hex(expected));
}
