//! PTX text and its syntax tree.
//!
//! Source: "Parallel Thread Execution ISA", NVIDIA, versions 6.0 to 9.x. The tree keeps opcodes and modifiers as they are
//! written; what they mean is decided where the tree is lowered, so that an instruction that is not known there can be
//! named, with its line, exactly as it stands in the text.

pub mod ast;
