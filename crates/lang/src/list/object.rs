//! Lists stateful objects.

use std::fmt::{self, Write};

use crate::constant::Plain;
use crate::print::Printer;
use crate::statements::{ObjectKind, object_name};
use chainwright::nft::StatefulObjectRef;

impl<W: Write> Printer<'_, W> {
    pub(crate) fn object(&mut self, object: &StatefulObjectRef<'_>) -> fmt::Result {
        let object_type = object.object_type();
        self.begin(object_name(object_type), object.name(), object.handle())?;
        self.comment(object.comment())?;
        if let Some(data) = object.data() {
            let kind = ObjectKind::find(object_type);
            match kind.and_then(|kind| (kind.lines)(&data, self.options)) {
                Some(lines) => {
                    let mut lines = lines.iter();
                    lines.try_for_each(|line| self.line(format_args!("{line}")))?;
                }
                // nft's language cannot represent the data.
                None => {
                    let data = data.to_string();
                    self.line(format_args!("# {}", Plain(data.as_str().into())))?;
                }
            }
        }
        self.end()
    }
}
