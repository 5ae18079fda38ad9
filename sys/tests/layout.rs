//! Checks with the C compiler that the installed kernel headers agree with this crate.
//!
//! From the tables in `chainwright_sys::HEADERS` it writes a C program that includes every header
//! and prints the value of every constant and the size, alignment and offsets of every struct; it
//! compiles and runs it, and compares what it printed.
//!
//! Constants that are newer than the installed headers cannot be compared and are only counted.
//! To check them too, point `CHAINWRIGHT_SYS_HEADERS` at the `include` directory of newer kernel
//! headers (the result of `make headers_install`); several directories are separated by colons.
//!
//! For another architecture, `CC` is its compiler, and `CHAINWRIGHT_SYS_RUNNER` the emulator that runs
//! what it compiled.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use chainwright_sys::HEADERS;
use chainwright_sys::abi::{Constant, Header};

const INSTALL: &str = "tests/setup installs the C compiler and the kernel headers";

/// Subject of each line of the C program's output, as failures print it, and its value.
type Facts = BTreeMap<String, String>;

#[test]
fn constants_and_structs_match_the_kernel_headers() {
    let ours = facts_of_this_crate();
    let (theirs, newer) = facts_of_the_kernel_headers();

    let mut wrong = String::new();
    for (what, value) in &ours {
        match theirs.get(what) {
            Some(other) if other == value => {}
            Some(other) => writeln!(
                wrong,
                "  {what}: here {value}, in the kernel headers {other}"
            )
            .unwrap(),
            None if newer.contains(what) => {}
            None => writeln!(wrong, "  {what}: here {value}, not checked").unwrap(),
        }
    }
    for what in theirs.keys().filter(|what| !ours.contains_key(*what)) {
        writeln!(wrong, "  {what}: checked, but not in the tables").unwrap();
    }

    let count = |f: fn(&Header) -> usize| HEADERS.iter().map(|header| f(header)).sum::<usize>();
    println!(
        "{} headers: {} constants, {} strings, {} structs with {} fields; {} facts compared, {} constants are newer than the headers{}{}",
        HEADERS.len(),
        count(|header| header.constants.len()),
        count(|header| header.strings.len()),
        count(|header| header.structs.len()),
        count(|header| header.structs.iter().map(|s| s.fields.len()).sum()),
        theirs.len(),
        newer.len(),
        if newer.is_empty() { "" } else { ": " },
        newer.join(", "),
    );
    assert!(
        wrong.is_empty(),
        "this crate and the kernel headers differ:\n{wrong}"
    );
}

#[test]
fn no_name_is_declared_twice_in_a_header() {
    for header in HEADERS {
        let mut names: Vec<&str> = header.constants.iter().map(|c| c.name).collect();
        names.extend(header.strings.iter().map(|s| s.name));
        names.extend(header.structs.iter().map(|s| s.name));
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(
            names.len(),
            before,
            "a name is twice in the table of {}",
            header.path
        );
        assert!(before > 0, "the table of {} is empty", header.path);
    }
}

#[test]
fn newer_constants_are_newer_than_the_oldest_kernel() {
    for constant in HEADERS.iter().flat_map(|header| header.constants) {
        if let Some(since) = constant.since {
            assert!(
                ((6, 2)..=(6, 18)).contains(&since),
                "{}: since {since:?} is outside of 6.2 to 6.18",
                constant.name
            );
        }
    }
}

/// Headers of which every enumerator and every number that a `#define` names must be here.
const COMPLETE: &[&str] = &[
    "linux/netfilter/nf_tables.h",
    "linux/netfilter/nf_tables_compat.h",
    "linux/netfilter/nf_conntrack_common.h",
];

/// Left out although they have no `__` twin: they change from one release to the next.
const LEFT_OUT: &[&str] = &["NFT_MSG_MAX", "NFT_TABLE_F_MASK", "NFNL_MSG_COMPAT_MAX"];

