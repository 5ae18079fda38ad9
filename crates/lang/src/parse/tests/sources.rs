//! Includes and variables.

use std::collections::BTreeMap;

use super::*;

/// Texts by name.
struct Texts(BTreeMap<&'static str, String>);

impl Texts {
    fn new<const N: usize>(texts: [(&'static str, &str); N]) -> Self {
        Self(texts.map(|(name, text)| (name, text.to_owned())).into())
    }
}

impl Includes for Texts {
    fn read(&self, path: &str) -> Result<Vec<Source>, String> {
        if let Some(beginning) = path.strip_suffix('*') {
            let found = self
                .0
                .iter()
                .filter(|(name, _)| name.starts_with(beginning));
            return Ok(found
                .map(|(name, text)| Source::new(*name, text.clone()))
                .collect());
        }
        let text = self
            .0
            .get(path)
            .ok_or_else(|| format!("there is no {path}"))?;
        Ok(vec![Source::new(path, text.clone())])
    }
}

fn printed_with(texts: &Texts, text: &str) -> Result<Vec<String>, Error> {
    let (commands, _) = parse(Source::new("first.nft", text), texts)?;
    Ok(rules(&commands).filter_map(printed).collect())
}

#[test]
fn include_inserts_texts() {
    let texts = Texts::new([
        ("ports", "define ports = { 22, 80 }"),
        ("d/1", "tcp dport 1"),
        ("d/2", "tcp dport 2\n"),
        ("d/3", "tcp dport 3 # no end of a line"),
    ]);
    let text = "include \"ports\"\ntable ip t {\n\tchain c {\n\t\ttcp dport $ports\n\t\tinclude \"d/*\"\n\
                \t\tinclude \"e/*\"\n\t\tinclude \"d/1\"; tcp dport 4\n\t}\n}\ninclude \"ports2*\"";
    assert_eq!(
        printed_with(&texts, text).unwrap(),
        [
            "tcp dport { 22, 80 }",
            "tcp dport 1",
            "tcp dport 2",
            "tcp dport 3",
            "tcp dport 1",
            "tcp dport 4"
        ]
    );
}

#[test]
fn errors_name_the_included_file() {
    let texts = Texts::new([("inner", "# fine\n\ttcp dport foo bar\n")]);
    let error = printed_with(
        &texts,
        "table ip t {\n\tchain c {\n\t\tinclude \"inner\"\n\t}\n}",
    )
    .unwrap_err();
    assert_eq!(
        (error.source.as_str(), error.line, error.column),
        ("inner", 2, 16)
    );
    // Line numbers continue after the included text.
    let texts = Texts::new([("inner", "\n\n\n\n")]);
    let error = printed_with(&texts, "include \"inner\"\nbad\n").unwrap_err();
    assert_eq!(
        (error.source.as_str(), error.line, error.column),
        ("first.nft", 2, 1)
    );
}

#[test]
fn recursive_includes_are_refused() {
    let texts = Texts::new([
        ("a", "include \"b\""),
        ("b", "include \"a\""),
        ("c", "include \"c\""),
    ]);
    for (name, message) in [("a", "a includes itself"), ("c", "c includes itself")] {
        let error = printed_with(&texts, &format!("include \"{name}\"")).unwrap_err();
        assert_eq!(error.message, message);
    }
    // A text may be included twice in sequence.
    let texts = Texts::new([
        ("a", "include \"b\"\ninclude \"b\""),
        ("b", "add rule ip t c accept"),
    ]);
    assert_eq!(
        printed_with(&texts, "include \"a\"\ninclude \"a\"")
            .unwrap()
            .len(),
        4
    );
}

/// Each text includes the next.
struct Endless;

impl Includes for Endless {
    fn read(&self, path: &str) -> Result<Vec<Source>, String> {
        let number: u32 = path.parse().map_err(|_| "no number".to_owned())?;
        Ok(vec![Source::new(
            path,
            format!("include \"{}\"\n", number + 1),
        )])
    }
}

/// Each text includes the next twice.
struct Doubling;

impl Includes for Doubling {
    fn read(&self, path: &str) -> Result<Vec<Source>, String> {
        let text = match path.len() {
            15 => String::new(),
            _ => format!("include \"{path}x\"\n").repeat(2),
        };
        Ok(vec![Source::new(path, text)])
    }
}

#[test]
fn inclusion_ends() {
    let error = parse(Source::new("first", "include \"0\""), &Endless).unwrap_err();
    assert!(
        error.message.contains("more than 16 levels deep"),
        "{error}"
    );
    let error = parse(Source::new("first", "include \"x\""), &Doubling).unwrap_err();
    assert!(error.message.contains("more than 4096 files"), "{error}");
}

#[test]
fn disallowed_includes_are_refused() {
    let error = read("include \"/etc/passwd\"").unwrap_err();
    assert_eq!(error.message, "includes are not allowed here");
    assert_eq!((error.line, error.column), (1, 9));
}

#[test]
fn files_are_included_from_their_directories_alone() {
    let root = std::env::temp_dir().join(format!("chainwright-includes-{}", std::process::id()));
    let inside = root.join("inside");
    std::fs::create_dir_all(inside.join("d")).expect("cannot create the directory");
    for (name, text) in [
        ("outside.nft", "add rule ip t c drop"),
        ("inside/a.nft", "add rule ip t c accept"),
        ("inside/d/1.nft", "add rule ip t c tcp dport 1"),
        ("inside/d/2.nft", "add rule ip t c tcp dport 2"),
        ("inside/d/.3.nft", "no text of nft's"),
        ("inside/d/4.txt", "no text of nft's"),
    ] {
        std::fs::write(root.join(name), text).expect("cannot write the file");
    }
    std::os::unix::fs::symlink(root.join("outside.nft"), inside.join("link.nft"))
        .expect("cannot create the link");
    let includes = Directories::new([inside.clone()]);
    let printed = |text: &str| -> Result<Vec<String>, Error> {
        let (commands, _) = parse(Source::new("first", text), &includes)?;
        Ok(rules(&commands).filter_map(printed).collect())
    };
    let found = [
        printed("include \"a.nft\"").unwrap(),
        printed(&format!("include \"{}/a.nft\"", inside.display())).unwrap(),
        printed("include \"d/*.nft\"").unwrap(),
        printed("include \"nothing/*.nft\"").unwrap(),
    ];
    let mut refused = Vec::new();
    for path in [
        "../outside.nft".to_owned(),
        format!("{}", root.join("outside.nft").display()),
        "link.nft".to_owned(),
        "d".to_owned(),
        "missing.nft".to_owned(),
    ] {
        let error = printed(&format!("include \"{path}\"")).unwrap_err();
        refused.push(error.message);
    }
    std::fs::remove_dir_all(&root).expect("cannot remove the directory");
    assert_eq!(found[0], ["accept"]);
    assert_eq!(found[1], ["accept"]);
    assert_eq!(found[2], ["tcp dport 1", "tcp dport 2"]);
    assert_eq!(found[3], Vec::<String>::new());
    for message in &refused[..3] {
        assert!(
            message.contains("is outside of the allowed include directories"),
            "{message}"
        );
    }
    assert!(refused[3].contains("is not a file"), "{}", refused[3]);
    assert!(refused[4].contains("no such file"), "{}", refused[4]);
}

#[test]
fn variables_are_block_scoped() {
    let none = Texts::new([]);
    let text = "define a = 1\ndefine b = { 1, 2 }\ntable ip t {\n\tdefine a = 2\n\tchain c {\n\t\tdefine a = 3\n\
                \t\ttcp dport $a\n\t\tredefine a = 4\n\t\ttcp dport $a\n\t\tundefine a\n\t\ttcp dport $a\n\t}\n\
                \tchain d {\n\t\ttcp dport $a\n\t\ttcp dport { $a, $b, 7 }\n\t\ttcp dport $b\n\t}\n}\n\
                add rule ip t c tcp dport $a\nadd rule ip t c ip saddr $a.0.0.0\n";
    let error = printed_with(&none, text).unwrap_err();
    assert_eq!(error.line, 20, "{error}");
    let text = &text[..text.len() - "add rule ip t c ip saddr $a.0.0.0\n".len()];
    assert_eq!(
        printed_with(&none, text).unwrap(),
        [
            "tcp dport 3",
            "tcp dport 4",
            "tcp dport 2",
            "tcp dport 2",
            "tcp dport { 2, 1, 2, 7 }",
            "tcp dport { 1, 2 }",
            "tcp dport 1"
        ]
    );
}

#[test]
fn variables_expand_to_any_value() {
    let none = Texts::new([]);
    let text = "define net = 10.0.0.0/8\ndefine range = 1-5\ndefine chain = other\ndefine states = established,related\n\
        define eth = \"eth*\"\ndefine flags = syn | ack\ndefine pair = 1.1.1.1 . 22\ndefine word = \"x y\"\n\
        define to = 10.0.0.1\n\
        table ip t {\n\tchain c {\n\t\tip saddr $net tcp dport $range jump $chain\n\t\tct state $states\n\
        \t\tiifname $eth\n\t\ttcp flags $flags\n\t\tip saddr . tcp dport { $pair }\n\t\tlog prefix \"a $word-b$ \"\n\
        \t\tdnat to $to:$range\n\t\tip saddr $to /24\n\t}\n}\n";
    assert_eq!(
        printed_with(&none, text).unwrap(),
        [
            "ip saddr 10.0.0.0/8 tcp dport 1-5 jump other",
            "ct state established,related",
            "iifname \"eth*\"",
            "tcp flags syn | ack",
            "ip saddr . tcp dport { 1.1.1.1 . 22 }",
            "log prefix \"a x y-b$ \"",
            "dnat to 10.0.0.1:1-5",
            "ip saddr 10.0.0.1/24",
        ]
    );
}

/// Parses each line as a text of its own, with the variables of previous lines.
fn printed_lines(lines: &[&str]) -> Vec<Result<Vec<String>, Error>> {
    let mut kept = SavedVariables::default();
    let each = lines.iter().map(|line| {
        let parsed = parse_with_definitions(&kept, Source::new("line", line), &NoIncludes)?;
        kept.keep(parsed.defined.unwrap_or_default());
        Ok(rules(&parsed.commands).filter_map(printed).collect())
    });
    each.collect()
}

#[test]
fn definitions_persist_across_lines() {
    let lines = [
        "define a = 1\ndefine b = $a",
        "add rule ip t c tcp dport { $a, $b }",
        "define a = 2",
        "redefine a = 2",
        "add rule ip t c tcp dport { $a, $b }",
        "table ip t { define a = 3; undefine a; chain c { tcp dport $a; }; }",
        "table ip t { undefine a; }",
        "undefine a; define a = 4; undefine a",
        "add rule ip t c tcp dport $a",
        "undefine a",
        "define a = 5",
        "add rule ip t c tcp dport { $a, $b }",
        "redefine a = 6; undefine a",
        "define a = nonsense",
        "add rule ip t c tcp dport  $a",
    ];
    let printed = printed_lines(&lines);
    let word = |number: usize| printed[number].as_ref().unwrap().join("; ");
    let error = |number: usize| printed[number].as_ref().unwrap_err().to_string();
    assert_eq!(word(1), "tcp dport { 1, 1 }");
    assert!(error(2).contains("`a` is already defined"), "{}", error(2));
    assert_eq!(word(4), "tcp dport { 2, 1 }");
    assert_eq!(word(5), "tcp dport 2");
    assert!(error(6).contains("undefined variable `a`"), "{}", error(6));
    assert_eq!(word(7), "");
    assert!(error(8).contains("did you mean `$b`?"), "{}", error(8));
    assert!(error(9).contains("undefined variable `a`"), "{}", error(9));
    assert_eq!(word(11), "tcp dport { 5, 1 }");
    assert_eq!(word(12), "");
    assert_eq!(word(13), "");
    // A value may be any word; it gets the location of the reference.
    assert_eq!(word(14), "tcp dport nonsense");
}

/// Many previous texts with variables are parsed in linear time.
#[test]
fn many_lines_of_values_are_read_in_linear_time() {
    let mut kept = SavedVariables::default();
    for number in 0..20_000 {
        let line = format!("define v{number} = {number}\n");
        let parsed = parse_with_definitions(&kept, Source::new("line", line), &NoIncludes).unwrap();
        kept.keep(parsed.defined.unwrap());
    }
    let source = Source::new("line", "add rule ip t c tcp dport { $v0, $v19999 }");
    let parsed = parse_with_definitions(&kept, source, &NoIncludes).unwrap();
    let printed: Vec<_> = rules(&parsed.commands).filter_map(printed).collect();
    assert_eq!(printed, ["tcp dport { 0, 19999 }"]);
}
