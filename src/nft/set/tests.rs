//! Sets as listed by the kernel and as sent to it: built sets, and views.

use super::*;
use crate::nft::captured::hex;
use crate::nft::captured::objects::{assert_built, bytes_of};
use crate::nft::expr::{Counter, Decoded, Limit};
use crate::nft::object::{Identified as _, Written as _};

const IP: Family = Family::IP;

#[test]
fn plain() {
    let mut set = Set::new(IP, "t", "plain", DataType::IPV4_ADDR, 4)
        .with_size(100)
        .with_comment("a set")
        .unwrap();
    set.id = Some(1);
    set.flags = Some(SetFlags::empty());
    assert_built("set", "a set of addresses", &set);
    (set.id, set.flags, set.handle) = (None, None, Some(2));
    assert_built("set", "a set of addresses, listed", &set);
    let listed = bytes_of("set", "a set of addresses, listed");
    let view = SetRef::of_payload(&listed).unwrap();
    assert_eq!(view.set_id(), SetId::new(IP, "t", "plain"));
    assert_eq!(view.comment(), Some("a set".into()));
    assert_eq!(view.count(), Some(2));
    assert_eq!(view.implementation(), Some("0xffffffff82507dc0".into()));
    assert!(!view.is_map());
}

/// The kernel requires an id for every set: 0 if the builder has none.
#[test]
fn a_set_without_an_id_gets_one() {
    let set = Set::new(IP, "t", "s", DataType::NF_PROTO, 1);
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    set.write(&mut writer);
    writer.finish_bare().unwrap();
    assert_eq!(bytes, bytes_of("set", "a set without an id"));
}

#[test]
fn maps() {
    let mut values = Set::new(IP, "t", "m", DataType::IPV4_ADDR, 4).with_data(DataType::MARK, 4);
    values.id = Some(2);
    // nft also writes `typeof` entries.
    let userdata = hex("00040200 00000104 01000000 06040000 0000");
    assert_eq!(values.userdata.as_deref(), Some(&userdata[..12]));
    values.userdata = Some(userdata.into());
    assert_built("set", "a map to values", &values);
    (values.id, values.handle) = (None, Some(3));
    values.description = Some(SetDesc::default());
    assert_built("set", "a map to values, listed", &values);

    let mut verdicts = Set::new(IP, "t", "v", DataType::IPV4_ADDR, 4).with_verdicts();
    verdicts.id = Some(3);
    verdicts.userdata = Some(hex("00040200 00000104 00000000 06040000 0000").into());
    assert_built("set", "a map to verdicts", &verdicts);

    let mut objects =
        Set::new(IP, "t", "o", DataType::IPV4_ADDR, 4).with_objects(ObjectType::COUNTER);
    objects.handle = Some(6);
    objects.userdata = Some(hex("00040200 00000604 00000000").into());
    objects.description = Some(SetDesc::default());
    assert_built("set", "a map to objects, listed", &objects);
}

#[test]
fn concatenations() {
    let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
    let mut ranges = Set::new(IP, "t", "cc", DataType::VALUE, 0).with_interval_fields(&fields);
    assert_eq!(ranges.key_type, Some(DataType(0x1cd)));
    ranges.id = Some(6);
    ranges.userdata = Some(hex("00040000 00000308 00040d00 00000100").into());
    assert_built("set", "ranges of concatenations", &ranges);
    (ranges.id, ranges.handle) = (None, Some(8));
    assert_built("set", "ranges of concatenations, listed", &ranges);
    let description = ranges.description.unwrap();
    let lengths: Vec<_> = description.fields.unwrap().lengths().collect();
    assert_eq!(lengths, [4, 2]);

    let plain = Set::new(IP, "t", "cp", DataType::VALUE, 0).with_fields(&fields);
    assert_eq!((plain.key_length, plain.flags), (Some(8), None));
    assert_eq!(plain.description, None);
}

#[test]
fn timeouts_and_expressions() {
    let mut timeout =
        Set::new(IP, "t", "to", DataType::IPV4_ADDR, 4).with_timeout(Some(Duration::from_secs(30)));
    timeout.gc_interval = Some(Milliseconds32(10_000));
    timeout.handle = Some(10);
    timeout.userdata = Some(hex("00040200 0000").into());
    timeout.description = Some(SetDesc::default());
    assert_built("set", "timeouts, listed", &timeout);

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
    assert_built("set", "two expressions", &two);
    let listed = bytes_of("set", "one expression, listed");
    let view = SetRef::of_payload(&listed).unwrap();
    let expression = view.expression().unwrap();
    assert_eq!(
        expression.decode().unwrap(),
        Decoded::Counter(Counter::new(0, 0))
    );
    assert_eq!(view.flags(), Some(SetFlags::EVAL));
}

#[test]
fn anonymous() {
    let mut set = Set::anonymous(IP, "t", "__set%d", 11, DataType::IPV4_ADDR, 4).with_size(2);
    set.userdata =
        Some(hex("00040200 00000314 00040700 0000010c 00040c00 00000104 0b000000").into());
    assert_built("set", "an anonymous set", &set);
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