#[test]
fn nf_tables_headers_are_complete() {
    let version = "#include <stdio.h>\n#include <linux/version.h>\nint main(void) { printf(\"%d\", LINUX_VERSION_CODE); }\n";
    let version: u32 = run("version", version).parse().unwrap();

    let mut missing = Vec::new();
    for path in COMPLETE {
        let header = HEADERS.iter().find(|header| header.path == *path).unwrap();
        let names = names_in(path);
        assert!(names.len() > 5, "found only {names:?} in <{path}>");
        for name in &names {
            let end_mark = name.starts_with('_') || names.contains(&format!("__{name}"));
            let here = header
                .constants
                .iter()
                .any(|constant| constant.name == name);
            if !end_mark && !here && !LEFT_OUT.contains(&name.as_str()) {
                missing.push(format!("{name} (<{path}>)"));
            }
        }
    }
    if version < 6 << 16 | 19 << 8 {
        assert!(
            missing.is_empty(),
            "in the kernel headers, but not in this crate: {missing:?}"
        );
    } else {
        println!(
            "newer than Linux 6.18, in the kernel headers, but not in this crate: {missing:?}"
        );
    }
}

/// The enumerators of a header, and the names that it defines as something other than nothing or a function.
fn names_in(path: &str) -> Vec<String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout");
    std::fs::create_dir_all(&directory).unwrap();
    let source = directory.join(format!("names_{}.c", path.replace('/', "_")));
    std::fs::write(&source, format!("#include <{path}>\n")).unwrap();
    let output = compiler()
        .args(["-E", "-dD", "-P", "-undef"])
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("cannot run the C compiler: {error}; {INSTALL}"));
    assert!(
        output.status.success(),
        "{}; {INSTALL}",
        String::from_utf8_lossy(&output.stderr)
    );

    let text = String::from_utf8(output.stdout).unwrap();
    let mut names = Vec::new();
    let mut code = String::new();
    for line in text.lines() {
        match line
            .trim()
            .strip_prefix("#define ")
            .map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
        {
            Some((name, value)) if !name.contains('(') && !value.is_empty() => {
                names.push(name.to_owned());
            }
            Some(_) => {}
            None => code.push_str(line),
        }
    }
    for body in code.split("enum ").skip(1) {
        let body = body.split_once('{').unwrap().1.split_once('}').unwrap().0;
        names.extend(
            body.split(',')
                .map(|e| e.split('=').next().unwrap().trim().to_owned())
                .filter(|name| !name.is_empty()),
        );
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Name of a constant in the facts.
fn label(header: &Header, constant: &Constant) -> String {
    format!("{} ({}, <{}>)", constant.name, constant.group, header.path)
}

fn facts_of_this_crate() -> Facts {
    let mut facts = Facts::new();
    for header in HEADERS {
        for constant in header.constants {
            facts.insert(label(header, constant), constant.value.to_string());
        }
        for string in header.strings {
            facts.insert(
                format!("{} (<{}>)", string.name, header.path),
                format!("{:?}", string.value),
            );
        }
        for s in header.structs {
            facts.insert(format!("size of {}", s.c), s.size.to_string());
            facts.insert(format!("alignment of {}", s.c), s.align.to_string());
            for field in s.fields {
                let Some(c) = field.c else { continue };
                facts.insert(
                    format!("offset of {c} in {}", s.c),
                    field.offset.to_string(),
                );
                facts.insert(format!("size of {c} in {}", s.c), field.size.to_string());
            }
        }
    }
    facts
}

/// The facts as the headers have them, and the constants that are newer than the headers.
fn facts_of_the_kernel_headers() -> (Facts, Vec<String>) {
    let mut facts = Facts::new();
    let mut newer = Vec::new();
    for line in run("layout", &program()).lines() {
        let mut parts = line.split('\t');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("="), Some(what), Some(value), None) => {
                facts.insert(what.to_owned(), value.to_owned());
            }
            (Some("newer"), Some(what), None, None) => newer.push(what.to_owned()),
            _ => panic!("the C program printed {line:?}"),
        }
    }
    (facts, newer)
}

