//! `mov`.

use crate::code::build::{Body, Lowered, slots};
use crate::code::form::{Form, class};
use crate::machine::moves;
use crate::ptx::ast::Instruction;

/// `mov.ty d, a`, where either may be a vector that is packed into or unpacked from the other.
pub(in crate::code) fn mov(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let d = body.write(Body::operand(i, 0)?, ty)?;
    let draft = body.draft(moves::copy(class(ty)), slots([d, a]));
    body.push(draft);
    Ok(())
}
