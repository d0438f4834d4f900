//! An instruction's opcode with its modifiers sorted: types apart from words.
//!
//! Whoever lowers an opcode takes the words that it understands. A word that is left over is a part of the instruction that
//! nobody honoured, so the instruction is refused: a modifier can't be overlooked.

use crate::code::Class;
use crate::ptx::ast::{Instruction, Scalar};

/// Opcode, types in order, and the words that nobody took yet.
#[derive(Debug, Clone)]
pub struct Form<'a> {
    /// `ld`, `setp`.
    pub opcode: &'a str,
    /// `[F32, S32]` of `cvt.rn.f32.s32`.
    pub types: Vec<Scalar>,
    words: Vec<&'a str>,
}

impl<'a> Form<'a> {
    /// Sorts an instruction's modifiers.
    #[must_use]
    pub fn new(instruction: &'a Instruction) -> Self {
        let mut form = Form { opcode: &instruction.opcode, types: Vec::new(), words: Vec::new() };
        for word in &instruction.modifiers {
            match scalar(word) {
                Some(ty) => form.types.push(ty),
                None => form.words.push(word),
            }
        }
        form
    }

    /// Takes a word, if it is there.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.words.iter().position(|w| *w == word);
        if let Some(at) = found {
            self.words.remove(at);
        }
        found.is_some()
    }

    /// Takes the first word that is one of these.
    pub fn take_any(&mut self, words: &[&str]) -> Option<&'a str> {
        let at = self.words.iter().position(|w| words.contains(w))?;
        Some(self.words.remove(at))
    }

    /// The words that nobody took.
    #[must_use]
    pub fn rest(&self) -> &[&'a str] {
        &self.words
    }

    /// The last type: what most instructions operate on.
    #[must_use]
    pub fn ty(&self) -> Option<Scalar> {
        self.types.last().copied()
    }
}

/// The type that a modifier names.
#[must_use]
pub fn scalar(word: &str) -> Option<Scalar> {
    use Scalar::*;
    Some(match word {
        "b8" => B8,
        "b16" => B16,
        "b32" => B32,
        "b64" => B64,
        "b128" => B128,
        "u8" => U8,
        "u16" => U16,
        "u32" => U32,
        "u64" => U64,
        "s8" => S8,
        "s16" => S16,
        "s32" => S32,
        "s64" => S64,
        "f16" => F16,
        "f16x2" => F16x2,
        "bf16" => Bf16,
        "bf16x2" => Bf16x2,
        "tf32" => Tf32,
        "e4m3" => E4m3,
        "e5m2" => E5m2,
        "e4m3x2" => E4m3x2,
        "e5m2x2" => E5m2x2,
        "f32" => F32,
        "f64" => F64,
        "pred" => Pred,
        _ => return None,
    })
}

/// Bytes of a type in memory; 0 for predicates and opaque references.
#[must_use]
pub fn size(ty: Scalar) -> u32 {
    use Scalar::*;
    match ty {
        B8 | U8 | S8 | E4m3 | E5m2 => 1,
        B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 => 2,
        B32 | U32 | S32 | F16x2 | Bf16x2 | Tf32 | F32 => 4,
        B64 | U64 | S64 | F64 | Texref | Samplerref | Surfref => 8,
        B128 => 16,
        Pred => 0,
    }
}

/// The class of a register of this type.
#[must_use]
pub fn class(ty: Scalar) -> Class {
    match size(ty) {
        0 => Class::Predicate,
        16 => Class::Quad,
        8 => Class::Double,
        _ => Class::Single,
    }
}

/// `s8` to `s64`.
#[must_use]
pub fn is_signed(ty: Scalar) -> bool {
    matches!(ty, Scalar::S8 | Scalar::S16 | Scalar::S32 | Scalar::S64)
}
