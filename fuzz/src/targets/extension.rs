//! Matches and targets: data with a typed form is written so that it is read as the same, and its text is
//! parsed to the same or refused.

use chainwright::iptables::{Protocol, Rule, Target as RuleTarget};
use chainwright::xt::{self, Encoded, Match};

use super::{FAMILIES, FakeSetNames};
use crate::Target;
use crate::mutate::InputFormat;

/// The target: flags (1: IPv6, 2: a target), a revision, the length of a name, the name, the data.
pub const TARGET: Target = Target {
    name: "extension",
    input_format: InputFormat::Bytes,
    run,
};

/// The input for an extension.
#[must_use]
pub fn input(ipv6: bool, target: bool, encoded: &Encoded<'_>) -> Vec<u8> {
    let flags = u8::from(ipv6) | u8::from(target) << 1;
    let mut bytes = vec![flags, encoded.revision, encoded.name.len() as u8];
    bytes.extend(encoded.name.as_bytes());
    bytes.extend(&*encoded.info);
    bytes
}

/// The protocols that extensions require: none, TCP, UDP, ICMP, ICMPv6, and the others of `-m`.
const PROTOCOLS: [Option<u8>; 12] = [
    None,
    Some(6),
    Some(17),
    Some(1),
    Some(58),
    Some(132),
    Some(33),
    Some(136),
    Some(50),
    Some(51),
    Some(108),
    Some(135),
];

fn run(input: &[u8]) {
    let [flags, revision, length, rest @ ..] = input else {
        return;
    };
    let Some((name, data)) = rest.split_at_checked(usize::from(*length)) else {
        return;
    };
    let Ok(name) = std::str::from_utf8(name) else {
        return;
    };
    let family = FAMILIES[usize::from(flags & 1)];
    if flags & 2 == 0 {
        let value = Match::read(family, name, *revision, data);
        let _ = format!("{value} {value:?} {}", value.has_effects());
        if let Match::Opaque(opaque) = &value {
            assert_eq!(opaque.info, data);
            return;
        }
        let encoded = value.encode(family).expect("data contains no set names");
        let again = Match::read(family, encoded.name, encoded.revision, &encoded.info);
        assert_eq!(again, value, "written as {encoded:?}");
        let mut named = value.clone();
        if named.name_sets(&mut FakeSetNames).is_ok() {
            check_text(family, |protocol| Rule {
                protocol,
                matches: vec![named.clone()],
                ..Rule::default()
            });
        }
    } else {
        let value = xt::Target::read(family, name, *revision, data);
        let _ = format!("{value} {value:?} {}", value.has_effects());
        if let xt::Target::Opaque(opaque) = &value {
            assert_eq!(opaque.info, data);
            return;
        }
        let encoded = value.encode(family).expect("data contains no set names");
        let again = xt::Target::read(family, encoded.name, encoded.revision, &encoded.info);
        assert_eq!(again, value, "written as {encoded:?}");
        let mut named = value.clone();
        if named.name_sets(&mut FakeSetNames).is_ok() {
            check_text(family, |protocol| Rule {
                protocol,
                target: RuleTarget::Extension(named.clone()),
                ..Rule::default()
            });
        }
    }
}

/// For any protocol of the rule, its text is parsed to the same rule or refused. (Rules without a textual
/// form are not covered here, but by the targets that decode complete rules.)
fn check_text(family: xt::Family, rule: impl Fn(Option<Protocol>) -> Rule) {
    for number in PROTOCOLS {
        let rule = rule(number.map(|number| Protocol {
            number,
            invert: false,
        }));
        let mut text = xt::Text::new();
        rule.print(&mut text);
        if let Ok(parsed) = Rule::parse(family, text.as_bytes()) {
            assert!(
                parsed.means_the_same(&rule),
                "{family:?}: {:?} is parsed as another rule:\n{rule:?}\n{parsed:?}",
                bstr::BStr::new(text.as_bytes())
            );
        }
    }
}
