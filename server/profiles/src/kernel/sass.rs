//! Machine code as text, read far enough to follow values through it.
//!
//! An instruction is a predicate, an opcode with modifiers, and operands, the results first: `@!P0 LDG.E R2, desc[UR6][R4.64]`. Where a
//! value comes from is looked for backwards by address; branches are not followed, so that the answer is the likely one, and the rules
//! that use it say "from".

use std::collections::HashMap;

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
        let is_it = |operand: &&str| operand.strip_prefix('P').is_some_and(|rest| rest.parse() == Ok(number));
        self.operands.iter().take(2).any(is_it) && !matches!(self.opcode, "SEL" | "FSEL" | "BRA" | "EXIT")
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

/// Where the values of each instruction come from, found in one pass over the code.
pub(super) struct Flow<'c> {
    /// The instructions, read.
    pub parsed: Vec<Option<Sass<'c>>>,
    /// For each, the one that last wrote its predicate.
    predicates: Vec<Option<usize>>,
    /// For each, those that last wrote the registers it reads, the latest last.
    writers: Vec<Vec<usize>>,
}

impl<'c> Flow<'c> {
    pub fn new(code: &'c [Instruction]) -> Self {
        let parsed: Vec<Option<Sass<'c>>> =
            code.iter().map(|instruction| Sass::parse(&instruction.text)).collect();
        let mut last_register: HashMap<u16, usize> = HashMap::new();
        let mut last_predicate: [Option<usize>; 8] = [None; 8];
        let mut predicates = Vec::with_capacity(code.len());
        let mut writers = Vec::with_capacity(code.len());
        for (at, sass) in parsed.iter().enumerate() {
            let Some(sass) = sass else {
                predicates.push(None);
                writers.push(Vec::new());
                continue;
            };
            predicates.push(
                sass.predicate.and_then(|number| last_predicate.get(usize::from(number)).copied().flatten()),
            );
            let mut from: Vec<usize> =
                sass.uses().iter().filter_map(|register| last_register.get(register).copied()).collect();
            from.sort_unstable();
            from.dedup();
            writers.push(from);
            if let Some((first, count)) = sass.result() {
                last_register.extend((first..first.saturating_add(count)).map(|register| (register, at)));
            }
            for (number, last) in last_predicate.iter_mut().enumerate() {
                if sass.defines_predicate(number as u8) {
                    *last = Some(at);
                }
            }
        }
        Self { parsed, predicates, writers }
    }

    /// The instruction that last wrote the predicate of this one.
    pub fn predicate_source(&self, at: usize) -> Option<usize> {
        self.predicates.get(at).copied().flatten()
    }

    /// The latest of the writers of what this one reads that `accept` takes.
    pub fn source(&self, at: usize, accept: impl Fn(&Sass<'_>) -> bool) -> Option<usize> {
        let taken = |writer: &usize| self.parsed[*writer].as_ref().is_some_and(&accept);
        self.writers.get(at)?.iter().rev().copied().find(|writer| taken(writer))
    }

    /// The last instruction before this one, or itself, with this opcode.
    pub fn last_before(&self, at: usize, opcode: &str) -> Option<usize> {
        (0..=at)
            .rev()
            .find(|earlier| self.parsed[*earlier].as_ref().is_some_and(|sass| sass.opcode == opcode))
    }
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
        assert_eq!(sass.result(), Some((2, 1)));
        assert_eq!(Sass::parse("LDG.E.128 R4, desc[UR4][R2.64]").unwrap().result(), Some((4, 4)));
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
        let flow = Flow::new(&code);
        assert_eq!(flow.predicate_source(4), Some(1));
        assert_eq!(flow.predicate_source(5), Some(2));
        assert_eq!(flow.predicate_source(0), None);
    }

    #[test]
    fn a_value_comes_from_the_load_that_wrote_its_register() {
        let code = code(&[
            "LDG.E R0, desc[UR4][R2.64]",
            "LDS R1, [R7]",
            "FMUL R0, R0, 2",
            "FADD R3, R1, R0",
            "BAR.SYNC.DEFER_BLOCKING 0x0",
            "FADD R8, R1, 1",
        ]);
        let flow = Flow::new(&code);
        let global = |sass: &Sass<'_>| sass.access() == Some(Access::GlobalLoad);
        assert_eq!(flow.source(2, global), Some(0));
        assert_eq!(flow.source(3, global), None, "the last writer of R0 is no load");
        assert_eq!(flow.source(5, |sass| sass.access() == Some(Access::SharedLoad)), Some(1));
        assert_eq!(flow.last_before(5, "BAR"), Some(4));
        assert_eq!(flow.last_before(3, "BAR"), None);
    }
}
