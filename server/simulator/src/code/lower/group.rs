//! `wgmma`.

use crate::code::build::{Body, Draft, Lowered, Slot};
use crate::code::form::Form;
use crate::code::lower::matrix::{
    aligned, element, number, plain, register_of, registers, registers_of, shape, types,
};
use crate::code::lower::memory::ignore;
use crate::code::op::SLOTS;
use crate::machine::barrier;
use crate::machine::matrix::fragment::{a_places, c_places};
use crate::machine::matrix::group as run;
use crate::machine::matrix::{Element, MATRIX, Number};
use crate::math::tensor::Sum;
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// Rows that a warp has of the 64.
const ROWS: usize = 16;

/// `wgmma.fence`, `.commit_group`, `.wait_group`, `.mma_async`.
pub(in crate::code) fn wgmma(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    match form.take_any(&["fence", "commit_group", "wait_group", "mma_async"]) {
        Some("mma_async") => multiply(body, form, i),
        Some("wait_group") => {
            aligned(form)?;
            let draft = body.draft(barrier::warpgroup(), [Slot::None; SLOTS]);
            body.push(draft);
            Ok(())
        }
        Some(_) => ignore(body, form, i),
        None => Err("the operation is missing".to_owned()),
    }
}

/// How products of a type are summed, where it has this `k`.
fn sum_of(a: Element, k: usize) -> Option<Sum> {
    match (a, k) {
        (Element::F16 | Element::Bf16, 16) => Some(Sum::HALF),
        (Element::Tf32, 8) => Some(Sum::TF32),
        (Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8, 32) => Some(Sum::EIGHT),
        _ => None,
    }
}

fn multiply(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let sparse = form.take("sp");
    aligned(form)?;
    let [m, n, k] = shape(form)?;
    // Half of the columns of a sparse `a` are there; its metadata and their selector come before what all have.
    let (share, after) = if sparse { (2, 5) } else { (1, 3) };
    let types = types(form, i);
    let [d, a, b] = types[..] else { return Err("three types are needed".to_owned()) };
    let (Some(d), Some(a), Some(b)) = (number(d), element(a), element(b)) else {
        return Err("no such types".to_owned());
    };
    let sum = sum_of(a, k / share)
        .filter(|_| m == 64 && n % 8 == 0 && n <= 256 && k % share == 0)
        .ok_or("no such shape for these types")?;
    let sum = Sum { block: share * sum.block, ..sum };
    let of_d = registers(Body::operand(i, 0)?);
    let held = registers_of(d, ROWS * n / 32);
    if of_d.len() != held {
        return Err(format!("{} registers for d, which takes {held}", of_d.len()));
    }
    let count = a.per_register();
    let per = if d == Number::F16 { 2 } else { 1 };
    let places = c_places(ROWS, n, held, per);
    let from_registers = matches!(Body::operand(i, 1)?, Operand::Vector(_));
    let of_a = if from_registers { registers(Body::operand(i, 1)?) } else { Vec::new() };
    if from_registers && of_a.len() != ROWS * k / share / 32 / count {
        return Err(format!("{} registers for a", of_a.len()));
    }
    let mut matrix = plain([ROWS, n, k], (a, b), (d, d), sum, [of_a.len(), 0]);
    matrix.shape[0] = m;
    matrix.saturate = form.take("satfinite");
    matrix.a_places = a_places(ROWS, k / share, of_a.len(), count);
    (matrix.c_places, matrix.d_places) = (places.clone(), places);
    let flags = flags(i, from_registers, a, after)?;
    let mut all = [Slot::None; SLOTS];
    if sparse {
        let Operand::Int(selector @ 0..=1) = Body::operand(i, 4)? else {
            return Err("the selector must be the literal 0 or 1".to_owned());
        };
        matrix.sparse = Some(*selector as u32);
        all[4] = body.read(Body::operand(i, 3)?, Scalar::B32)?;
    }
    all[0] = match i.operands.get(after) {
        Some(adds) => body.read(adds, Scalar::Pred)?,
        None => return Err("whether the accumulator is added is missing".to_owned()),
    };
    if !from_registers {
        all[1] = body.read(Body::operand(i, 1)?, Scalar::B64)?;
    }
    all[2] = body.read(Body::operand(i, 2)?, Scalar::B64)?;
    all[3] = Slot::Fixed(flags);
    let ty = register_of(d);
    let old: Vec<Slot> = of_d.iter().map(|one| body.read(one, ty)).collect::<Result<_, _>>()?;
    let read_a: Vec<Slot> = of_a.iter().map(|one| body.read(one, Scalar::B32)).collect::<Result<_, _>>()?;
    let mut more: Vec<Slot> = of_d.iter().map(|one| body.write(one, ty)).collect::<Result<_, _>>()?;
    more.extend(old);
    more.extend(read_a);
    all[MATRIX] = Slot::Fixed(body.unit.matrices.len() as u32);
    body.unit.matrices.push(matrix);
    let draft = body.draft(run::multiply(), all);
    body.push(Draft { more, ..draft });
    Ok(())
}

/// Signs and layouts, from the operand after `after` on: `imm-scale-a, imm-scale-b`, then, of 16 bits, `imm-trans-a` (where `a` is in memory)
/// and `imm-trans-b`.
fn flags(i: &Instruction, from_registers: bool, a: Element, after: usize) -> Result<u32, String> {
    let literal = |at: usize| match i.operands.get(after + at) {
        Some(Operand::Int(value)) => Ok(*value as i64),
        Some(_) => Err("signs and layouts must be literals".to_owned()),
        None => Ok(0),
    };
    let integers = matches!(a, Element::S8 | Element::U8);
    let most = match (integers, a.bits(), from_registers) {
        (true, ..) => 1,
        (_, 16, true) => 4,
        (_, 16, false) => 5,
        _ => 3,
    } + after;
    if i.operands.len() != most {
        return Err(format!("{} operands, of {most}", i.operands.len()));
    }
    let (across_a, across_b) = if from_registers { (0, literal(3)?) } else { (literal(3)?, literal(4)?) };
    let bit = |set: bool, flag: u32| if set { flag } else { 0 };
    Ok(bit(literal(1)? < 0, run::NEGATE_A)
        | bit(literal(2)? < 0, run::NEGATE_B)
        | bit(across_a != 0, run::ACROSS_A)
        | bit(across_b != 0, run::ACROSS_B))
}
