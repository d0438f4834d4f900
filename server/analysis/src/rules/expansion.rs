//! Macros with parameters that compute an index: `#define IDX(i, j, ld) ((i) * (ld) + (j))`.
//!
//! What the macro stands for is evaluated with the values of the arguments, by the precedence of the operators. Anything but
//! integer arithmetic on parameters and constants is left alone.

use tree_sitter::Node;

use super::constants::{Constants, Token, Tokens};
use super::kind::Kind;
use super::operators::{self, Operand};
use super::value::Value;
use super::walk::{Entry, Walker};

impl<'t> Walker<'t> {
    /// The value of a call that is a macro's; `None` where it is none, or does not compute an index.
    pub(super) fn expanded(
        &self,
        node: Node<'t>,
        callee: Node<'t>,
        arguments: &[Entry<'t>],
    ) -> Option<Value> {
        if Kind::of(callee) != Kind::Identifier {
            return None;
        }
        let (parameters, text) = self.environment.function_macro(self.text(callee))?;
        if parameters.len() != arguments.len() {
            return None;
        }
        let mut expansion = Expansion { call: node, operands: Vec::new(), operators: Vec::new() };
        for (token, _) in Tokens::new(text) {
            match token {
                Token::Name(name) => {
                    let operand = match parameters.iter().position(|parameter| parameter == name) {
                        Some(at) => (arguments[at].node, arguments[at].value.loaded()),
                        None => (node, Value::integer(self.environment.value(name)?)),
                    };
                    // Floating numbers and pointers are no indices.
                    if operand.1.ty.pointers > 0 || !operand.1.ty.is_integer() {
                        return None;
                    }
                    expansion.operands.push(operand);
                }
                Token::Literal(value) => expansion.operands.push((node, Value::integer(value?))),
                Token::Symbol("(") => expansion.operators.push("("),
                Token::Symbol(")") => {
                    expansion.reduce(0)?;
                    (expansion.operators.pop() == Some("(")).then_some(())?;
                }
                Token::Symbol(operator) => {
                    expansion.reduce(strength(operator)?)?;
                    expansion.operators.push(operator);
                }
                Token::Other => return None,
            }
        }
        expansion.reduce(0)?;
        match (expansion.operators.as_slice(), expansion.operands.as_slice()) {
            ([], [(_, value)]) => Some(*value),
            _ => None,
        }
    }
}

/// How strongly an operator binds.
fn strength(operator: &str) -> Option<u8> {
    match operator {
        "*" | "/" | "%" => Some(4),
        "+" | "-" => Some(3),
        "<<" | ">>" => Some(2),
        "&" => Some(1),
        _ => None,
    }
}

struct Expansion<'a, 't> {
    call: Node<'t>,
    operands: Vec<Operand<'t>>,
    operators: Vec<&'a str>,
}

impl Expansion<'_, '_> {
    /// Applies what is open and binds at least as strongly, up to a bracket.
    fn reduce(&mut self, least: u8) -> Option<()> {
        while let Some(operator) = self.operators.last().copied()
            && let Some(strength) = strength(operator)
            && strength >= least
        {
            self.operators.pop();
            let right = self.operands.pop()?;
            let left = self.operands.pop()?;
            // The factor of a row has to be written somewhere, for the message to name it.
            let is_nameless = |factor: &Operand, other: &Operand| {
                factor.0 == self.call
                    && factor.1.constant.is_none()
                    && factor.1.index.is_uniform()
                    && !other.1.index.is_uniform()
            };
            if operator == "*" && (is_nameless(&left, &right) || is_nameless(&right, &left)) {
                return None;
            }
            self.operands.push((self.call, operators::integer(operator, left, right)));
        }
        Some(())
    }
}
