//! Variables, parameters and initialisers.
//!
//! Source: PTX ISA, sections "State Spaces, Types, and Variables" and "Kernel and Function Directives" (parameters).

use super::{Kind, Linkage, NESTING_LIMIT, ParseError, Parser, Scalar, Space, scalar_of, space_of};
use crate::ptx::ast::{Initial, Variable};

/// Zeros that nested initialisers may ask for, in elements: a bound on what a few characters can make us allocate.
const FILL_LIMIT: u64 = 1 << 26;

/// Bytes of one element, which is its natural alignment too. References and predicates are not stored: 8 and 1.
pub(super) fn bytes_of(ty: Scalar) -> u32 {
    match ty {
        Scalar::B8 | Scalar::U8 | Scalar::S8 | Scalar::E4m3 | Scalar::E5m2 | Scalar::Pred => 1,
        Scalar::B16
        | Scalar::U16
        | Scalar::S16
        | Scalar::F16
        | Scalar::Bf16
        | Scalar::E4m3x2
        | Scalar::E5m2x2 => 2,
        Scalar::B32
        | Scalar::U32
        | Scalar::S32
        | Scalar::F16x2
        | Scalar::Bf16x2
        | Scalar::Tf32
        | Scalar::F32 => 4,
        Scalar::B64
        | Scalar::U64
        | Scalar::S64
        | Scalar::F64
        | Scalar::Texref
        | Scalar::Samplerref
        | Scalar::Surfref => 8,
        Scalar::B128 => 16,
    }
}

