//! Random transactions, valid and invalid. They use few names, so that they collide.
//!
//! The file is long because there are many kinds of objects and of errors.

use std::time::Duration;

use bstr::BString;
use chainwright::netlink::Messages;
use chainwright::nft::expr::{
    Cmp, Counter, Dynset, Immediate, Limit, Lookup, Masq, ObjectType, Objref, Payload, PayloadBase,
    Quota, Register, Reject, RejectType, Verdict,
};
use chainwright::nft::{
    Chain, ChainFlags, DataType, Element, Family, Policy, Rule, Set, SetFlags, SetId, Snapshot,
    SnapshotTable, StatefulObject, Table, TableFlags, Transaction,
};

use crate::common::random::Random;
use crate::common::{bound_chain, rule_of_bound_chain};

const FAMILIES: [Family; 4] = [Family::IP, Family::IP, Family::INET, Family::BRIDGE];
const TABLES: [&str; 2] = ["a", "b"];
const CHAINS: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];
const SETS: [&str; 4] = ["s0", "s1", "s2", "s3"];
const OBJECTS: [&str; 3] = ["o0", "o1", "o2"];

pub(crate) struct Writer<'r> {
    random: &'r mut Random,
    now: &'r Snapshot,
    family: Family,
    table: &'static str,
}

impl<'r> Writer<'r> {
    pub(crate) fn new(random: &'r mut Random, now: &'r Snapshot) -> Self {
        let family = *random.of(&FAMILIES);
        let table = *random.of(&TABLES);
        Self::of(random, now, family, table)
    }

    /// Creates a generator for this table.
    pub(crate) fn of(
        random: &'r mut Random,
        now: &'r Snapshot,
        family: Family,
        table: &'static str,
    ) -> Self {
        Self {
            random,
            now,
            family,
            table,
        }
    }

    /// Writes some operations.
    pub(crate) fn write(&mut self, tx: &mut Transaction) {
        if self.now.table(self.family, self.table).is_none() && !self.random.once_in(10) {
            self.begin(tx);
        }
        let some = self.random.pick(&[0, 0, 1, 1, 2, 3, 5]);
        let start = tx.as_bytes().len();
        for _ in 0..=some {
            match self.random.below(28) {
                24 => self.on_bound_chain(tx),
                25 => self.on_ranges(tx),
                26 => self.on_updated_set(tx),
                27 => self.on_map_of_objects(tx),
                0 if self.random.once_in(3) => self.on_table(tx),
                0..=4 => self.on_chain(tx),
                5..=11 => self.on_rule(tx),
                12..=14 => self.on_set(tx),
                15..=17 => self.on_elements(tx),
                _ => self.on_object(tx),
            }
        }
        if self.random.once_in(6) {
            self.damage(tx, start);
        }
    }

    /// Changes an operation's flags, or its family.
    fn damage(&mut self, tx: &mut Transaction, start: usize) {
        let mut operations = tx.as_bytes().to_vec();
        let starts: Vec<usize> = {
            let mut at = 0;
            let messages = Messages::new(&operations).map(Result::unwrap);
            let starts = messages.map(|message| {
                let start = at;
                at += message.raw.len().next_multiple_of(4);
                start
            });
            starts.filter(|&at| at >= start).collect()
        };
        if starts.is_empty() {
            return;
        }
        let at = *self.random.of(&starts);
        match self.random.below(10) {
            0 => operations[at + 16] = *self.random.of(&[0, 3, 10, 99]),
            _ => {
                let flag = *self.random.of(&[0x100u16, 0x200, 0x400, 0x800]);
                let flags = [operations[at + 6], operations[at + 7]];
                let flags = u16::from_ne_bytes(flags) ^ flag;
                operations[at + 6..at + 8].copy_from_slice(&flags.to_ne_bytes());
            }
        }
        tx.clear();
        tx.append(&operations).unwrap();
    }

