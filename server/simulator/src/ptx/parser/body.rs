//! Statements of a function's body.
//!
//! Source: PTX ISA, sections "Statements", "Instruction Statements", "Control Flow Directives".

use super::{Kind, Linkage, NESTING_LIMIT, ParseError, Parser, Space, scalar_of, space_of};
use crate::ptx::ast::{Guard, Instruction, Statement};

impl Parser<'_> {
    /// `{ … }`. Blocks within blocks are kept on a stack of our own.
    pub(super) fn read_body(&mut self) -> Result<Vec<Statement>, ParseError> {
        let mut outer: Vec<Vec<Statement>> = Vec::new();
        let opened = self.token.line;
        self.expect_mark(b'{', "before a body")?;
        let mut current = Vec::new();
        loop {
            match self.token.kind {
                Kind::Mark(b'{') => {
                    if outer.len() == NESTING_LIMIT {
                        return self.fail(format!("more than {NESTING_LIMIT} blocks within each other"));
                    }
                    self.take()?;
                    outer.push(std::mem::take(&mut current));
                }
                Kind::Mark(b'}') => {
                    self.take()?;
                    let Some(mut parent) = outer.pop() else { return Ok(current) };
                    parent.push(Statement::Block(current));
                    current = parent;
                }
                Kind::Mark(b';') => drop(self.take()?),
                Kind::End => {
                    return self.fail(format!(
                        "the text ends within the body that begins in line {opened}; it may be truncated"
                    ));
                }
                _ => self.read_statement(&mut current)?,
            }
        }
    }

    fn read_statement(&mut self, body: &mut Vec<Statement>) -> Result<(), ParseError> {
        let line = self.token.line;
        match self.token.kind {
            Kind::Dot(directive) => {
                if directive == "section" {
                    return self.read_section();
                }
                self.take()?;
                self.read_directive(directive, line, body)
            }
            Kind::Word(word) => {
                self.take()?;
                if self.takes_mark(b':')? {
                    return self.read_label(word, body);
                }
                body.push(Statement::Instruction(self.read_instruction(None, word, line)?));
                Ok(())
            }
            Kind::Mark(b'@') => {
                self.take()?;
                let negated = self.takes_mark(b'!')?;
                let register = self.expect_word("a predicate after `@`")?.to_owned();
                let opcode = self.expect_word("an instruction after its guard")?;
                let guard = Some(Guard { register, negated });
                body.push(Statement::Instruction(self.read_instruction(guard, opcode, line)?));
                Ok(())
            }
            _ => self.unexpected("a statement"),
        }
    }

    fn read_directive(
        &mut self,
        directive: &str,
        line: u32,
        body: &mut Vec<Statement>,
    ) -> Result<(), ParseError> {
        match space_of(directive) {
            Some(Space::Reg) => self.read_registers(body),
            Some(space) => self.read_variables(space, Linkage::Internal, line, &mut |variable| {
                body.push(Statement::Variable(variable));
            }),
            None => match directive {
                "loc" => {
                    body.push(Statement::Location(self.read_location()?));
                    Ok(())
                }
                "pragma" => {
                    body.extend(self.read_pragma()?.into_iter().map(Statement::Pragma));
                    Ok(())
                }
                "file" => self.read_file(),
                _ => self.fail(format!("`.{directive}` is no directive that this parser knows in a body")),
            },
        }
    }

    /// `.b32 %r<10>, t;` after `.reg`.
    fn read_registers(&mut self, body: &mut Vec<Statement>) -> Result<(), ParseError> {
        let (mut ty, mut vector) = (None, 1);
        while let Kind::Dot(word) = self.token.kind {
            self.take()?;
            match word {
                "v2" => vector = 2,
                "v4" => vector = 4,
                "v8" => vector = 8,
                "align" => drop(self.expect_int("an alignment")?),
                _ => match scalar_of(word) {
                    Some(found) => ty = Some(found),
                    None => return self.fail(format!("`.{word}` is no type of a register")),
                },
            }
        }
        let Some(ty) = ty else { return self.unexpected("the type of a register") };
        let mut names = Vec::new();
        loop {
            let name = self.expect_word("a register")?.to_owned();
            let mut count = None;
            if self.takes_mark(b'<')? {
                count = Some(self.expect_u32("how many registers there are")?);
                self.expect_mark(b'>', "after the number of registers")?;
            }
            names.push((name, count));
            if !self.takes_mark(b',')? {
                break;
            }
        }
        self.expect_mark(b';', "after registers")?;
        body.push(Statement::Registers { ty, vector, names });
        Ok(())
    }

    /// What may follow `name:`.
    fn read_label(&mut self, name: &str, body: &mut Vec<Statement>) -> Result<(), ParseError> {
        let statement = if self.takes_dot("branchtargets")? {
            Statement::BranchTargets(name.to_owned(), self.read_names("a label")?)
        } else if self.takes_dot("calltargets")? {
            Statement::CallTargets(name.to_owned(), self.read_names("a function")?)
        } else if self.takes_dot("callprototype")? {
            let returns = self.read_parameters()?;
            self.expect_word("`_` in a prototype")?;
            let parameters = self.read_parameters()?;
            while let Kind::Dot(_) = self.token.kind {
                self.take()?;
                if let Kind::Int(_) = self.token.kind {
                    self.take()?;
                }
            }
            self.expect_mark(b';', "after a prototype")?;
            Statement::CallPrototype { name: name.to_owned(), returns, parameters }
        } else {
            Statement::Label(name.to_owned())
        };
        body.push(statement);
        Ok(())
    }

    fn read_names(&mut self, what: &str) -> Result<Vec<String>, ParseError> {
        let mut names = vec![self.expect_word(what)?.to_owned()];
        while self.takes_mark(b',')? {
            names.push(self.expect_word(what)?.to_owned());
        }
        self.expect_mark(b';', "after a list of names")?;
        Ok(names)
    }

    /// Modifiers and operands after an opcode.
    fn read_instruction(
        &mut self,
        guard: Option<Guard>,
        opcode: &str,
        line: u32,
    ) -> Result<Instruction, ParseError> {
        let mut modifiers = Vec::new();
        while let Kind::Dot(word) = self.token.kind {
            modifiers.push(word.to_owned());
            self.take()?;
        }
        let mut operands = Vec::new();
        while !self.takes_mark(b';')? {
            if !operands.is_empty() {
                self.expect_mark(b',', &format!("or `;` after an operand of `{opcode}`"))?;
            }
            operands.push(self.read_operand(0)?);
        }
        Ok(Instruction { guard, opcode: opcode.to_owned(), modifiers, operands, line })
    }
}
