//! Operations on elements: any number, in as many messages as needed.

use std::borrow::Borrow;

use chainwright_sys::netlink::{NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL};
#[doc(hidden)]
use chainwright_sys::nf_tables::{NFTA_DATA_VALUE, NFTA_SET_ELEM_DATA, NFTA_SET_ELEM_KEY};
use chainwright_sys::nf_tables::{NFTA_LIST_ELEM, NFTA_SET_ELEM_LIST_ELEMENTS};

use super::{ATTRIBUTE, Transaction};
use crate::netlink::{MessageError, MessageErrorKind, MessageWriter};
use crate::nft::explain::name_of_operation;
use crate::nft::object::Identified as _;
use crate::nft::{Element, Elements, SetId};

impl Transaction {
    /// Adds elements to a set, in as many messages as needed; each message is one operation. An existing element stays;
    /// in a map, different data for it is an error. Without elements no operation is added.
    ///
    /// Ranges of [`Element::interval`] can be in any order. Nothing is allocated per element.
    ///
    /// The kernel does not detect a range that overlaps an [`Element::open_interval`]; [`Ranges`](crate::nft::Ranges)
    /// does.
    ///
    /// ```
    /// use chainwright::nft::{DataType, Element, Family, Set, Table, Transaction};
    ///
    /// # fn main() -> Result<(), chainwright::Error> {
    /// let set = Set::new(Family::IP, "example", "blocked", DataType::IPV4_ADDR, 4);
    /// let addresses = [[192, 0, 2, 1], [192, 0, 2, 2]];
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::IP, "example"))?;
    /// tx.add(&set)?;
    /// tx.add_elements(&set.set_id(), addresses.iter().map(Element::new))?;
    /// assert_eq!(tx.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`MessageError`] if a single element, or a name, does not fit into a message; the transaction is then unchanged.
    #[inline]
    pub fn add_elements<'e, E: Borrow<Element<'e>>>(
        &mut self,
        set: &SetId<'_>,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<&mut Self, MessageError> {
        let kind = (Elements::MESSAGES.new, NLM_F_CREATE);
        self.elements(kind, set, elements, |element, writer| {
            Element::write_attributes(element.borrow(), writer);
        })
    }

    /// Adds elements that must not exist, like [`add_elements`](Self::add_elements).
    ///
    /// # Errors
    /// Same as [`add_elements`](Self::add_elements).
    #[inline]
    pub fn create_elements<'e, E: Borrow<Element<'e>>>(
        &mut self,
        set: &SetId<'_>,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<&mut Self, MessageError> {
        let kind = (Elements::MESSAGES.new, NLM_F_CREATE | NLM_F_EXCL);
        self.elements(kind, set, elements, |element, writer| {
            Element::write_attributes(element.borrow(), writer);
        })
    }

    /// Deletes elements, which must exist, by key, in as many messages as needed. Delete a range by the same elements
    /// that added it. Without elements no operation is added.
    ///
    /// For an [`Element::open_interval`] the kernel deletes the first element of any range with that start;
    /// [`Connection::change_ranges`](crate::nft::Connection::change_ranges) rejects one that is not in the set.
    ///
    /// # Errors
    /// Same as [`add_elements`](Self::add_elements).
    #[inline]
    pub fn delete_elements<'e, E: Borrow<Element<'e>>>(
        &mut self,
        set: &SetId<'_>,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<&mut Self, MessageError> {
        let kind = (Elements::MESSAGES.delete, 0);
        let nft_compatible = self.nft_compatible;
        self.elements(
            kind,
            set,
            elements,
            |element, writer| match nft_compatible {
                true => Element::write_attributes(element.borrow(), writer),
                false => Element::write_named(element.borrow(), writer),
            },
        )
    }

    /// Deletes the elements that exist (Linux 6.3; before, the commit fails with `EINVAL`), like
    /// [`delete_elements`](Self::delete_elements). For a range that is not in the set, but starts or ends where another
    /// one does, the kernel deletes only that element: check [`Ranges::missing`](crate::nft::Ranges::missing) before.
    ///
    /// # Errors
    /// Same as [`add_elements`](Self::add_elements).
    #[inline]
    pub fn destroy_elements<'e, E: Borrow<Element<'e>>>(
        &mut self,
        set: &SetId<'_>,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<&mut Self, MessageError> {
        let kind = (Elements::MESSAGES.destroy, 0);
        self.elements(kind, set, elements, |element, writer| {
            Element::write_named(element.borrow(), writer);
        })
    }

    /// Adds elements with only a key and optional data, encoded as by [`add_elements`](Self::add_elements); for very
    /// many elements.
    ///
    /// # Errors
    /// Same as [`add_elements`](Self::add_elements).
    #[doc(hidden)]
    pub fn add_pairs<'e>(
        &mut self,
        set: &SetId<'_>,
        pairs: impl IntoIterator<Item = (&'e [u8], Option<&'e [u8]>)>,
    ) -> Result<&mut Self, MessageError> {
        let kind = (Elements::MESSAGES.new, NLM_F_CREATE);
        self.elements(kind, set, pairs, |(key, data), writer| {
            writer.nested(NFTA_SET_ELEM_KEY, |writer| {
                writer.bytes(NFTA_DATA_VALUE, key);
            });
            if let Some(data) = data {
                writer.nested(NFTA_SET_ELEM_DATA, |writer| {
                    writer.bytes(NFTA_DATA_VALUE, data);
                });
            }
        })
    }

    /// Deletes all elements of a set.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn flush_set(&mut self, set: &SetId<'_>) -> Result<&mut Self, MessageError> {
        self.operation(Elements::MESSAGES.delete, 0, set.family, |writer| {
            set.write_for_all(writer);
        })
    }

    /// Writes elements into messages of this type with these flags.
    #[inline]
    fn elements<E>(
        &mut self,
        kind: (u8, u16),
        set: &SetId<'_>,
        elements: impl IntoIterator<Item = E>,
        write: impl Fn(&E, &mut MessageWriter<'_>),
    ) -> Result<&mut Self, MessageError> {
        self.unseal();
        let before = (self.buffer.len(), self.operations, self.last);
        let written = self.write_elements(kind, set, elements, write);
        if written.is_err() {
            self.buffer.truncate(before.0);
            (self.operations, self.last) = (before.1, before.2);
        }
        self.seal();
        written.map(|()| self)
    }

    #[inline]
    fn write_elements<E>(
        &mut self,
        kind: (u8, u16),
        set: &SetId<'_>,
        elements: impl IntoIterator<Item = E>,
        write: impl Fn(&E, &mut MessageWriter<'_>),
    ) -> Result<(), MessageError> {
        let mut open = None;
        let mut number = NFTA_LIST_ELEM;
        for element in elements {
            self.element(kind, set, &mut open, &mut number, |writer| {
                write(&element, writer);
            })?;
        }
        if let Some(list) = open {
            self.close_elements(list, self.buffer.len());
        }
        Ok(())
    }

    /// Writes an element into the message whose list starts at `open`, or begins a new one. `number` is the type of its
    /// attribute, and is advanced to that of the next.
    #[inline]
    fn element(
        &mut self,
        kind: (u8, u16),
        set: &SetId<'_>,
        open: &mut Option<usize>,
        number: &mut u16,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<(), MessageError> {
        let list = match *open {
            Some(list) => list,
            None => *open.insert(self.open_elements(kind, set)?),
        };
        let start = self.buffer.len();
        let mut writer = MessageWriter::bare(&mut self.buffer);
        writer.nested(*number, content);
        writer.finish_bare()?;
        if self.buffer.len() - list > usize::from(u16::MAX) {
            self.carry_over(kind, set, open, start)?;
            *number = NFTA_LIST_ELEM;
        }
        if self.nft_compatible {
            *number += 1; // a message has room for less than 2^14
        }
        Ok(())
    }

    /// Moves the element at `start` into a new message.
    #[cold]
    fn carry_over(
        &mut self,
        kind: (u8, u16),
        set: &SetId<'_>,
        open: &mut Option<usize>,
        start: usize,
    ) -> Result<(), MessageError> {
        let end = self.buffer.len();
        let length = end - start;
        if ATTRIBUTE + length > usize::from(u16::MAX) {
            return Err(MessageError {
                attribute: NFTA_SET_ELEM_LIST_ELEMENTS,
                error_kind: MessageErrorKind::TooLong { length },
                operation: Some(name_of_operation(kind.0, kind.1)),
            });
        }
        if let Some(list) = *open {
            self.close_elements(list, start);
        }
        // The new message is begun after the element, and swapped with it.
        let list = self.open_elements(kind, set)?;
        self.buffer[start..].rotate_left(length);
        self.last = start;
        let list = list - length;
        *open = Some(list);
        // It is the first element of that message.
        let first = (NFTA_LIST_ELEM | NLA_F_NESTED).to_ne_bytes();
        self.buffer[list + ATTRIBUTE + 2..list + ATTRIBUTE + 4].copy_from_slice(&first);
        Ok(())
    }

    /// Begins a message of elements; returns the offset of the attribute with its list.
    fn open_elements(&mut self, kind: (u8, u16), set: &SetId<'_>) -> Result<usize, MessageError> {
        self.write_operation(kind.0, kind.1, set.family, |writer| {
            set.write(writer);
            writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |_| {});
        })?;
        Ok(self.buffer.len() - ATTRIBUTE)
    }

    /// Ends the last message of elements: writes its length and that of its list.
    fn close_elements(&mut self, list: usize, end: usize) {
        let length = (end - list) as u16; // checked before an element stays in the list
        self.buffer[list..list + 2].copy_from_slice(&length.to_ne_bytes());
        let message = self.last;
        let length = (end - message) as u32;
        self.buffer[message..message + 4].copy_from_slice(&length.to_ne_bytes());
    }
}
