//! Every expression: what is written is read back.