impl Parser<'_> {
    /// What stands between the state space and the name: alignment, attributes, vector, type, in any order.
    fn read_shape(&mut self, space: Space, linkage: Linkage, line: u32) -> Result<Variable, ParseError> {
        let mut ty = None;
        let mut variable = Variable {
            name: String::new(),
            space,
            linkage,
            ty: Scalar::B8,
            vector: 1,
            align: 0,
            dimensions: Vec::new(),
            initial: Vec::new(),
            managed: false,
            properties: Vec::new(),
            line,
        };
        while let Kind::Dot(word) = self.token.kind {
            self.take()?;
            match word {
                "align" => variable.align = self.expect_u32("an alignment in bytes")?,
                "attribute" => variable.managed |= self.read_attributes()?,
                "v2" => variable.vector = 2,
                "v4" => variable.vector = 4,
                "v8" => variable.vector = 8,
                // What a pointer parameter points at: `.ptr .global .align 4`. The address says it again when it is used.
                "ptr" => self.skip_pointee()?,
                _ => match scalar_of(word) {
                    Some(found) => ty = Some(found),
                    None => return self.fail(format!("`.{word}` is no type of a variable")),
                },
            }
        }
        let Some(ty) = ty else { return self.unexpected("the type of a variable") };
        variable.ty = ty;
        if variable.align == 0 {
            variable.align = bytes_of(ty) * variable.vector;
        }
        if !variable.align.is_power_of_two() {
            return self.fail(format!("an alignment is a power of two, not {}", variable.align));
        }
        Ok(variable)
    }

    fn skip_pointee(&mut self) -> Result<(), ParseError> {
        if let Kind::Dot(word) = self.token.kind
            && space_of(word).is_some()
        {
            self.take()?;
        }
        if self.takes_dot("align")? {
            self.expect_u32("an alignment in bytes")?;
        }
        Ok(())
    }

    /// `(.managed)`, `(.unified(1, 2))`: whether `.managed` is among them.
    pub(super) fn read_attributes(&mut self) -> Result<bool, ParseError> {
        self.expect_mark(b'(', "after `.attribute`")?;
        let (mut managed, mut depth) = (false, 1usize);
        while depth > 0 {
            match self.take()?.kind {
                Kind::Dot("managed") => managed = true,
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => depth -= 1,
                Kind::Dot(_) | Kind::Int(_) | Kind::Mark(b',') => {}
                _ => return self.fail("expected an attribute such as `.managed`".into()),
            }
        }
        Ok(managed)
    }

    /// `a, b[4] = {…};` after a state space: every variable goes to `sink`.
    pub(super) fn read_variables(
        &mut self,
        space: Space,
        linkage: Linkage,
        line: u32,
        sink: &mut dyn FnMut(Variable),
    ) -> Result<(), ParseError> {
        // `.const[2]`: the banks of old versions.
        if self.takes_mark(b'[')? {
            self.expect_int("a bank")?;
            self.expect_mark(b']', "after a bank")?;
        }
        let shape = self.read_shape(space, linkage, line)?;
        loop {
            let mut variable = shape.clone();
            self.read_name_and_value(&mut variable)?;
            sink(variable);
            if !self.takes_mark(b',')? {
                return self.expect_mark(b';', "after a variable");
            }
        }
    }

    fn read_name_and_value(&mut self, variable: &mut Variable) -> Result<(), ParseError> {
        self.expect_word("the name of a variable")?.clone_into(&mut variable.name);
        self.read_dimensions(variable)?;
        if !self.takes_mark(b'=')? {
            return Ok(());
        }
        if matches!(variable.ty, Scalar::Samplerref | Scalar::Texref | Scalar::Surfref) {
            return self.read_properties(variable);
        }
        if !self.is_mark(b'{') {
            let value = self.read_initial()?;
            variable.initial.push(value);
            return Ok(());
        }
        self.read_braces(variable)
    }

    fn read_dimensions(&mut self, variable: &mut Variable) -> Result<(), ParseError> {
        while self.takes_mark(b'[')? {
            if variable.dimensions.len() == NESTING_LIMIT {
                return self.fail(format!("more than {NESTING_LIMIT} dimensions"));
            }
            let length = match self.token.kind {
                Kind::Mark(b']') => 0,
                _ => self.expect_int("the length of an array")?,
            };
            variable.dimensions.push(length);
            self.expect_mark(b']', "after the length of an array")?;
        }
        Ok(())
    }

    /// `{ addr_mode_0 = wrap, filter_mode = linear }`.
    fn read_properties(&mut self, variable: &mut Variable) -> Result<(), ParseError> {
        self.expect_mark(b'{', "before the properties of a reference")?;
        while !self.takes_mark(b'}')? {
            let name = self.expect_word("a property")?.to_owned();
            self.expect_mark(b'=', "after a property")?;
            let value = match self.token.kind {
                Kind::Word(_) | Kind::Int(_) => {
                    let token = self.take()?;
                    self.text[token.start..token.end].to_owned()
                }
                _ => return self.unexpected("the value of a property"),
            };
            variable.properties.push((name, value));
            if !self.takes_mark(b',')? && !self.is_mark(b'}') {
                return self.unexpected("`,` or `}` after a property");
            }
        }
        Ok(())
    }

    /// Nested braces. A brace that closes fills up to a whole number of what it encloses.
    fn read_braces(&mut self, variable: &mut Variable) -> Result<(), ParseError> {
        let strides = strides(variable);
        // Where each open brace began in `initial`.
        let mut open: Vec<u64> = Vec::new();
        loop {
            if self.takes_mark(b'{')? {
                if open.len() == strides.len() {
                    return self.fail("more braces than the variable has dimensions".into());
                }
                open.push(variable.initial.len() as u64);
                if !self.is_mark(b'}') {
                    continue;
                }
            } else if !self.is_mark(b'}') {
                let value = self.read_initial()?;
                variable.initial.push(value);
            }
            while self.takes_mark(b'}')? {
                let Some(begin) = open.pop() else { break };
                if open.is_empty() {
                    deduce_length(variable, &strides);
                    return Ok(());
                }
                self.fill(variable, begin.saturating_add(strides[open.len()]))?;
            }
            if !self.takes_mark(b',')? && !self.is_mark(b'}') {
                return self.unexpected("`,` or `}` in an initialiser");
            }
        }
    }

    /// Zeros up to `end` elements.
    fn fill(&self, variable: &mut Variable, end: u64) -> Result<(), ParseError> {
        if end > FILL_LIMIT + variable.initial.len() as u64 {
            return self.fail(format!("an initialiser that leaves more than {FILL_LIMIT} elements out"));
        }
        while (variable.initial.len() as u64) < end {
            variable.initial.push(Initial::Int(0));
        }
        Ok(())
    }

    /// One number or address.
    fn read_initial(&mut self) -> Result<Initial, ParseError> {
        let negative = self.takes_mark(b'-')?;
        let complement = !negative && self.takes_mark(b'~')?;
        match self.token.kind {
            Kind::Int(value) => {
                self.take()?;
                if !negative && !complement && self.takes_mark(b'(')? {
                    let address = self.read_address(Some(value))?;
                    self.expect_mark(b')', "after the masked address")?;
                    return Ok(address);
                }
                Ok(Initial::Int(match (negative, complement) {
                    (true, _) => value.wrapping_neg(),
                    (_, true) => !value,
                    _ => value,
                }))
            }
            Kind::F32(bits) => {
                self.take()?;
                Ok(Initial::Float(signed(negative, f64::from(f32::from_bits(bits)))))
            }
            Kind::F64(bits) => {
                self.take()?;
                Ok(Initial::Float(signed(negative, f64::from_bits(bits))))
            }
            Kind::Word(_) if !negative && !complement => self.read_address(None),
            _ => self.unexpected("an initial value: a number or a symbol"),
        }
    }

    /// `symbol`, `symbol+4`, `generic(symbol)+4`.
    fn read_address(&mut self, mask: Option<u64>) -> Result<Initial, ParseError> {
        let mut name = self.expect_word("a symbol")?;
        let generic = name == "generic" && self.takes_mark(b'(')?;
        let mut offset = 0;
        if generic {
            name = self.expect_word("a symbol")?;
            offset = self.offset()?;
            self.expect_mark(b')', "after `generic(symbol`")?;
        }
        let offset = self.offset()?.wrapping_add(offset);
        Ok(Initial::Symbol { name: name.to_owned(), offset, generic, mask })
    }

    /// `(.param .u64 a, .param .align 8 .b8 b[16])`, from the parenthesis on; nothing where there is none.
    pub(super) fn read_parameters(&mut self) -> Result<Vec<Variable>, ParseError> {
        let mut parameters = Vec::new();
        if !self.takes_mark(b'(')? {
            return Ok(parameters);
        }
        while !self.takes_mark(b')')? {
            let line = self.token.line;
            let space = match self.token.kind {
                Kind::Dot("param") => Space::Param,
                Kind::Dot("reg") => Space::Reg,
                _ => return self.unexpected("a parameter: `.param` or `.reg`"),
            };
            self.take()?;
            let mut parameter = self.read_shape(space, Linkage::Internal, line)?;
            self.expect_word("the name of a parameter")?.clone_into(&mut parameter.name);
            self.read_dimensions(&mut parameter)?;
            parameters.push(parameter);
            if !self.takes_mark(b',')? && !self.is_mark(b')') {
                return self.unexpected("`,` or `)` after a parameter");
            }
        }
        Ok(parameters)
    }
}

fn signed(negative: bool, value: f64) -> f64 {
    if negative { -value } else { value }
}

/// Elements that one brace of each depth encloses, outermost first; the outermost is not used for `[]`.
fn strides(variable: &Variable) -> Vec<u64> {
    let mut strides = Vec::with_capacity(variable.dimensions.len() + 1);
    let mut elements = 1u64;
    if variable.vector > 1 || variable.dimensions.is_empty() {
        elements = u64::from(variable.vector);
        strides.push(elements);
    }
    for &length in variable.dimensions.iter().rev() {
        elements = elements.saturating_mul(length);
        strides.push(elements);
    }
    strides.reverse();
    strides
}

/// Gives `[]` the length that its initialisers have.
fn deduce_length(variable: &mut Variable, strides: &[u64]) {
    if variable.dimensions.first() == Some(&0) {
        let each = strides.get(1).copied().unwrap_or(1).max(1);
        variable.dimensions[0] = (variable.initial.len() as u64).div_ceil(each);
    }
}
