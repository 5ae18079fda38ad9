//! Writes HTML. Texts are escaped; only constants are written as they are.

use crate::output::Printable;

/// HTML. Elements are balanced if [`element`](Self::element) writes them.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Writes a constant as it is.
    pub(super) fn raw(&mut self, html: &'static str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Writes a text, whatever it contains.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for c in Printable(text).to_string().chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }

    /// Writes an element with a text. `tag` may have attributes.
    pub(super) fn element(&mut self, tag: &'static str, text: &str) -> &mut Self {
        self.open(tag).text(text).close(tag)
    }

    /// Writes the start of an element.
    pub(super) fn open(&mut self, tag: &'static str) -> &mut Self {
        self.raw("<").raw(tag).raw(">")
    }

    /// Writes the end of an element.
    pub(super) fn close(&mut self, tag: &'static str) -> &mut Self {
        let name = tag.split(' ').next().unwrap_or(tag);
        self.raw("</").raw(name).raw(">\n")
    }

    /// Writes a picture of the graph, whose texts are escaped.
    pub(super) fn svg(&mut self, svg: &chainwright_trace::graph::Svg<'_, '_>) -> &mut Self {
        // HTML needs no namespace.
        let picture = svg.to_string();
        self.0
            .push_str(&picture.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1));
        self
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}