    /// A bound chain with a rule in it, possibly without the rule that it belongs to.
    fn on_bound_chain(&mut self, tx: &mut Transaction) {
        let id = 40 + self.random.below(3) as u32;
        let mut chain = bound_chain(self.family, self.table, id);
        if self.random.once_in(8) {
            chain.flags = None;
        }
        tx.add(&chain).unwrap();
        let mut inner = rule_of_bound_chain(self.family, self.table, id);
        if self.random.once_in(2) {
            inner.push(&Counter::new(0, 0));
        } else {
            inner.push(&Immediate::jump(self.target()));
        }
        tx.add(&inner).unwrap();
        if !self.random.once_in(8) {
            let mut rule = Rule::new(self.family, self.table, self.chain_name());
            rule.push(&Immediate::verdict(Verdict::JumpId(id)));
            rule.id = Some(7);
            tx.add(&rule).unwrap();
            let mut positioned = Rule::new(self.family, self.table, self.chain_name());
            positioned.position_id = Some(*self.random.of(&[7, 7, 8]));
            positioned.push(&Immediate::accept());
            match self.random.below(4) {
                0 => _ = tx.add(&positioned).unwrap(),
                1 => _ = tx.insert(&positioned).unwrap(),
                _ => {}
            }
        }
    }

    /// A set of ranges with two fields, and elements of it.
    pub(crate) fn on_ranges(&mut self, tx: &mut Transaction) {
        let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
        let mut set = Set::new(self.family, self.table, "r", DataType::IPV4_ADDR, 4);
        set = set.with_interval_fields(&fields);
        set.id = Some(9);
        if self.random.once_in(10) {
            set.description = None;
        }
        let key = |random: &mut Random| {
            let address = vec![10, 0, 0, random.below(5) as u8];
            let port = [0, random.below(5) as u8, 0, 0];
            [address, port.to_vec()].concat()
        };
        let mut elements = Vec::new();
        for _ in 0..=self.random.below(2) {
            let (one, two) = (key(self.random), key(self.random));
            elements.push(match self.random.below(4) {
                0 => Element::new(one),
                1 => Element::range(one.clone(), one),
                _ => Element::range(one, two),
            });
        }
        match self.random.below(4) {
            0 => _ = tx.add(&set).unwrap(),
            1 => _ = tx.delete_elements(&set.set_id(), &elements).unwrap(),
            2 => _ = tx.create_elements(&set.set_id(), &elements).unwrap(),
            _ => {
                tx.add(&set).unwrap();
                tx.add_elements(&set.set_id(), &elements).unwrap();
            }
        }
    }

