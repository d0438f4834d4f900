//! `atom`, `red`.

use crate::code::build::{Body, Draft, Lowered, Slot};
use crate::code::form::{Form, size};
use crate::code::lower::mbarrier::{tell, tells};
use crate::code::lower::memory::{hints, ordering, space};
use crate::code::op::{ATOMIC, HIDDEN, Handler, SLOTS};
use crate::machine::access::{ADDRESS, Generic, Global, SharedSpace, Space, UNCHECKED};
use crate::machine::atomic::*;
use crate::ptx::ast::Scalar::{self, *};
use crate::ptx::ast::{Instruction, Operand};

/// `atom.op.ty d, [a], b{, c}`.
pub(in crate::code) fn atomic(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    update(body, form, i, 1)
}

/// `red.op.ty [a], b`.
pub(in crate::code) fn reduction(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let told = tells(form);
    update(body, form, i, 0)?;
    if told { tell(body, Body::operand(i, 2)?, form.ty().map_or(0, size)) } else { Ok(()) }
}

const OPERATIONS: &[&str] = &["add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"];

fn update(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction, first: usize) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    // An order tells nothing new: what other blocks can tell from the value is decided below.
    ordering(form);
    form.take("noftz");
    let space = space(form);
    let name = form.take_any(OPERATIONS).ok_or("no such operation")?;
    let shared = matches!(space, Some("shared" | "shared::cta"));
    let run = match space {
        None => choose::<Generic>(name, ty),
        Some("global") => choose::<Global>(name, ty),
        Some("shared" | "shared::cta" | "shared::cluster") => choose::<SharedSpace>(name, ty),
        Some(other) => return Err(format!(".{other} can't be updated")),
    };
    let run = run.ok_or("no such form")?;
    hints(form);
    let count = match form.take_any(&["v2", "v4", "v8"]) {
        Some("v2") => 2,
        Some("v4") => 4,
        Some(_) => 8,
        None => 1,
    };
    let address = body.address(Body::operand(i, first)?)?;
    let elements = |operand: &Operand| match operand {
        Operand::Vector(elements) if count > 1 => elements.clone(),
        other => vec![other.clone(); count],
    };
    let values = elements(Body::operand(i, first + 1)?);
    let results = if first == 1 { elements(&i.operands[0]) } else { Vec::new() };
    if values.len() != count || (first == 1 && results.len() != count) {
        return Err(format!("{count} registers are needed"));
    }
    // Sums of integers and the like commute, so that blocks may go in any order if nobody looks at what was there.
    let commutes = !matches!(name, "exch" | "cas" | "inc" | "dec") && !is_float(ty);
    body.unit.ordered |= !shared && !commutes;
    for (at, value) in values.iter().enumerate() {
        let mut all = [Slot::None; SLOTS];
        all[ADDRESS] = address.slot;
        all[5] = body.read(value, ty)?;
        if let Some(c) = i.operands.get(first + 2)
            && name == "cas"
        {
            all[6] = body.read(c, ty)?;
        }
        if let Some(result) = results.get(at).filter(|result| **result != Operand::Sink) {
            all[0] = body.write(result, ty)?;
        }
        let draft = body.draft(run, all);
        // Elements are updated one by one; the first is counted for all.
        let (counted, hidden) = if at == 0 { (count as u32, 0) } else { (1, HIDDEN) };
        let flags = hidden | if shared { 0 } else { ATOMIC };
        let immediate = address.immediate + i64::from(size(ty)) * at as i64;
        // An exchange does not depend on what was there.
        let unchecked = if name == "exch" { UNCHECKED } else { 0 };
        let aux = address.aux | unchecked | counted << ELEMENT_SHIFT;
        body.push(Draft { aux, immediate, flags, ..draft });
    }
    Ok(())
}

pub(super) fn is_float(ty: Scalar) -> bool {
    matches!(ty, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F64)
}

fn choose<S: Space>(name: &str, ty: Scalar) -> Option<Handler> {
    Some(match (name, ty) {
        ("add", U32 | S32) => atomic_handler::<S, Add32>(),
        ("add", U64 | S64) => atomic_handler::<S, Add64>(),
        ("add", F32) => atomic_handler::<S, AddF32>(),
        ("add", F64) => atomic_handler::<S, AddF64>(),
        ("add", F16) => atomic_handler::<S, AddF16>(),
        ("add", Bf16) => atomic_handler::<S, AddBf16>(),
        ("add", F16x2) => atomic_handler::<S, AddF16x2>(),
        ("add", Bf16x2) => atomic_handler::<S, AddBf16x2>(),
        ("min", F16) => atomic_handler::<S, MinF16>(),
        ("max", F16) => atomic_handler::<S, MaxF16>(),
        ("min", Bf16) => atomic_handler::<S, MinBf16>(),
        ("max", Bf16) => atomic_handler::<S, MaxBf16>(),
        ("min", F16x2) => atomic_handler::<S, MinF16x2>(),
        ("max", F16x2) => atomic_handler::<S, MaxF16x2>(),
        ("min", Bf16x2) => atomic_handler::<S, MinBf16x2>(),
        ("max", Bf16x2) => atomic_handler::<S, MaxBf16x2>(),
        ("min", U32) => atomic_handler::<S, MinU32>(),
        ("max", U32) => atomic_handler::<S, MaxU32>(),
        ("min", U64) => atomic_handler::<S, MinU64>(),
        ("max", U64) => atomic_handler::<S, MaxU64>(),
        ("min", S32) => atomic_handler::<S, MinS32>(),
        ("max", S32) => atomic_handler::<S, MaxS32>(),
        ("min", S64) => atomic_handler::<S, MinS64>(),
        ("max", S64) => atomic_handler::<S, MaxS64>(),
        ("and", B32) => atomic_handler::<S, And32>(),
        ("or", B32) => atomic_handler::<S, Or32>(),
        ("xor", B32) => atomic_handler::<S, Xor32>(),
        ("and", B64) => atomic_handler::<S, And64>(),
        ("or", B64) => atomic_handler::<S, Or64>(),
        ("xor", B64) => atomic_handler::<S, Xor64>(),
        ("inc", U32) => atomic_handler::<S, Inc32>(),
        ("dec", U32) => atomic_handler::<S, Dec32>(),
        ("exch", B32 | U32 | S32 | F32) => atomic_handler::<S, Exchange32>(),
        ("exch", B64 | U64 | S64 | F64) => atomic_handler::<S, Exchange64>(),
        ("exch", B128) => atomic_handler::<S, Exchange128>(),
        ("cas", B16 | U16) => atomic_handler::<S, Swap16>(),
        ("cas", B32 | U32 | S32) => atomic_handler::<S, Swap32>(),
        ("cas", B64 | U64 | S64) => atomic_handler::<S, Swap64>(),
        ("cas", B128) => atomic_handler::<S, Swap128>(),
        _ => return None,
    })
}