/// Include guards that two headers share (`ipt_ttl.h` and `ipt_TTL.h`, `ip6t_hl.h` and `ip6t_HL.h`):
/// without more ado the second of them would be empty.
const SHARED_GUARDS: &[&str] = &["_IPT_TTL_H", "_IP6T_HL_H"];

/// The C program: one line for each fact, `=<tab>what<tab>value`, or `newer<tab>what`.
fn program() -> String {
    // net/if.h and netinet/in.h of the C library come first: the kernel's linux/if.h and linux/in.h
    // then leave out what they have declared already.
    let mut c = String::from(
        "#include <stdio.h>\n#include <stddef.h>\n#include <sys/socket.h>\n#include <net/if.h>\n#include <netinet/in.h>\n#include <linux/version.h>\n",
    );
    for header in HEADERS {
        writeln!(c, "#include <{}>", header.path).unwrap();
        for guard in SHARED_GUARDS {
            writeln!(c, "#undef {guard}").unwrap();
        }
    }
    c.push_str("int main(void)\n{\n");
    for header in HEADERS {
        for constant in header.constants {
            let what = label(header, constant);
            let print = format!(
                "printf(\"=\\t{what}\\t%lld\\n\", (long long)({}));",
                constant.c
            );
            match constant.since {
                None => writeln!(c, "{print}"),
                Some((major, minor)) => writeln!(
                    c,
                    "#if LINUX_VERSION_CODE >= KERNEL_VERSION({major}, {minor}, 0)\n{print}\n#else\nputs(\"newer\\t{what}\");\n#endif"
                ),
            }
            .unwrap();
        }
        for string in header.strings {
            writeln!(
                c,
                "printf(\"=\\t{name} (<{path}>)\\t\\\"%s\\\"\\n\", {name});",
                name = string.name,
                path = header.path
            )
            .unwrap();
        }
        for s in header.structs {
            let t = s.c;
            writeln!(c, "printf(\"=\\tsize of {t}\\t%zu\\n\", sizeof({t}));").unwrap();
            writeln!(
                c,
                "printf(\"=\\talignment of {t}\\t%zu\\n\", (size_t)__alignof__({t}));"
            )
            .unwrap();
            for field in s.fields {
                let Some(f) = field.c else { continue };
                writeln!(
                    c,
                    "printf(\"=\\toffset of {f} in {t}\\t%zu\\n\", offsetof({t}, {f}));"
                )
                .unwrap();
                writeln!(
                    c,
                    "printf(\"=\\tsize of {f} in {t}\\t%zu\\n\", sizeof((({t} *)0)->{f}));"
                )
                .unwrap();
            }
        }
    }
    c.push_str("return 0;\n}\n");
    c
}

/// The C compiler, with the directories of the kernel headers.
fn compiler() -> Command {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    for include in std::env::var("CHAINWRIGHT_SYS_HEADERS")
        .iter()
        .flat_map(|paths| paths.split(':'))
    {
        cc.arg("-isystem").arg(include);
    }
    cc
}

/// Compiles and runs a C program; what it printed.
fn run(name: &str, program: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout");
    std::fs::create_dir_all(&directory).unwrap();
    let source = directory.join(format!("{name}.c"));
    let binary = directory.join(name);
    std::fs::write(&source, program).unwrap();

    let compiled = compiler()
        .arg("-w")
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("cannot run the C compiler: {error}; {INSTALL}"));
    assert!(
        compiled.status.success(),
        "the C compiler refuses {}; either a name in this crate's tables is not in the kernel headers, or the headers are missing ({INSTALL}):\n{}",
        source.display(),
        String::from_utf8_lossy(&compiled.stderr)
    );
    let ran = match std::env::var_os("CHAINWRIGHT_SYS_RUNNER") {
        Some(runner) => Command::new(runner).arg(&binary).output(),
        None => Command::new(&binary).output(),
    };
    let ran = ran.unwrap();
    assert!(
        ran.status.success(),
        "{} failed: {}",
        binary.display(),
        ran.status
    );
    String::from_utf8(ran.stdout).unwrap()
}
