//! Binary operators on what is known of two values.

use tree_sitter::Node;

use super::evaluate::only_uniform;
use super::index::Index;
use super::types::Type;
use super::value::{Value, product};

/// An operand: where it is written, and its value.
pub type Operand<'t> = (Node<'t>, Value);

/// The result of an operator on two integers.
pub fn integer(operator: &str, (left_node, left): Operand, (right_node, right): Operand) -> Value {
    let sum = left.index.plus(right.index);
    let index = match operator {
        "+" => sum,
        "-" => left.index.plus(right.index.negative()),
        "*" => product((left, left_node.byte_range()), (right, right_node.byte_range())),
        "/" => divided(left, right.constant),
        "%" => remainder(left, right.constant),
        "&" => remainder(left, right.constant.and_then(size_of_mask)),
        "<<" => match power_of_two(right) {
            Some(power) => left.index.times(power),
            None => only_uniform(Type::INT, sum).index,
        },
        ">>" => divided(left, power_of_two(right)),
        _ => only_uniform(Type::INT, sum).index,
    };
    let template = index.template || left.index.template || right.index.template;
    let index = Index { template, ..index };
    let constant = left.constant.zip(right.constant).and_then(|(a, b)| match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        "&" => Some(a & b),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "<<" => a.checked_mul(power_of_two(right)?),
        ">>" => Some(a.div_euclid(power_of_two(right)?)),
        _ => None,
    });
    Value { constant, ..Value::of(Type::INT, index) }
}

/// The constant that an operator makes of two numbers of which one at least is a floating literal.
pub fn floating(operator: &str, left: Value, right: Value) -> Option<f64> {
    left.literal.or(right.literal)?;
    let (a, b) = (left.number()?, right.number()?);
    match operator {
        "+" => Some(a + b),
        "-" => Some(a - b),
        "*" => Some(a * b),
        "/" => Some(a / b),
        _ => None,
    }
}

/// The power of two that a shift by `value` multiplies or divides by.
fn power_of_two(value: Value) -> Option<i64> {
    value.constant.filter(|by| (0..62).contains(by)).map(|by| 1i64 << by)
}

/// The number that `& mask` takes the remainder by: 32 for 31.
fn size_of_mask(mask: i64) -> Option<i64> {
    let size = mask.checked_add(1)?;
    (mask >= 0 && mask & size == 0).then_some(size)
}

fn divided(value: Value, divisor: Option<i64>) -> Index {
    match divisor {
        Some(divisor @ 1..) => value.index.divided(divisor),
        _ => only_uniform(value.ty, value.index).index,
    }
}

fn remainder(value: Value, divisor: Option<i64>) -> Index {
    match divisor {
        Some(divisor @ 1..) => value.index.remainder(divisor),
        _ => only_uniform(value.ty, value.index).index,
    }
}
