//! `iptables-translate` and `iptables-restore-translate`: translate iptables' commands to `nft`.

use std::fs::File;
use std::io::Write;

use bstr::{BStr, BString, ByteSlice};

use super::error::{ProgramError, Status};
use super::{Program, Translate, as_line};
use crate::iptables::text::{Command, CommandLineOptions, Verb, Word, read, words};
use crate::iptables::{Counters, Family, Rule, builtin, builtins, hook_declaration, nft_name};
use crate::xt::Names;

impl Program {
    pub(super) fn translate(
        &self,
        words: &[BString],
        translate: Translate,
        output: &mut dyn Write,
    ) -> Result<(), ProgramError> {
        let given = as_line(words);
        let (command, cmdline) = Command::cmdline(self.family, false, &Names::system(), &given)
            .map_err(|error| ProgramError::of_parse_error(&error))?;
        if command.for_other_family {
            return Err(ProgramError::parameter("this is for the other family"));
        }
        let mut translated = String::new();
        if cmdline.version {
            translated = format!("{}\n", self.version());
        } else if cmdline.help {
            translated = self.help() + &cmdline.extensions;
        } else if cmdline.listing.is_some_and(|listing| !listing.as_rules) {
            translated = format!("nft list table {} {}\n", self.word(), table_of(&cmdline));
        } else if cmdline.listing.is_some() {
            return Err(not_implemented());
        } else {
            for line in self.in_nft_language(&command, None, table_of(&cmdline), translate)? {
                translated += &match line {
                    // Quoted for a shell.
                    Line::Rule(line) => format!("nft '{}'\n", line.replace('\'', "'\\''")),
                    Line::Other(line) => format!("nft {line}\n"),
                    Line::Inexpressible => format!("nft # {} \n", typed(&without_table(&given))),
                };
            }
        }
        output
            .write_all(translated.as_bytes())
            .map_err(ProgramError::of_output)
    }

