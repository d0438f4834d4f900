//! Machine code as text, read far enough to follow values through it.
//!
//! An instruction is a predicate, an opcode with modifiers, and operands, the results first: `@!P0 LDG.E R2, desc[UR6][R4.64]`. Where a
//! value comes from is looked for backwards by address; branches are not followed, so that the answer is the likely one, and the rules
//! that use it say "from".

use super::model::{Access, Instruction};

/// The parts of one instruction's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sass<'t> {
    /// The predicate's number, without its sign.
    pub predicate: Option<u8>,
    /// The opcode without modifiers: `LDG`.
    pub opcode: &'t str,
    /// The modifiers: `E.64`.
    pub modifiers: &'t str,
    /// The operands.
    pub operands: Vec<&'t str>,
}

impl<'t> Sass<'t> {
    /// Reads an instruction. `None` for a text that is none.
    pub fn parse(text: &'t str) -> Option<Self> {
        let text = text.trim().trim_end_matches(';').trim_end();
        let (predicate, rest) = match text.strip_prefix('@') {
            Some(rest) => {
                let (predicate, rest) = rest.split_once(char::is_whitespace)?;
                (
                    predicate
                        .trim_start_matches('!')
                        .strip_prefix('P')
                        .and_then(|number| number.parse().ok()),
                    rest.trim_start(),
                )
            }
            None => (None, text),
        };
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (opcode, modifiers) = name.split_once('.').unwrap_or((name, ""));
        if opcode.is_empty()
            || !opcode.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        {
            return None;
        }
        let operands = operands.split(',').map(str::trim).filter(|operand| !operand.is_empty()).collect();
        Some(Self { predicate, opcode, modifiers, operands })
    }

    /// What it does to memory, if it does anything.
    pub fn access(&self) -> Option<Access> {
        Some(match self.opcode {
            "LDG" | "LD" | "LDGSTS" => Access::GlobalLoad,
            "STG" | "ST" => Access::GlobalStore,
            "RED" | "REDG" | "ATOM" | "ATOMG" => Access::GlobalAtomic,
            "LDS" | "LDSM" => Access::SharedLoad,
            "STS" | "STSM" => Access::SharedStore,
            "ATOMS" => Access::SharedAtomic,
            "LDL" => Access::LocalLoad,
            "STL" => Access::LocalStore,
            _ => return None,
        })
    }

    /// Whether it computes in double precision.
    pub fn is_double(&self) -> bool {
        matches!(self.opcode, "DFMA" | "DADD" | "DMUL" | "DSETP" | "DMNMX")
    }

    /// Whether it makes a double of a float, or back.
    pub fn converts_double(&self) -> bool {
        self.opcode == "F2F" && self.modifiers.contains("F64") && self.modifiers.contains("F32")
    }

    /// Whether it jumps.
    pub fn is_branch(&self) -> bool {
        matches!(self.opcode, "BRA" | "BRX" | "JMP" | "JMX" | "BRXU" | "EXIT" | "RET" | "CALL" | "BREAK")
    }

    /// Whether it writes this predicate.
    pub fn defines_predicate(&self, number: u8) -> bool {
        let name = format!("P{number}");
        self.operands.iter().take(2).any(|operand| *operand == name)
            && !matches!(self.opcode, "SEL" | "FSEL" | "BRA" | "EXIT")
    }

    /// The first register it writes, and how many more.
    fn result(&self) -> Option<(u16, u16)> {
        if matches!(
            self.opcode,
            "STG" | "STS" | "STL" | "ST" | "RED" | "REDG" | "BAR" | "BRA" | "EXIT" | "BSSY" | "BSYNC" | "NOP"
        ) {
            return None;
        }
        let first = register(self.operands.first()?)?;
        let wide = if self.modifiers.contains("128") {
            4
        } else if self.modifiers.split('.').any(|part| part == "64" || part == "WIDE" || part == "F64")
            || self.is_double()
        {
            2
        } else {
            1
        };
        Some((first, wide))
    }

    /// Whether it writes this register.
    pub fn defines_register(&self, register: u16) -> bool {
        self.result().is_some_and(|(first, count)| (first..first.saturating_add(count)).contains(&register))
    }

    /// The registers it reads.
    pub fn uses(&self) -> Vec<u16> {
        let skip = usize::from(self.result().is_some());
        let mut found = Vec::new();
        for operand in self.operands.iter().skip(skip) {
            for part in operand.split(['[', ']', '+', '.', '-', '|', '!', '~']) {
                if let Some(number) = register(part) {
                    found.push(number);
                    if operand.contains(&format!("R{number}.64")) {
                        found.push(number + 1);
                    }
                }
            }
        }
        found
    }
}

