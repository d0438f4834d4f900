//! Kernels and device functions: their headers.
//!
//! Source: PTX ISA, sections "Kernel and Function Directives", "Performance-Tuning Directives" and "Cluster Dimension
//! Directives".

use super::{Kind, Linkage, ParseError, Parser};
use crate::ptx::ast::Function;

impl Parser<'_> {
    /// What follows `.entry` or `.func`.
    pub(super) fn read_function(
        &mut self,
        is_entry: bool,
        linkage: Linkage,
        line: u32,
    ) -> Result<(), ParseError> {
        let mut function = Function {
            name: String::new(),
            is_entry,
            linkage,
            no_return: false,
            returns: Vec::new(),
            parameters: Vec::new(),
            directives: Vec::new(),
            body: None,
            line,
        };
        self.read_header_directives(&mut function)?;
        function.returns = self.read_parameters()?;
        self.expect_word("the name of a function")?.clone_into(&mut function.name);
        function.parameters = self.read_parameters()?;
        self.read_header_directives(&mut function)?;
        if self.is_mark(b'{') {
            function.body = Some(self.read_body()?);
        } else {
            self.expect_mark(b';', "or `{` after the header of a function")?;
        }
        self.module.functions.push(function);
        Ok(())
    }

    /// `.maxntid 256, 1, 1`, `.noreturn`, `.attribute(…)`, `.pragma "…";` and their like, in any order.
    fn read_header_directives(&mut self, function: &mut Function) -> Result<(), ParseError> {
        while let Kind::Dot(name) = self.token.kind {
            self.take()?;
            match name {
                "noreturn" => function.no_return = true,
                "attribute" => drop(self.read_attributes()?),
                "pragma" => drop(self.read_pragma()?),
                "loc" => drop(self.read_location()?),
                _ => {
                    let mut numbers = Vec::new();
                    if let Kind::Int(_) = self.token.kind {
                        numbers.push(self.expect_int("a number")?);
                        while self.takes_mark(b',')? {
                            numbers.push(self.expect_int("a number")?);
                        }
                    }
                    function.directives.push((name.to_owned(), numbers));
                }
            }
        }
        Ok(())
    }
}
