//! Tokens to the syntax tree: the module's own directives. The parts of it have files of their own.
//!
//! Source: PTX ISA, sections "Directive Statements" and "Directives".

mod body;
mod debug;
mod function;
mod operand;
mod variable;

use super::ParseError;
use super::ast::{Linkage, Module, Scalar, Space};
use super::lexer::{Kind, Lexer, Token};

/// How deep braces, brackets and parentheses may stand within each other. nvcc needs a handful.
const NESTING_LIMIT: usize = 64;

/// Reads a whole text.
pub(super) fn module(text: &str) -> Result<Module, ParseError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { text, lexer, token, module: Module { address_size: 32, ..Module::default() } };
    parser.read_version()?;
    while parser.token.kind != Kind::End {
        parser.read_item()?;
    }
    debug::resolve_offsets(&mut parser.module);
    Ok(parser.module)
}

/// A text that is being read: one token is looked at ahead.
struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    token: Token<'t>,
    module: Module,
}

impl<'t> Parser<'t> {
    /// Takes the token that is looked at.
    fn take(&mut self) -> Result<Token<'t>, ParseError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Says that something else was expected here.
    fn unexpected<T>(&self, wanted: &str) -> Result<T, ParseError> {
        self.fail(format!("expected {wanted}, found {}", self.token.kind))
    }

    fn fail<T>(&self, message: String) -> Result<T, ParseError> {
        Err(ParseError { line: self.token.line, message })
    }

    fn is_mark(&self, mark: u8) -> bool {
        self.token.kind == Kind::Mark(mark)
    }

    /// Takes the mark where it stands.
    fn takes_mark(&mut self, mark: u8) -> Result<bool, ParseError> {
        let found = self.is_mark(mark);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect_mark(&mut self, mark: u8, place: &str) -> Result<(), ParseError> {
        if self.takes_mark(mark)? {
            return Ok(());
        }
        self.unexpected(&format!("`{}` {place}", char::from(mark)))
    }

    /// Takes `.name` where it stands.
    fn takes_dot(&mut self, name: &str) -> Result<bool, ParseError> {
        let found = self.token.kind == Kind::Dot(name);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, wanted: &str) -> Result<&'t str, ParseError> {
        match self.token.kind {
            Kind::Word(word) => {
                self.take()?;
                Ok(word)
            }
            _ => self.unexpected(wanted),
        }
    }

    fn expect_int(&mut self, wanted: &str) -> Result<u64, ParseError> {
        match self.token.kind {
            Kind::Int(value) => {
                self.take()?;
                Ok(value)
            }
            _ => self.unexpected(wanted),
        }
    }

    /// An integer that fits 32 bits.
    fn expect_u32(&mut self, wanted: &str) -> Result<u32, ParseError> {
        let Kind::Int(value) = self.token.kind else { return self.unexpected(wanted) };
        let Ok(value) = u32::try_from(value) else {
            return self.fail(format!("expected {wanted}, found {value}, which is too large"));
        };
        self.take()?;
        Ok(value)
    }

    /// A signed sum of integers: `+8`, `-4`, `+-4`, `+4+8`; 0 where there is none.
    fn offset(&mut self) -> Result<i64, ParseError> {
        let mut sum = 0i64;
        while self.is_mark(b'+') || self.is_mark(b'-') {
            let mut negative = false;
            while self.is_mark(b'+') || self.is_mark(b'-') {
                negative ^= self.is_mark(b'-');
                self.take()?;
            }
            let value = self.expect_int("a number of bytes")? as i64;
            sum = sum.wrapping_add(if negative { value.wrapping_neg() } else { value });
        }
        Ok(sum)
    }

    /// `.version major.minor`, with which every module begins.
    fn read_version(&mut self) -> Result<(), ParseError> {
        if self.token.kind != Kind::Dot("version") {
            return self.unexpected("`.version` at the beginning of a PTX module");
        }
        self.take()?;
        let text = &self.text[self.token.start..self.token.end];
        let parts =
            text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let Some(version) = parts else { return self.unexpected("a version such as 8.7") };
        self.module.version = version;
        self.take()?;
        Ok(())
    }

