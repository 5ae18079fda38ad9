//! Measures what chains, rules, sets and elements cost the kernel: the time of a commit, its memory, and the time of
//! their deletion.
//!
//! `cargo bench --bench costs`. The memory is the growth of `Slab`, `Percpu` and `VmallocUsed` in `/proc/meminfo`, which
//! include other activity of the machine.

mod common;

use std::fmt::Write as _;
use std::time::Instant;

use chainwright::nft::{Connection, Family, Transaction};
use chainwright_lang::Script;
use common::{Result, in_sandbox};

/// A kind of object: its name, the numbers to measure, the text before and after, and the text of each.
type Kind = (
    &'static str,
    &'static [usize],
    &'static str,
    fn(usize, &mut String),
    &'static str,
);

macro_rules! kind {
    ($name:literal, $numbers:expr, $before:literal, |$n:ident| $each:literal, $after:literal) => {
        (
            $name,
            $numbers,
            $before,
            (|$n, text| {
                let _ = write!(text, $each, a = $n >> 16, b = $n >> 8 & 255, c = $n & 255);
            }) as fn(usize, &mut String),
            $after,
        )
    };
}

const OBJECTS: &[usize] = &[1_000, 5_000, 20_000];
const SETS: &[usize] = &[1_000, 5_000];
const ELEMENTS: &[usize] = &[1_000, 10_000, 100_000];

const KINDS: [Kind; 9] = [
    kind!(
        "chains",
        OBJECTS,
        "",
        |n| "chain c{n} {{ }} # {a}{b}{c}\n",
        ""
    ),
    kind!(
        "rules of a chain",
        OBJECTS,
        "chain c {\n",
        |n| "ip saddr 10.{a}.{b}.{c} counter # {n}\n",
        "}"
    ),
    kind!(
        "named sets",
        OBJECTS,
        "",
        |n| "set s{n} {{ type ipv4_addr; }} # {a}{b}{c}\n",
        ""
    ),
    kind!(
        "rules with an anonymous set of ports",
        SETS,
        "chain c {\n",
        |n| "tcp dport {{ {n}, 65535 }} accept # {a}{b}{c}\n",
        "}"
    ),
    kind!(
        "rules with an anonymous set of addresses",
        SETS,
        "chain c {\n",
        |n| "ip saddr {{ 10.{a}.{b}.{c}, 192.0.2.1 }} accept # {n}\n",
        "}"
    ),
    kind!(
        "elements: addresses",
        ELEMENTS,
        "set s { type ipv4_addr; elements = {",
        |n| "10.{a}.{b}.{c}, # {n}\n",
        "} }"
    ),
    kind!(
        "elements: ranges",
        ELEMENTS,
        "set s { type ipv4_addr; flags interval; elements = {",
        |n| "{a}.{b}.{c}.1-{a}.{b}.{c}.9, # {n}\n",
        "} }"
    ),
    kind!(
        "elements: four fields",
        ELEMENTS,
        "set s { type ipv4_addr . ipv4_addr . inet_proto . inet_service; flags interval; elements = {",
        |n| "10.{a}.{b}.{c} . 192.0.2.1 . tcp . 80-90, # {n}\n",
        "} }"
    ),
    kind!(
        "elements: verdicts",
        ELEMENTS,
        "chain c { }\nmap m { type ipv4_addr : verdict; elements = {",
        |n| "10.{a}.{b}.{c} : goto c, # {n}\n",
        "} }"
    ),
];

/// Returns the kernel's dynamic memory in bytes.
fn memory() -> Result<i64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let lines = text.lines().filter(|line| {
        let names = ["Slab:", "Percpu:", "VmallocUsed:"];
        names.iter().any(|name| line.starts_with(name))
    });
    let kilobytes = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<i64>().ok());
    Ok(kilobytes.sum::<i64>() * 1024)
}

fn main() -> Result {
    println!(
        "{:<42} {:>8} {:>12} {:>10} {:>10} {:>12}",
        "", "number", "commit", "of each", "memory", "deletion"
    );
    for (name, numbers, before, each, after) in KINDS {
        for &number in numbers {
            in_sandbox(|| {
                let mut text = format!("table ip t {{\n{before}");
                (0..number).for_each(|n| each(n, &mut text));
                text += after;
                text += "\n}";
                let script = Script::parse("costs", &text)?;
                let compiled = script.transaction(None)?;
                let mut nft = Connection::open()?;
                let (start, used) = (Instant::now(), memory()?);
                nft.commit(compiled.transaction())?;
                let (committed, used) = (start.elapsed(), memory()? - used);
                let mut flush = Transaction::new();
                flush.flush_ruleset(Family::UNSPEC)?;
                let start = Instant::now();
                nft.commit(&flush)?;
                println!(
                    "{name:<42} {number:>8} {committed:>12.1?} {:>10.1?} {:>8} B {:>12.1?}",
                    committed / number as u32,
                    used / number as i64,
                    start.elapsed()
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}
