//! Copies and reductions of boxes of tensors, and reductions in bulk.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::Form;
use crate::code::lower::atomic::is_float;
use crate::code::lower::memory::{hints, space};
use crate::code::op::{Handler, SLOTS};
use crate::machine::access::{Global, SharedSpace, Space};
use crate::machine::atomic::*;
use crate::machine::mbarrier::bulk_reduce;
use crate::machine::tensor_map as run;
use crate::ptx::ast::Scalar::{self, *};
use crate::ptx::ast::{Instruction, Operand};

/// Takes the number of dimensions.
fn rank(form: &mut Form<'_>) -> Result<u32, String> {
    const RANKS: [&str; 5] = ["1d", "2d", "3d", "4d", "5d"];
    let found = form.take_any(&RANKS).ok_or("the dimensions are missing")?;
    Ok(RANKS.iter().position(|rank| *rank == found).map_or(0, |at| at as u32 + 1))
}

/// `cp.async.bulk.tensor`: `[to], [map, {coordinates}], [barrier]{, blocks}{, policy}`, or `[map, {coordinates}], [from]`.
pub(super) fn copy(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.take("prefetch") {
        return super::memory::ignore(body, form, i);
    }
    let rank = rank(form)?;
    let (to, from) = (space(form), space(form));
    let images = form.take("im2col");
    // To global memory, without offsets.
    let back = !images && form.take("im2col_no_offs");
    form.take("tile");
    let told = form.take("mbarrier::complete_tx::bytes");
    let multicast = form.take("multicast::cluster");
    form.take("bulk_group");
    hints(form);
    match (to, from) {
        (Some("shared::cluster" | "shared::cta"), Some("global")) if told => {
            let target = body.address_value(Body::operand(i, 0)?)?;
            let barrier = body.address_value(Body::operand(i, 2)?)?;
            let (offsets, last) =
                if images { (offsets(body, Body::operand(i, 3)?, rank)?, 4) } else { (Vec::new(), 3) };
            let mask = if multicast { body.read(Body::operand(i, last)?, Scalar::U32)? } else { Slot::None };
            let number = rank | if images { run::IMAGES | run::OFFSETS } else { 0 };
            push(body, run::load(), Body::operand(i, 1)?, number, [target, barrier, mask], offsets)
        }
        (Some("global"), Some("shared::cta")) if !images => {
            let source = body.address_value(Body::operand(i, 1)?)?;
            let number = rank | images_without_offsets(rank, back)?;
            push(
                body,
                run::store(),
                Body::operand(i, 0)?,
                number,
                [source, Slot::None, Slot::None],
                Vec::new(),
            )
        }
        _ => Err("no such form".to_owned()),
    }
}

/// Images have three to five dimensions.
fn images_without_offsets(rank: u32, are: bool) -> Result<u32, String> {
    match are {
        true if rank < 3 => Err("images have at least three dimensions".to_owned()),
        true => Ok(run::IMAGES),
        false => Ok(0),
    }
}

/// The filter's offsets, `{width, height, depth}`: two less than dimensions.
fn offsets(body: &mut Body<'_, '_>, operand: &Operand, rank: u32) -> Result<Vec<Slot>, String> {
    images_without_offsets(rank, true)?;
    match operand {
        Operand::Vector(all) if all.len() + 2 == rank as usize => {
            all.iter().map(|one| body.read(one, Scalar::U16)).collect()
        }
        _ => Err(format!("a vector of {} offsets is missing", rank - 2)),
    }
}

/// Puts a copy of a box together: `number` is the rank, with the operation of a reduction and what else `slots[5]` holds; then where the box lies in
/// shared memory, the barrier, the mask of blocks; then the filter's offsets.
fn push(
    body: &mut Body<'_, '_>,
    run: Handler,
    tensor: &Operand,
    number: u32,
    [shared, barrier, mask]: [Slot; 3],
    offsets: Vec<Slot>,
) -> Lowered {
    let Operand::Bracketed(parts) = tensor else {
        return Err("a tensor map with coordinates is missing".to_owned());
    };
    let [map, Operand::Vector(coordinates)] = &parts[..] else {
        return Err("a tensor map with coordinates is missing".to_owned());
    };
    let map = match map {
        Operand::Name(name) => Operand::Address { base: Some(name.clone()), offset: 0 },
        Operand::NameOffset(name, offset) => Operand::Address { base: Some(name.clone()), offset: *offset },
        _ => return Err("a tensor map must be named by its address".to_owned()),
    };
    let map = body.address_value(&map)?;
    let dimensions = number & run::RANK_MASK;
    if coordinates.len() != dimensions as usize {
        return Err(format!("{} coordinates for {dimensions} dimensions", coordinates.len()));
    }
    let mut more: Vec<Slot> =
        coordinates.iter().map(|one| body.read(one, Scalar::S32)).collect::<Result<_, _>>()?;
    more.extend(offsets);
    let mut all = [Slot::None; SLOTS];
    all[1..=5].copy_from_slice(&[shared, map, barrier, mask, Slot::Fixed(number)]);
    let draft = body.draft(run, all);
    body.push(Draft { more, ..draft });
    Ok(())
}

