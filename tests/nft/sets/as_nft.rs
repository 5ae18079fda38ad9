//! Sets that nft made.

use chainwright::nft::ElementFlags;

use super::*;

/// Loads a text with nft, without its catch-all element if the kernel does not support that.
#[track_caller]
fn load(tools: &Tools<'_>, nft: &mut Connection, text: &str) {
    let catch_all = kernel::has(nft, "catch-all elements");
    let without = text.replace(", * : drop", "");
    assert_ne!(text, without, "the text should contain a catch-all element");
    tools.run_with("nft -f -", if catch_all { text } else { &without });
}

/// `Display` prints what `nft --debug=netlink list ruleset` prints for sets.
#[test]
fn element_lines_match_nft() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    load(
        &tools,
        &mut nft,
        r#"
        table ip t {
            chain c { }
            counter n { }
            set s { type ipv4_addr; elements = { 10.0.0.1 comment "one two", 10.0.0.2 } }
            set p { type inet_service; elements = { 80 } }
            set e { type ether_addr; elements = { 00:11:22:33:44:55 } }
            set f { type ifname; elements = { "eth0" } }
            map m { type ipv4_addr : mark; elements = { 10.0.0.1 : 5 } }
            map v { type ipv4_addr : verdict; elements = { 10.0.0.1 : jump c, 10.0.0.2 : goto c,
                10.0.0.3 : accept, 10.0.0.4 : return, 10.0.0.5 : continue, * : drop } }
            map o { type ipv4_addr : counter; elements = { 10.0.0.1 : "n" } }
            set i { type ipv4_addr; flags interval; elements = { 10.0.0.0/24, 255.0.0.0/8 } }
            set r { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/24 . 80-90 } }
            set d { type ipv4_addr; counter; elements = { 10.0.0.1 counter packets 1 bytes 2 } }
        }
        "#,
    );
    let printed = tools.run("nft --debug=netlink list ruleset");
    let end = printed.find("table ip t {").unwrap();
    let real: Vec<_> = printed[..end]
        .lines()
        .filter(|line| line.contains(" @") || line.starts_with("\telement"))
        .collect();
    let mut chainwright = Vec::new();
    let mut sets = Vec::new();
    let mut listing = nft.sets(Scope::table(IP, "t")).unwrap();
    while let Some(set) = listing.try_next().unwrap() {
        sets.push((set.to_string(), set.name().to_string()));
    }
    drop(listing);
    for (line, name) in sets {
        chainwright.push(line);
        let mut elements = nft.elements(IP, "t", &name).unwrap();
        while let Some(element) = elements.try_next().unwrap() {
            chainwright.push(format!("\t{element}"));
        }
    }
    chainwright.sort();
    let mut real: Vec<_> = real.iter().map(|line| line.trim_end().to_owned()).collect();
    real.sort();
    let chainwright: Vec<_> = chainwright
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect();
    assert_eq!(chainwright, real);
    assert!(chainwright.len() > 20);
}

/// The kernel's listing of sets that nft made is written to another table byte for byte, and gives
/// the same listing there.
#[test]
fn sets_of_nft_round_trip() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    load(
        &tools,
        &mut nft,
        r#"
        table ip t {
            chain c { }
            counter n { comment "kept" }
            set s { type ipv4_addr; size 100; comment "a set"
                elements = { 10.0.0.1 comment "one", 10.0.0.2 } }
            map v { type ipv4_addr : verdict; elements = { 10.0.0.1 : jump c, * : drop } }
            map o { type ipv4_addr : counter; elements = { 10.0.0.1 : "n" } }
            set i { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/24, 255.0.0.0/8 } }
            set r { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/24 . 80-90 } }
            map w { type inet_service : mark; flags interval; elements = { 80-90 : 7, 100 : 8 } }
            set d { type ipv4_addr; counter; elements = { 10.0.0.1 counter packets 1 bytes 2 } }
            set l { typeof ip daddr; elements = { 1.2.3.4 } }
        }
        "#,
    );
    let mut sets = Vec::new();
    let mut listing = nft.sets(Scope::table(IP, "t")).unwrap();
    while let Some(set) = listing.try_next().unwrap() {
        sets.push(set.to_builder().into_owned());
    }
    drop(listing);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "u")).unwrap();
    tx.add(&Chain::new(IP, "u", "c")).unwrap();
    let counter = nft
        .object(IP, "t", ObjectType::COUNTER, "n")
        .unwrap()
        .unwrap();
    let mut counter = counter.to_builder().into_owned();
    (counter.table, counter.handle) = (Some("u".into()), None);
    tx.add(&counter).unwrap();
    for mut set in sets {
        let mut all = Vec::new();
        let name = set.name.clone().unwrap();
        let mut listing = nft.elements(IP, "t", &name).unwrap();
        while let Some(element) = listing.try_next().unwrap() {
            all.push(element.to_builder().into_owned());
        }
        drop(listing);
        (set.table, set.handle) = (Some("u".into()), None);
        tx.add(&set).unwrap();
        tx.add_elements(&set.set_id(), &all).unwrap();
    }
    nft.commit(&tx).unwrap();
    let (one, two) = (
        tools.run("nft list table ip t"),
        tools.run("nft list table ip u"),
    );
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        sorted(&one.replace("table ip t", "table ip u")),
        sorted(&two)
    );
    let flags = nft.set(IP, "u", "i").unwrap().unwrap().flags();
    assert_eq!(flags, Some(SetFlags::INTERVAL));
    assert_eq!(ElementFlags::CATCHALL.bits(), 2);
}
