//! Lists sets and maps with their elements.

use std::fmt::{self, Write};

use crate::dialect::{Form, NftVersion};
use crate::print::Printer;
use crate::read::set::{self, SetReader};
use crate::statements::object_name;
use crate::types;
use crate::value::fields;
use chainwright::nft::{
    DataType, Milliseconds, Part, SetFlags, SetPolicy, SetRef, SnapshotSet, is_map, is_meter,
};

impl<W: Write> Printer<'_, W> {
    pub(crate) fn set(&mut self, set: &SnapshotSet<'_>) -> fmt::Result {
        let view = set.set();
        let reader = SetReader::named(set, self.options.nft_version);
        let flags = view.flags().unwrap_or_default();
        let is_map = is_map(flags);
        let what = match (is_map, is_meter(&view)) {
            (_, true) => "meter",
            (true, _) => "map",
            (false, _) => "set",
        };
        self.begin(what, view.name(), view.handle())?;
        self.declared(&view, &reader, is_map)?;
        self.out.write_char('\n')?;
        if !flags.contains(SetFlags::CONSTANT) {
            if view.policy() == Some(SetPolicy::MEMORY) {
                self.line(format_args!("policy memory"))?;
            }
            if let Some(size) = set::size(&view) {
                // In one line, a comment would hide what follows.
                let has_count =
                    self.options.has(Form::SetCount) && !self.in_line && !self.is_lookup;
                match view.count().filter(|_| has_count) {
                    Some(count @ 1..) => {
                        self.line(format_args!("size {size}\t# count {count}"))?;
                    }
                    _ => self.line(format_args!("size {size}"))?,
                }
            }
        }
        self.set_flags(&view, flags)?;
        if merges(&view) {
            self.line(format_args!("auto-merge"))?;
        }
        if !self.is_lookup {
            self.set_statements(&view)?;
        }
        if let Some(timeout) = view.timeout() {
            let time = self.options.time(Milliseconds::from(timeout).0);
            self.line(format_args!("timeout {time}"))?;
        }
        if let Some(interval) = view.gc_interval() {
            let time = self.options.time(Milliseconds::from(interval).0);
            self.line(format_args!("gc-interval {time}"))?;
        }
        if !self.is_lookup {
            self.comment(view.comment())?;
        }
        if !self.options.terse && !self.in_line {
            self.elements(&reader)?;
        }
        self.end()
    }

    /// Prints `type ipv4_addr : verdict`, or `typeof ip saddr : verdict`.
    fn declared(&mut self, set: &SetRef<'_>, reader: &SetReader<'_>, is_map: bool) -> fmt::Result {
        self.indent()?;
        match &reader.key_typeof {
            Some(key) => {
                self.out.write_str("typeof ")?;
                self.expr(key)?;
            }
            None => {
                self.out.write_str("type ")?;
                self.data_type(set.key_type().unwrap_or_default())?;
            }
        }
        if !is_map {
            return Ok(());
        }
        self.out.write_str(" : ")?;
        if reader.has_ranges() {
            self.out.write_str("interval ")?;
        }
        match (&reader.data_typeof, set.object_type()) {
            (Some(data), _) => self.expr(data),
            (None, Some(object)) => self.out.write_str(object_name(object)),
            (None, None) => self.data_type(set.data_type().unwrap_or_default()),
        }
    }

    fn data_type(&mut self, data_type: DataType) -> fmt::Result {
        for (index, field) in fields(data_type).into_iter().enumerate() {
            if index > 0 {
                self.out.write_str(" . ")?;
            }
            match types::info(field) {
                Some(info) => self.out.write_str(info.name)?,
                None => write!(self.out, "type {}", field.0)?,
            }
        }
        Ok(())
    }

    fn set_flags(&mut self, set: &SetRef<'_>, flags: SetFlags) -> fmt::Result {
        let shown = match set.timeout() {
            Some(_) => flags - SetFlags::TIMEOUT, // implied
            None => flags,
        };
        let words = [
            (SetFlags::CONSTANT, "constant"),
            (SetFlags::EVAL, "dynamic"),
            (SetFlags::INTERVAL, "interval"),
            (SetFlags::TIMEOUT, "timeout"),
        ];
        if words.iter().any(|(flag, _)| shown.contains(*flag)) {
            self.flags_line(flags, &words)?;
        }
        Ok(())
    }

    fn set_statements(&mut self, set: &SetRef<'_>) -> fmt::Result {
        let Some(statements) = set::statements(set) else {
            return self.line(format_args!("# statements that nft cannot express"));
        };
        if statements.is_empty() {
            return Ok(());
        }
        self.indent()?;
        for (index, statement) in statements.iter().enumerate() {
            if index > 0 {
                self.out.write_char(' ')?;
            }
            self.plans = true;
            statement.print(self)?;
            self.plans = false;
        }
        self.out.write_char('\n')
    }

    fn elements(&mut self, reader: &SetReader<'_>) -> fmt::Result {
        if reader.is_left_out() {
            return self.line(format_args!("# elements that were not read"));
        }
        let Some(elements) = reader.elements() else {
            return self.line(format_args!("# elements that nft cannot express"));
        };
        if elements.is_empty() {
            return Ok(());
        }
        let is_alone = self.options.has(Form::ElementLines)
            && reader.has_long_elements(&elements, self.is_lookup);
        let in_line = match is_alone {
            true => 1,
            false => reader.key_type().map_or(1, elements_in_line),
        };
        self.indent()?;
        self.out.write_str("elements = { ")?;
        for (index, element) in elements.iter().enumerate() {
            match index {
                0 => {}
                index if index.is_multiple_of(in_line) => {
                    self.out.write_str(",\n\t\t\t     ")?;
                }
                _ => self.out.write_str(", ")?,
            }
            self.element(element)?;
        }
        self.out.write_str(" }\n")
    }
}

/// Returns `true` if a set belongs to a part, as a version of nft defines meters.
pub(crate) fn is_in(part: Part<'_>, set: &SetRef<'_>, version: NftVersion) -> bool {
    let is_of_meters = matches!(part, Part::Meters | Part::Meter(_));
    part.has_set(set) && (!is_of_meters || version.has(Form::DynamicMeters) || is_meter(set))
}

/// Returns `true` if nft merges overlapping ranges of a set (`auto-merge`).
pub(crate) fn merges(set: &SetRef<'_>) -> bool {
    use chainwright::nft::userdata::{SET_MERGE_ELEMENTS, UserData};
    let noted = set
        .userdata()
        .and_then(|data| UserData::new(data).number(SET_MERGE_ELEMENTS));
    noted.is_some_and(|number| number != 0)
}

/// Returns the number of elements that nft prints per line.
const fn elements_in_line(key: DataType) -> usize {
    match key {
        DataType::NF_PROTO
        | DataType::INTEGER
        | DataType::ARP_OP
        | DataType::INET_PROTO
        | DataType::INET_SERVICE
        | DataType::TCP_FLAG
        | DataType::DCCP_PKTTYPE
        | DataType::MARK
        | DataType::IFACE_INDEX
        | DataType::CLASSID
        | DataType::UID
        | DataType::GID
        | DataType::CT_DIR => 5,
        DataType::IPV4_ADDR | DataType::CT_STATE | DataType::CT_STATUS | DataType::PKT_TYPE => 2,
        _ => 1,
    }
}
