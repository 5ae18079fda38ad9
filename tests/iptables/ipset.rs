//! Names and indexes of sets, queried from the kernel; `ipset(8)` creates the sets.

use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright::ipset::{Connection, Error, SetFamily, SetInfo};
use chainwright::iptables::{Family, Rule, SetError};
use chainwright::xt::{SetName, SetNames};

#[test]
fn sets_are_found_by_name_and_by_index() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    for set in [
        "four hash:ip",
        "six hash:ip family inet6",
        "ports bitmap:port range 0-9",
    ] {
        tools.run(&format!("ipset create {set}"));
    }
    let sets = sandbox.run(Connection::open).unwrap().unwrap();
    assert!(sets.version() >= 6);
    let found = |name: &str| sets.look_up(name).unwrap();
    let set = |index, family| Some(SetInfo { index, family });
    assert_eq!(found("four"), set(0, SetFamily::Ipv4));
    assert_eq!(found("six"), set(1, SetFamily::Ipv6));
    assert_eq!(found("ports"), set(2, SetFamily::Any));
    assert_eq!(found("fou"), None);
    assert_eq!(found(&"x".repeat(31)), None);
    assert_eq!(sets.name(1).unwrap().unwrap(), "six");
    for index in [3, 255, 256, 65534, u16::MAX] {
        assert_eq!(sets.name(index), Ok(None), "{index}");
    }
    for wrong in ["", "a\0b", &"x".repeat(32)] {
        let name = wrong.into();
        assert_eq!(sets.look_up(wrong), Err(Error::Name { name }));
    }
    // Another namespace has other sets.
    let other = crate::common::sandbox();
    let other = other.run(Connection::open).unwrap().unwrap();
    assert_eq!(other.look_up("four"), Ok(None));
    // A deleted set's index is reused.
    tools.run("ipset destroy four");
    assert_eq!(sets.name(0), Ok(None));
    tools.run("ipset create new hash:net");
    assert_eq!(found("new"), set(0, SetFamily::Ipv4));
}

#[test]
fn rules_name_and_resolve_their_sets() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("ipset create four hash:ip");
    tools.run("ipset create six hash:ip family inet6");
    let sets = sandbox.run(Connection::open).unwrap().unwrap();
    let text = "-m set --match-set four src -j SET --add-set four dst";
    let mut rule = Rule::parse(Family::Ipv4, text).unwrap();
    let named = rule.clone();
    rule.resolve_sets(Family::Ipv4, &mut &sets).unwrap();
    assert_ne!(rule, named);
    rule.name_sets(&mut &sets).unwrap();
    assert_eq!(rule, named);
    assert_eq!(rule.to_string(), text);
    // A set of the other family, a missing set, a missing index.
    let name = |name: &str| SetName::new(name).unwrap();
    let error = SetNames::index(&mut &sets, Family::Ipv4, &name("six")).unwrap_err();
    assert_eq!(error, SetError::OtherFamily { name: name("six") });
    let mut rule = Rule::parse(Family::Ipv6, "-m set --match-set no src").unwrap();
    let error = rule.resolve_sets(Family::Ipv6, &mut &sets).unwrap_err();
    assert_eq!(error, SetError::NoSuchSet { name: name("no") });
    assert_eq!(
        error.to_string(),
        "set `no` not found: create it before the rule (ipset create)"
    );
    let error = SetNames::name(&mut &sets, 7).unwrap_err();
    assert_eq!(error, SetError::NoSuchIndex { index: 7 });
}
