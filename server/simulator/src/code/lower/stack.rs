//! `alloca`, `stacksave`, `stackrestore`.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::Form;
use crate::machine::stack as run;
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// Alignment where the instruction names none. Source: PTX ISA, "Stack Manipulation Instructions: alloca".
const ALIGNMENT: u64 = 8;

/// `alloca.u64 d, size{, alignment}`.
pub(in crate::code) fn allocate(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    wide(form)?;
    let alignment = match i.operands.get(2) {
        None => ALIGNMENT,
        Some(Operand::Int(alignment)) if alignment.is_power_of_two() => *alignment,
        Some(_) => return Err("the alignment must be a power of two".to_owned()),
    };
    let size = body.read(Body::operand(i, 1)?, Scalar::U64)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::U64)?;
    let draft = body.draft(run::allocate(), slots([d, size]));
    body.push(Draft { immediate: alignment as i64, ..draft });
    Ok(())
}

/// `stacksave.u64 d`.
pub(in crate::code) fn save(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    wide(form)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::U64)?;
    let draft = body.draft(run::save(), slots([d]));
    body.push(draft);
    Ok(())
}

/// `stackrestore.u64 a`.
pub(in crate::code) fn restore(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    wide(form)?;
    let a = body.read(Body::operand(i, 0)?, Scalar::U64)?;
    let draft = body.draft(run::restore(), slots([Slot::None, a]));
    body.push(draft);
    Ok(())
}

fn wide(form: &Form<'_>) -> Lowered {
    match form.ty() {
        Some(Scalar::U64 | Scalar::B64) => Ok(()),
        _ => Err("only 64-bit addresses run".to_owned()),
    }
}