    /// A set that rules add elements to, and such a rule.
    fn on_updated_set(&mut self, tx: &mut Transaction) {
        let mut set = Set::new(self.family, self.table, "u", DataType::IPV4_ADDR, 4);
        set = set.with_timeout(None).with_flags(SetFlags::EVAL);
        set.id = Some(11);
        if self.random.once_in(2) {
            set = set.with_size(100);
        }
        let counts = self.random.once_in(2);
        if counts {
            set = set.with_expression(&Counter::new(0, 0));
        }
        let mut rule = Rule::new(self.family, self.table, self.chain_name());
        rule.push(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1));
        let mut dynset = match self.random.below(3) {
            0 => Dynset::add("u", Register::R1),
            1 => Dynset::update("u", Register::R1),
            _ => Dynset::delete("u", Register::R1),
        };
        if self.random.once_in(3) {
            dynset = dynset.with_expression(&Counter::new(0, 0));
        }
        rule.push(&dynset);
        let mut element = Element::new(vec![10, 0, 0, self.random.below(9) as u8]);
        if self.random.once_in(3) {
            element = element.with_expression(&Counter::new(5, 6));
        }
        match self.random.below(4) {
            0 => _ = tx.add(&set).unwrap(),
            1 => _ = tx.add(&rule).unwrap(),
            2 => _ = tx.add_elements(&set.set_id(), [&element]).unwrap(),
            _ => _ = tx.add(&set).unwrap().add(&rule).unwrap(),
        }
    }

    /// A map to counters, an element of it, and a rule that refers to a counter or looks one up.
    fn on_map_of_objects(&mut self, tx: &mut Transaction) {
        let mut map = Set::new(self.family, self.table, "m", DataType::IPV4_ADDR, 4);
        map = map.with_objects(ObjectType::COUNTER);
        map.id = Some(12);
        let key = vec![10, 0, 0, self.random.below(4) as u8];
        let element = Element::new(key).with_object(*self.random.of(&OBJECTS));
        let mut rule = Rule::new(self.family, self.table, self.chain_name());
        if self.random.once_in(2) {
            rule.push(&Objref::named(
                ObjectType::COUNTER,
                *self.random.of(&OBJECTS),
            ));
        } else {
            rule.push(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1));
            rule.push(&Objref::mapped(Register::R1, "m"));
        }
        match self.random.below(5) {
            0 => _ = tx.add(&map).unwrap(),
            1 => _ = tx.add_elements(&map.set_id(), [&element]).unwrap(),
            2 => _ = tx.delete_elements(&map.set_id(), [&element]).unwrap(),
            3 => _ = tx.add(&rule).unwrap(),
            _ => {
                tx.add(&map).unwrap();
                tx.add_elements(&map.set_id(), [&element]).unwrap();
            }
        }
    }

    /// A table with some chains and sets.
    fn begin(&mut self, tx: &mut Transaction) {
        tx.add(&Table::new(self.family, self.table)).unwrap();
        for name in CHAINS {
            if self.random.once_in(2) {
                tx.add(&Chain::new(self.family, self.table, name)).unwrap();
            }
        }
        for _ in 0..4 {
            tx.add(&self.set()).unwrap();
        }
    }

    fn there(&self) -> Option<SnapshotTable<'r>> {
        self.now.table(self.family, self.table)
    }

    fn table(&mut self) -> Table<'static> {
        Table {
            flags: match self.random.below(12) {
                0 => Some(TableFlags::DORMANT),
                1 => Some(TableFlags::from_bits_retain(0x100)),
                2 => Some(TableFlags::PERSIST),
                3 => None,
                _ => Some(TableFlags::default()),
            },
            userdata: self.random.once_in(3).then(|| vec![0, 2, b'x', 0].into()),
            ..Table::new(self.family, self.table)
        }
    }

    fn on_table(&mut self, tx: &mut Transaction) {
        let table = self.table();
        let named = Table::new(self.family, self.table);
        match self.random.below(6) {
            0 => tx.create(&table),
            1 => tx.delete(&named),
            2 => tx.destroy(&named),
            3 => tx.flush_table(self.family, self.table),
            _ => tx.add(&table),
        }
        .unwrap();
    }

    /// A chain's name, mostly that of an existing chain.
    fn chain_name(&mut self) -> &'static str {
        let name = self.random.pick(&CHAINS);
        let is_there = self
            .there()
            .is_some_and(|table| table.chain(name).is_some());
        match is_there || self.random.once_in(10) {
            true => name,
            false => self.random.pick(&CHAINS),
        }
    }

    /// A name of a chain to jump to: mostly of one without a hook.
    fn target(&mut self) -> &'static str {
        let mut name = self.chain_name();
        for _ in 0..8 {
            if name != "c0"
                && self
                    .there()
                    .is_some_and(|table| table.chain(name).is_some())
            {
                break;
            }
            name = self.chain_name();
        }
        name
    }

    /// A set's name, mostly that of an existing set.
    fn set_name(&mut self) -> &'static str {
        let name = self.random.pick(&SETS);
        let is_there = self.there().is_some_and(|table| table.set(name).is_some());
        match is_there || self.random.once_in(10) {
            true => name,
            false => self.random.pick(&SETS),
        }
    }

    fn chain(&mut self) -> Chain<'static> {
        let name = self.chain_name();
        let mut chain = Chain::new(self.family, self.table, name);
        if name == "c0" || self.random.once_in(12) {
            let types = ["filter", "filter", "filter", "nat", "route", "wrong"];
            let hook = self.random.below(6) as u32;
            let priority = *self.random.of(&[0, 0, 0, -300, 100]);
            chain = chain.with_hook(*self.random.of(&types), hook, priority);
            if name == "c0" && !self.random.once_in(4) {
                chain = chain.with_hook("filter", 1, 0);
            }
            if self.random.once_in(3) {
                chain = chain.with_policy(*self.random.of(&[Policy::ACCEPT, Policy::DROP]));
            }
            if self.random.once_in(4) {
                chain = chain.with_counters(3, 4);
            }
        }
        if self.random.once_in(20) {
            chain.policy = Some(*self.random.of(&[Policy::DROP, Policy(7)]));
        }
        if self.random.once_in(20) {
            let flags = [
                ChainFlags::BASE,
                ChainFlags::from_bits_retain(0x40),
                ChainFlags::HW_OFFLOAD,
            ];
            chain.flags = Some(*self.random.of(&flags));
        }
        if self.random.once_in(4) {
            chain.userdata = Some(vec![0, 2, b'y', 0].into());
        }
        chain
    }

    fn on_chain(&mut self, tx: &mut Transaction) {
        let chain = self.chain();
        let named = Chain::new(self.family, self.table, self.chain_name());
        let handle = self.chain_handle();
        match self.random.below(12) {
            0 => tx.create(&chain),
            1 | 2 => tx.delete(&named),
            3 => tx.destroy(&named),
            4 => tx.delete(&Chain {
                name: None,
                handle: Some(handle),
                ..named
            }),
            5 => tx.flush_chain(self.family, self.table, self.chain_name()),
            6 => tx.add(&Chain {
                handle: Some(handle),
                ..named
            }),
            _ => tx.add(&chain),
        }
        .unwrap();
    }

    fn chain_handle(&mut self) -> u64 {
        let Some(table) = self.there() else { return 1 };
        let chains: Vec<_> = table.chains().map(|chain| chain.chain().handle()).collect();
        match chains.is_empty() || self.random.once_in(10) {
            true => 77,
            false => *self.random.of(&chains),
        }
    }

    fn rule_handle(&mut self, name: &str) -> u64 {
        let chain = self.there().and_then(|table| table.chain(name));
        let rules: Vec<_> = chain
            .into_iter()
            .flat_map(|chain| chain.rules().map(|rule| rule.handle()).collect::<Vec<_>>())
            .collect();
        match rules.is_empty() || self.random.once_in(20) {
            true => 78,
            false => *self.random.of(&rules),
        }
    }

    /// A rule with expressions as the kernel lists them.
    fn rule(&mut self, name: &'static str, tx: &mut Transaction) -> Rule<'static> {
        let mut rule = Rule::new(self.family, self.table, name);
        if self.random.once_in(2) {
            rule.push(&Counter::new(1, 2));
        }
        if self.random.once_in(3) {
            let source = Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1);
            rule.push(&source);
            match self.random.below(3) {
                0 => _ = rule.push(&Cmp::eq(Register::R1, &[10, 0, 0, 1])),
                1 => {
                    let set = self.set_name();
                    rule.push(&Lookup::set(Register::R1, set));
                }
                _ => {
                    let of = DataType::IPV4_ADDR;
                    let set = Set::anonymous(self.family, self.table, "__set%d", 0, of, 4);
                    let id = tx.add_anonymous(&set).unwrap();
                    let key = [10, 0, 0, self.random.below(4) as u8];
                    tx.add_elements(&id, [&Element::new(key.to_vec())]).unwrap();
                    rule.push(&Lookup {
                        set_id: Some(id.id.unwrap_or(0)),
                        ..Lookup::set(Register::R1, "__set%d")
                    });
                }
            }
        }
        match self.random.below(10) {
            8 => _ = rule.push(&Masq::default()),
            9 if self.family != Family::BRIDGE => {
                rule.push(&Reject {
                    reject_type: Some(RejectType::ICMP_UNREACH),
                    icmp_code: Some(3),
                    ..Reject::default()
                });
            }
            0 => _ = rule.push(&Immediate::drop()),
            1 => _ = rule.push(&Immediate::accept()),
            2 => _ = rule.push(&Immediate::return_()),
            3..=5 => _ = rule.push(&Immediate::jump(self.target())),
            6 => _ = rule.push(&Immediate::goto(self.target())),
            _ => {}
        }
        if self.random.once_in(4) {
            rule.userdata = Some(vec![0, 2, b'z', 0].into());
        }
        rule
    }

    fn on_rule(&mut self, tx: &mut Transaction) {
        let name = self.chain_name();
        let (handle, other) = (self.rule_handle(name), self.rule_handle(name));
        let rule = self.rule(name, tx);
        let named = Rule {
            handle: Some(handle),
            ..Rule::new(self.family, self.table, name)
        };
        match self.random.below(14) {
            0 | 1 => tx.delete(&named),
            2 => tx.destroy(&named),
            3 => tx.replace(&Rule {
                handle: Some(handle),
                ..rule
            }),
            4 => tx.insert(&Rule {
                position: Some(other),
                ..rule
            }),
            5 => tx.add(&Rule {
                position: Some(other),
                ..rule
            }),
            6 => tx.insert(&rule),
            7 => tx.create(&Rule {
                handle: Some(handle),
                ..rule
            }),
            _ => tx.add(&rule),
        }
        .unwrap();
    }

    fn set(&mut self) -> Set<'static> {
        let name = *self.random.of(&SETS);
        let mut set = Set::new(self.family, self.table, name, DataType::IPV4_ADDR, 4);
        set.id = Some(1 + self.random.below(3) as u32);
        set = match name {
            "s0" => set,
            "s1" => set.with_interval(),
            "s2" => set.with_verdicts(),
            _ => set.with_timeout(Some(Duration::from_secs(3600))),
        };
        match self.random.below(24) {
            0 => set.flags = Some(SetFlags::from_bits_retain(0x4000)),
            1 => set.key_length = Some(65),
            2 => set.data_type = Some(DataType::MARK),
            3 => set = set.with_objects(ObjectType::COUNTER),
            4 => set.timeout = Some(Duration::from_secs(7200).into()),
            5 => set = set.constant(),
            6 => set = set.with_size(2),
            7 => set.key_length = None,
            8 => set.policy = Some(chainwright::nft::SetPolicy::MEMORY),
            9 => set = set.with_data(DataType::MARK, 4),
            _ => {}
        }
        set
    }

    fn on_set(&mut self, tx: &mut Transaction) {
        let set = self.set();
        let named = Set::named(self.family, self.table, self.set_name());
        match self.random.below(8) {
            0 => tx.create(&set),
            1 | 2 => tx.delete(&named),
            3 => tx.destroy(&named),
            _ => tx.add(&set),
        }
        .unwrap();
    }

    fn elements(&mut self, name: &str) -> Vec<Element<'static>> {
        let key = |random: &mut Random| vec![10, 0, 0, random.below(12) as u8];
        let mut elements = Vec::new();
        for _ in 0..=self.random.below(3) {
            let mut element = Element::new(key(self.random));
            match name {
                "s1" => {
                    let (one, two) = (key(self.random), key(self.random));
                    if one != two {
                        elements.extend(Element::interval(
                            one.clone().min(two.clone()),
                            one.max(two),
                        ));
                    }
                    continue;
                }
                "s2" => {
                    let verdicts = [
                        Verdict::Accept,
                        Verdict::Drop,
                        Verdict::Jump(self.target().into()),
                        Verdict::Goto(self.target().into()),
                    ];
                    element = element.with_verdict(self.random.pick(&verdicts));
                }
                "s3" if self.random.once_in(2) => {
                    element = element.with_timeout(Duration::from_secs(7200));
                }
                _ => {}
            }
            match self.random.below(30) {
                0 => element = Element::new(vec![1, 2]),
                1 => element = element.with_data(vec![0, 0, 0, 1]),
                2 => element = element.with_object("o0"),
                3 => element = Element::end(vec![10, 0, 0, 1]),
                4 => element = element.with_timeout(Duration::from_secs(9000)),
                5 => element = Element::catch_all(),
                _ => {}
            }
            elements.push(element);
        }
        elements
    }

    fn on_elements(&mut self, tx: &mut Transaction) {
        let name = self.set_name();
        let set = SetId::new(self.family, self.table, name);
        let elements = self.elements(name);
        let elements = elements.iter();
        match self.random.below(8) {
            0 => _ = tx.create_elements(&set, elements).unwrap(),
            1 | 2 => _ = tx.delete_elements(&set, elements).unwrap(),
            3 => _ = tx.destroy_elements(&set, elements).unwrap(),
            4 => _ = tx.flush_set(&set).unwrap(),
            _ => _ = tx.add_elements(&set, elements).unwrap(),
        }
    }

    fn on_object(&mut self, tx: &mut Transaction) {
        let name = *self.random.of(&OBJECTS);
        let counter = chainwright::nft::expr::Counter::new(self.random.below(3) as u64, 9);
        let mut object = StatefulObject::new(self.family, self.table, name, counter);
        match self.random.below(8) {
            0 => {
                object = StatefulObject::new(
                    self.family,
                    self.table,
                    name,
                    Quota {
                        bytes: Some(1 + self.random.below(3) as u64),
                        consumed: self.random.once_in(2).then_some(2),
                        ..Quota::default()
                    },
                );
            }
            1 => {
                object = StatefulObject::new(
                    self.family,
                    self.table,
                    name,
                    Limit {
                        rate: Some(self.random.below(3) as u64),
                        unit: Some(1),
                        ..Limit::default()
                    },
                );
            }
            2 => object.userdata = Some(vec![0, 2, b'o', 0].into()),
            _ => {}
        }
        let named = StatefulObject::named(
            self.family,
            self.table,
            ObjectType::COUNTER,
            BString::from(name),
        );
        match self.random.below(6) {
            0 => tx.create(&object),
            1 => tx.delete(&named),
            2 => tx.destroy(&named),
            _ => tx.add(&object),
        }
        .unwrap();
    }
}