/// In the order of [`run::reducer`].
const OPERATIONS: &[&str] = &["add", "min", "max", "inc", "dec", "and", "or", "xor"];

fn choose<S: Space>(name: &str, ty: Scalar) -> Option<Handler> {
    Some(match (name, ty) {
        ("add", U32 | S32) => bulk_reduce::<S, Add32>(),
        ("add", U64 | S64) => bulk_reduce::<S, Add64>(),
        ("add", F16) => bulk_reduce::<S, AddF16>(),
        ("add", Bf16) => bulk_reduce::<S, AddBf16>(),
        ("add", F32) => bulk_reduce::<S, AddF32>(),
        ("add", F64) => bulk_reduce::<S, AddF64>(),
        ("min", F16) => bulk_reduce::<S, MinF16>(),
        ("max", F16) => bulk_reduce::<S, MaxF16>(),
        ("min", Bf16) => bulk_reduce::<S, MinBf16>(),
        ("max", Bf16) => bulk_reduce::<S, MaxBf16>(),
        ("min", U32) => bulk_reduce::<S, MinU32>(),
        ("max", U32) => bulk_reduce::<S, MaxU32>(),
        ("min", S32) => bulk_reduce::<S, MinS32>(),
        ("max", S32) => bulk_reduce::<S, MaxS32>(),
        ("min", U64) => bulk_reduce::<S, MinU64>(),
        ("max", U64) => bulk_reduce::<S, MaxU64>(),
        ("min", S64) => bulk_reduce::<S, MinS64>(),
        ("max", S64) => bulk_reduce::<S, MaxS64>(),
        ("and", B32) => bulk_reduce::<S, And32>(),
        ("or", B32) => bulk_reduce::<S, Or32>(),
        ("xor", B32) => bulk_reduce::<S, Xor32>(),
        ("and", B64) => bulk_reduce::<S, And64>(),
        ("or", B64) => bulk_reduce::<S, Or64>(),
        ("xor", B64) => bulk_reduce::<S, Xor64>(),
        ("inc", U32) => bulk_reduce::<S, Inc32>(),
        ("dec", U32) => bulk_reduce::<S, Dec32>(),
        _ => return None,
    })
}

/// `cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.bulk_group [map, {coordinates}], [from]`; the map says the type.
fn reduce_box(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let rank = rank(form)?;
    let (to, from) = (space(form), space(form));
    let back = form.take("im2col_no_offs");
    form.take("tile");
    form.take("bulk_group");
    hints(form);
    let name = form.take_any(OPERATIONS).ok_or("no such operation")?;
    if (to, from) != (Some("global"), Some("shared::cta")) {
        return Err("no such form".to_owned());
    }
    // The type may be one of floating-point numbers, whose sums depend on their order.
    body.unit.ordered |= matches!(name, "add" | "inc" | "dec");
    let operation = OPERATIONS.iter().position(|operation| *operation == name).unwrap_or(0) as u32;
    let source = body.address_value(Body::operand(i, 1)?)?;
    let number = rank | images_without_offsets(rank, back)? | operation << run::OPERATION_SHIFT;
    push(body, run::reduce(), Body::operand(i, 0)?, number, [source, Slot::None, Slot::None], Vec::new())
}

/// `cp.reduce.async.bulk.to.from….op.ty [to], [from], size{, [barrier]}`.
pub(in crate::code) fn reduce(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if !(form.take("async") & form.take("bulk")) {
        return Err("no such form".to_owned());
    }
    if form.take("tensor") {
        return reduce_box(body, form, i);
    }
    let (to, from) = (space(form), space(form));
    let told = form.take("mbarrier::complete_tx::bytes");
    form.take("bulk_group");
    form.take("noftz");
    hints(form);
    let ty = form.ty().ok_or("the type is missing")?;
    let name = form.take_any(OPERATIONS).ok_or("no such operation")?;
    let run = match (to, from) {
        (Some("global"), Some("shared::cta")) => choose::<Global>(name, ty),
        (Some("shared::cluster"), Some("shared::cta")) => choose::<SharedSpace>(name, ty),
        _ => None,
    };
    let run = run.ok_or("no such form")?;
    body.unit.ordered |= to == Some("global") && (is_float(ty) || matches!(name, "inc" | "dec"));
    let target = body.address_value(Body::operand(i, 0)?)?;
    let source = body.address_value(Body::operand(i, 1)?)?;
    let size = body.read(Body::operand(i, 2)?, Scalar::U32)?;
    let barrier = if told { body.address_value(Body::operand(i, 3)?)? } else { Slot::None };
    let draft = body.draft(run, slots([Slot::None, target, source, size, barrier]));
    body.push(draft);
    Ok(())
}