    pub(super) fn restore_translate(
        &self,
        words: &[BString],
        translate: Translate,
        output: &mut dyn Write,
    ) -> Result<(), ProgramError> {
        let usage = format!(
            "Usage: {} [-h] [-f <FILE>] [-V]\n\t[ --help ]\n\t[ --file=<FILE> ]\n\t[ --version ]\n",
            self.name
        );
        let mut path = None;
        let mut words = words.iter().map(|word| word.as_bstr());
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"-V" | b"--version" => {
                    let version = format!("{} v{}\n", self.name, super::VERSION);
                    return output
                        .write_all(version.as_bytes())
                        .map_err(ProgramError::of_output);
                }
                b"-f" | b"--file" => path = words.next(),
                [b'-', b'f', name @ ..] => path = Some(name.as_bstr()),
                _ => match word.strip_prefix(b"--file=") {
                    Some(name) => path = Some(name.as_bstr()),
                    None => return Err(ProgramError::bare(Status::Other, usage)),
                },
            }
        }
        let Some(path) = path else {
            let message = format!("ERROR: missing file name\n{usage}");
            return Err(ProgramError::bare(Status::Other, message));
        };
        let file = path.to_path().ok().and_then(|path| File::open(path).ok());
        let file = file.ok_or_else(|| {
            ProgramError::bare(Status::Other, format!("Cannot open file {path}\n"))
        })?;
        let text = read(file).map_err(|error| ProgramError::other(error.to_string()))?;
        let translated = self.translate_text(&text, translate);
        // Print everything before the error.
        let (translated, fault) = match translated {
            Ok(translated) => (translated, None),
            Err((translated, fault)) => (translated, Some(fault)),
        };
        output
            .write_all(translated.as_bytes())
            .map_err(ProgramError::of_output)?;
        fault.map_or(Ok(()), Err)
    }

    fn translate_text(
        &self,
        text: &[u8],
        translate: Translate,
    ) -> Result<String, (String, ProgramError)> {
        let mut translated = format!("# Translated by {} v{}\n", self.name, super::VERSION);
        let mut table: Option<String> = None;
        let mut chains = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let content = line.trim_ascii();
            let failed = || ProgramError::plain(&format!("line {number} failed"));
            let result = match (content.first(), &table) {
                (None | Some(b'#'), _) => Ok(()),
                (Some(b'*'), None) => {
                    let name = content[1..].trim_ascii().to_str_lossy().into_owned();
                    match builtins(&name) {
                        None => Err(failed()),
                        Some(_) => {
                            translated += &format!("add table {} {name}\n", self.word());
                            chains.clear();
                            table = Some(name);
                            Ok(())
                        }
                    }
                }
                (_, None) => Err(failed()),
                (Some(_), Some(_)) if content == b"COMMIT" => {
                    table = None;
                    Ok(())
                }
                (Some(b':'), Some(table)) => {
                    self.declared(table, &content[1..], &mut chains, &mut translated)
                }
                (Some(_), Some(table)) => {
                    self.line_in_nfts_words(table, line, &chains, &mut translated, translate)
                }
            };
            if let Err(fault) = result {
                let fault = match fault.status {
                    Status::Parameter => {
                        fault.followed_by(&format!("Error occurred at line: {number}"))
                    }
                    _ => failed(),
                };
                return Err((translated, fault));
            }
        }
        translated += "# Completed\n";
        Ok(translated)
    }

    fn declared(
        &self,
        table: &str,
        line: &[u8],
        chains: &mut Vec<BString>,
        translated: &mut String,
    ) -> Result<(), ProgramError> {
        let mut fields = line.fields_with(char::is_whitespace);
        let (Some(chain), Some(policy)) = (fields.next(), fields.next()) else {
            return Err(ProgramError::parameter("policy invalid"));
        };
        let shown = in_nft_language(chain)?;
        chains.push(chain.into());
        *translated += &format!("add chain {} {table} {shown}", self.word());
        if let Some(builtin) = builtin(table, &shown) {
            let policy = match policy {
                b"DROP" => "drop",
                _ => "accept",
            };
            *translated += &format!(" {{ {} }}", hook_declaration(self.family, &builtin, policy));
        }
        translated.push('\n');
        Ok(())
    }

    fn line_in_nfts_words(
        &self,
        table: &str,
        line: &[u8],
        chains: &[BString],
        translated: &mut String,
        translate: Translate,
    ) -> Result<(), ProgramError> {
        let of_parse_error = |error| ProgramError::of_parse_error(&error);
        let mut found = Vec::new();
        words(line, &mut found).map_err(of_parse_error)?;
        let (counters, rest) =
            crate::iptables::text::counters_before(&found).map_err(of_parse_error)?;
        let is_chain = |name: &BStr| chains.iter().any(|chain| chain == name);
        let command = Command::parse(self.family, rest, is_chain).map_err(of_parse_error)?;
        for line in self.in_nft_language(&command, counters, table, translate)? {
            *translated += &match line {
                Line::Rule(line) | Line::Other(line) => format!("{line}\n"),
                Line::Inexpressible => format!("# -t {table} {} \n", typed(rest)),
            };
        }
        Ok(())
    }

    /// Translates a command to nft's language, without the program's name.
    fn in_nft_language(
        &self,
        command: &Command,
        counters: Option<Counters>,
        table: &str,
        translate: Translate,
    ) -> Result<Vec<Line>, ProgramError> {
        let family = self.word();
        let chain = command.chain.as_ref().map(|chain| in_nft_language(chain));
        let chain = chain.transpose()?;
        let place = match (&command.verb, &chain) {
            (Verb::Append, Some(chain)) => format!("add rule {family} {table} {chain}"),
            (Verb::Insert(1), Some(chain)) => format!("insert rule {family} {table} {chain}"),
            // Numbers start at 1 and indexes at 0.
            (Verb::Insert(number), Some(chain)) => {
                format!("insert rule {family} {table} {chain} index {}", number - 1)
            }
            (Verb::NewChain, Some(chain)) => {
                return Ok(vec![Line::Other(format!(
                    "add chain {family} {table} {chain}"
                ))]);
            }
            (Verb::DeleteChain, Some(chain)) => {
                return Ok(vec![Line::Other(format!(
                    "delete chain {family} {table} {chain}"
                ))]);
            }
            (Verb::Flush, Some(chain)) => {
                return Ok(vec![Line::Other(format!(
                    "flush chain {family} {table} {chain}"
                ))]);
            }
            (Verb::Flush, None) => {
                return Ok(vec![Line::Other(format!("flush table {family} {table}"))]);
            }
            _ => return Err(not_implemented()),
        };
        let counters = command.spec.counters.or(counters);
        let line = |rule: Rule| match translate(&rule, self.family, counters) {
            Some(words) => Line::Rule(format!("{place} {words}")),
            None => Line::Inexpressible,
        };
        Ok(command.spec.clone().rules().map(line).collect())
    }

    const fn word(&self) -> &'static str {
        match self.family {
            Family::Ipv4 => "ip",
            Family::Ipv6 => "ip6",
        }
    }
}

/// A translated command.
enum Line {
    /// A command with a rule.
    Rule(String),
    Other(String),
    /// A rule that nft's language cannot express.
    Inexpressible,
}

/// Joins the words as typed.
fn typed(words: &[Word<'_>]) -> String {
    let words = words.iter().map(|word| word.bytes.to_str_lossy());
    let words: Vec<_> = words
        .map(|word| word.replace(char::is_control, "?"))
        .collect();
    words.join(" ")
}

/// Removes `-t` and its value.
fn without_table<'a>(words: &[Word<'a>]) -> Vec<Word<'a>> {
    let is_table = |word: &Word<'_>| matches!(&*word.bytes, b"-t" | b"--table");
    let mut words = words.to_vec();
    if let Some(at) = words.iter().position(is_table) {
        words.drain(at..words.len().min(at + 2));
    }
    words
}

fn table_of(cmdline: &CommandLineOptions) -> &str {
    cmdline.table.as_deref().unwrap_or("filter")
}

/// Returns a chain's name if nft's language can express it.
fn in_nft_language(chain: &[u8]) -> Result<String, ProgramError> {
    let cannot = || {
        ProgramError::parameter(format!(
            "nft's language cannot hold {:?}",
            chain.as_bstr().to_string()
        ))
    };
    nft_name(chain.as_bstr()).ok_or_else(cannot)
}

fn not_implemented() -> ProgramError {
    ProgramError::bare(Status::Other, "Translation not implemented\n")
}