    /// One directive of the module.
    fn read_item(&mut self) -> Result<(), ParseError> {
        let line = self.token.line;
        let mut linkage = Linkage::Internal;
        loop {
            let Kind::Dot(directive) = self.token.kind else {
                if linkage == Linkage::Internal && self.takes_mark(b';')? {
                    return Ok(());
                }
                return self.unexpected("a directive such as `.entry` or `.global`");
            };
            if directive == "section" {
                return self.read_section();
            }
            self.take()?;
            if let Some(found) = linkage_of(directive) {
                linkage = found;
                continue;
            }
            if let Some(space) = space_of(directive) {
                return self.read_module_variables(space, linkage, line);
            }
            return match directive {
                "entry" => self.read_function(true, linkage, line),
                "func" => self.read_function(false, linkage, line),
                _ => self.read_plain_directive(directive),
            };
        }
    }

    fn read_module_variables(&mut self, space: Space, linkage: Linkage, line: u32) -> Result<(), ParseError> {
        if !matches!(space, Space::Global | Space::Const | Space::Shared) {
            return self
                .fail("only `.global`, `.const` and `.shared` variables stand outside functions".into());
        }
        let mut variables = Vec::new();
        self.read_variables(space, linkage, line, &mut |variable| variables.push(variable))?;
        self.module.variables.append(&mut variables);
        Ok(())
    }

    fn read_plain_directive(&mut self, directive: &str) -> Result<(), ParseError> {
        match directive {
            "target" => {
                self.module.target = self.expect_word("an architecture such as sm_90")?.to_owned();
                while self.takes_mark(b',')? {
                    self.expect_word("an option of `.target`")?;
                }
                Ok(())
            }
            "address_size" => {
                self.module.address_size = self.expect_u32("32 or 64")?;
                Ok(())
            }
            "file" => self.read_file(),
            "alias" => {
                let name = self.expect_word("a function")?.to_owned();
                self.expect_mark(b',', "between the two names of `.alias`")?;
                let aliasee = self.expect_word("a function")?.to_owned();
                self.module.aliases.push((name, aliasee));
                self.expect_mark(b';', "after `.alias`")
            }
            "pragma" => self.read_pragma().map(drop),
            "loc" => self.read_location().map(drop),
            _ => self.fail(format!("`.{directive}` is no directive that this parser knows here")),
        }
    }
}

fn linkage_of(directive: &str) -> Option<Linkage> {
    Some(match directive {
        "extern" => Linkage::Extern,
        "visible" => Linkage::Visible,
        "weak" => Linkage::Weak,
        "common" => Linkage::Common,
        _ => return None,
    })
}

fn space_of(directive: &str) -> Option<Space> {
    Some(match directive {
        "reg" => Space::Reg,
        "param" => Space::Param,
        "local" => Space::Local,
        "shared" => Space::Shared,
        "global" => Space::Global,
        "const" => Space::Const,
        _ => return None,
    })
}

/// PTX's fundamental types by their names.
fn scalar_of(name: &str) -> Option<Scalar> {
    Some(match name {
        "b8" => Scalar::B8,
        "b16" => Scalar::B16,
        "b32" => Scalar::B32,
        "b64" => Scalar::B64,
        "b128" => Scalar::B128,
        "u8" => Scalar::U8,
        "u16" => Scalar::U16,
        "u32" => Scalar::U32,
        "u64" => Scalar::U64,
        "s8" => Scalar::S8,
        "s16" => Scalar::S16,
        "s32" => Scalar::S32,
        "s64" => Scalar::S64,
        "f16" => Scalar::F16,
        "f16x2" => Scalar::F16x2,
        "bf16" => Scalar::Bf16,
        "bf16x2" => Scalar::Bf16x2,
        "tf32" => Scalar::Tf32,
        "e4m3" => Scalar::E4m3,
        "e5m2" => Scalar::E5m2,
        "e4m3x2" => Scalar::E4m3x2,
        "e5m2x2" => Scalar::E5m2x2,
        "f32" => Scalar::F32,
        "f64" => Scalar::F64,
        "pred" => Scalar::Pred,
        "texref" => Scalar::Texref,
        "samplerref" => Scalar::Samplerref,
        "surfref" => Scalar::Surfref,
        _ => return None,
    })
}