/// The number of a general register: `R12`. Not `RZ`, not a uniform register.
fn register(operand: &str) -> Option<u16> {
    let name = operand.trim().trim_start_matches(['-', '|', '!', '~']);
    let digits: &str = name.strip_prefix('R')?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

impl Instruction {
    /// What it does to memory, if it does anything.
    pub fn access(&self) -> Option<Access> {
        Sass::parse(&self.text)?.access()
    }
}

/// The instruction that last wrote the predicate of `code[at]`.
pub(super) fn predicate_source(code: &[Instruction], at: usize) -> Option<&Instruction> {
    let number = Sass::parse(&code.get(at)?.text)?.predicate?;
    code[..at]
        .iter()
        .rev()
        .find(|earlier| Sass::parse(&earlier.text).is_some_and(|sass| sass.defines_predicate(number)))
}

/// The access to memory that last wrote a register that `code[at]` reads, and that `accept` takes.
pub(super) fn load_source(
    code: &[Instruction],
    at: usize,
    accept: impl Fn(&Sass<'_>) -> bool,
) -> Option<&Instruction> {
    let sass = Sass::parse(&code.get(at)?.text)?;
    let mut found: Option<&Instruction> = None;
    for register in sass.uses() {
        let writer = code[..at].iter().rev().find(|earlier| {
            Sass::parse(&earlier.text).is_some_and(|earlier| earlier.defines_register(register))
        });
        if let Some(writer) = writer
            && Sass::parse(&writer.text).is_some_and(|sass| accept(&sass))
            && found.is_none_or(|known| writer.address > known.address)
        {
            found = Some(writer);
        }
    }
    found
}

/// The last instruction before `code[at]`, or itself, with such an opcode.
pub(super) fn last_before(
    code: &[Instruction],
    at: usize,
    wanted: impl Fn(&str) -> bool,
) -> Option<&Instruction> {
    code.get(..=at)?
        .iter()
        .rev()
        .find(|earlier| Sass::parse(&earlier.text).is_some_and(|sass| wanted(sass.opcode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(lines: &[&str]) -> Vec<Instruction> {
        let make = |(at, text): (usize, &&str)| Instruction {
            address: 16 * at as u64,
            text: (*text).to_owned(),
            line: Some(at as u32 + 1),
            ..Instruction::default()
        };
        lines.iter().enumerate().map(make).collect()
    }

    #[test]
    fn an_instruction_has_a_predicate_an_opcode_and_operands() {
        let sass = Sass::parse("@!P0  LDG.E R2, desc[UR6][R4.64]").unwrap();
        assert_eq!((sass.predicate, sass.opcode, sass.modifiers), (Some(0), "LDG", "E"));
        assert_eq!(sass.access(), Some(Access::GlobalLoad));
        assert_eq!(sass.uses(), [4, 5]);
        assert!(sass.defines_register(2) && !sass.defines_register(3));
        assert!(Sass::parse("LDG.E.128 R4, desc[UR4][R2.64]").unwrap().defines_register(7));
        assert!(Sass::parse("int i = blockIdx.x;").is_none());
        assert!(Sass::parse("").is_none());
        assert!(Sass::parse("...").is_none());
        assert!(Sass::parse("F2F.F64.F32 R4, R0").unwrap().converts_double());
    }

    #[test]
    fn a_predicate_comes_from_the_last_comparison_that_wrote_it() {
        let code = code(&[
            "ISETP.GE.AND P0, PT, R5, UR4, PT",
            "LOP3.LUT P1, RZ, R3, 0x3, RZ, 0xc0, !PT",
            "IADD3 R4, P0, R4, UR6, RZ",
            "IADD3.X R5, RZ, UR7, RZ, P0, !PT",
            "@!P1 LDS R4, [R7]",
            "@P0 BRA 0x100",
        ]);
        assert_eq!(predicate_source(&code, 4).unwrap().line, Some(2));
        assert_eq!(predicate_source(&code, 5).unwrap().line, Some(3));
        assert_eq!(predicate_source(&code, 0), None);
    }

    #[test]
    fn a_value_comes_from_the_load_that_wrote_its_register() {
        let code = code(&[
            "LDG.E R0, desc[UR4][R2.64]",
            "LDS R1, [R7]",
            "FMUL R0, R0, 2",
            "FADD R3, R1, R0",
            "FADD R8, R1, 1",
        ]);
        let global = |sass: &Sass<'_>| sass.access() == Some(Access::GlobalLoad);
        assert_eq!(load_source(&code, 2, global).unwrap().line, Some(1));
        assert_eq!(load_source(&code, 3, global), None, "the last writer of R0 is no load");
        assert_eq!(
            load_source(&code, 4, |sass| sass.access() == Some(Access::SharedLoad)).unwrap().line,
            Some(2)
        );
    }
}
