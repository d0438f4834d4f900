//! Video instructions: on packed halves and bytes (`vadd2`, `vsub4`, `vabsdiff4` and their like), on one value, and `vmad`.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::{Form, is_signed};
use crate::code::op::Class;
use crate::machine::alu::video::scalar::{self as single, Operation, Second};
use crate::machine::alu::video::{Part, Video, packed as lanewise, product as multiply, run};
use crate::math::Comparison;
use crate::math::video::{LaneOperation, LaneTypes, Lanes};
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// An operand without the selector that may follow it, and the selector: `%r1.b3210` picks bytes, `%r1.h10` halves.
fn selected(operand: &Operand, lanes: Lanes, second: bool) -> Result<(Operand, [u8; 4]), String> {
    let count = 32 / lanes.width as u8;
    let first = if second { count } else { 0 };
    let plain: [u8; 4] = std::array::from_fn(|at| first + at as u8);
    let Operand::Name(name) = operand else { return Ok((operand.clone(), plain)) };
    let Some((register, digits)) = name.split_once('.') else { return Ok((operand.clone(), plain)) };
    let digits = digits.get(1..).unwrap_or_default();
    if digits.len() != usize::from(count) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(format!("{name}: such a selector is not supported"));
    }
    let mut selector = plain;
    for (place, digit) in selector.iter_mut().zip(digits.bytes().rev()) {
        *place = digit - b'0';
    }
    Ok((Operand::Name(register.to_owned()), selector))
}

/// `vadd4.dtype.atype.btype{.sat}{.add} d{.mask}, a{.selector}, b{.selector}, c`.
pub(in crate::code) fn packed(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let lanes = if form.opcode.ends_with('2') { Lanes::HALVES } else { Lanes::BYTES };
    let operation = match form.opcode.trim_end_matches(['2', '4']) {
        "vadd" => LaneOperation::Add,
        "vsub" => LaneOperation::Sub,
        "vavrg" => LaneOperation::Average,
        "vabsdiff" => LaneOperation::AbsoluteDifference,
        "vmin" => LaneOperation::Min,
        "vmax" => LaneOperation::Max,
        "vset" => LaneOperation::Set(comparison(form)?),
        _ => return Err("no such form".to_owned()),
    };
    let [d, a, b] = types(form)?;
    let saturate = form.take("sat");
    let types = LaneTypes { d: is_signed(d), a: is_signed(a), b: is_signed(b), saturate };
    let accumulate = form.take("add");
    let (first, a) = selected(Body::operand(i, 1)?, lanes, false)?;
    let (second, b) = selected(Body::operand(i, 2)?, lanes, true)?;
    let (target, mask) = masked(Body::operand(i, 0)?, lanes)?;
    let first = body.read(&first, Scalar::B32)?;
    let second = body.read(&second, Scalar::B32)?;
    let c = body.read(Body::operand(i, 3)?, Scalar::B32)?;
    let d: Slot = body.write(&target, Scalar::B32)?;
    add(body, lanewise::How { lanes, operation, types, accumulate, mask, a, b }, [d, first, second, c]);
    Ok(())
}

/// `add`, `min`, `max` of two halves: `.s16x2`, `.u16x2`; `.relu` of signed ones. Source: PTX ISA 8.0, "Integer Arithmetic Instructions".
pub(in crate::code) fn pairs(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
    signed: bool,
) -> Lowered {
    let operation = match form.opcode {
        "add" => LaneOperation::Add,
        "min" => LaneOperation::Min,
        "max" => LaneOperation::Max,
        _ => return Err("no such form".to_owned()),
    };
    let relu = signed && form.opcode != "add" && form.take("relu");
    if i.operands.len() != 3 {
        return Err(format!("{} operands where 3 are taken", i.operands.len()));
    }
    let a = body.read(Body::operand(i, 1)?, Scalar::B32)?;
    let b = body.read(Body::operand(i, 2)?, Scalar::B32)?;
    let zero = body.read(&Operand::Int(0), Scalar::B32)?;
    let how = |operation| lanewise::How {
        lanes: Lanes::HALVES,
        operation,
        types: LaneTypes { d: signed, a: signed, b: signed, saturate: false },
        accumulate: false,
        mask: 0b11,
        a: [0, 1, 2, 3],
        b: [2, 3, 4, 5],
    };
    if !relu {
        let d = body.write(Body::operand(i, 0)?, Scalar::B32)?;
        add(body, how(operation), [d, a, b, zero]);
        return Ok(());
    }
    let between = body.register(Class::Single);
    add(body, how(operation), [Slot::Def(between), a, b, zero]);
    let d = body.write(Body::operand(i, 0)?, Scalar::B32)?;
    add(body, how(LaneOperation::Max), [d, Slot::Use(between), zero, zero]);
    if let Some(last) = body.drafts.last_mut() {
        last.flags |= crate::code::HIDDEN;
    }
    Ok(())
}

/// The destination without its mask (`%r1.b20`), and the mask: all lanes where none is written.
fn masked(operand: &Operand, lanes: Lanes) -> Result<(Operand, u32), String> {
    let all = (1 << (32 / lanes.width)) - 1;
    let Operand::Name(name) = operand else { return Ok((operand.clone(), all)) };
    let Some((register, digits)) = name.split_once('.') else { return Ok((operand.clone(), all)) };
    let mut mask = 0;
    for digit in digits.bytes().skip(1) {
        match digit {
            b'0'..=b'3' => mask |= 1 << (digit - b'0'),
            _ => return Err(format!("{name}: such a mask is not supported")),
        }
    }
    Ok((Operand::Name(register.to_owned()), mask & all))
}

/// The comparison of `vset`.
fn comparison(form: &mut Form<'_>) -> Result<Comparison, String> {
    let name = form.take_any(&["eq", "ne", "lt", "le", "gt", "ge"]).ok_or("the comparison is missing")?;
    Comparison::named(name).ok_or_else(|| "no such comparison".to_owned())
}

/// The types of d, a and b; `vset` has none of its result, 1 or 0.
fn types(form: &Form<'_>) -> Result<[Scalar; 3], String> {
    match form.types[..] {
        [d, a, b] => Ok([d, a, b]),
        [a, b] if form.opcode.starts_with("vset") => Ok([Scalar::U32, a, b]),
        _ => Err("three types are needed".to_owned()),
    }
}

/// An operand without the part that it may name, and the part: `%r1.b0`, `%r1.h1`.
fn part(operand: &Operand) -> Result<(Operand, Part), String> {
    let Operand::Name(name) = operand else { return Ok((operand.clone(), Part::WHOLE)) };
    let Some((register, part)) = name.split_once('.') else { return Ok((operand.clone(), Part::WHOLE)) };
    let part = Part::named(part).ok_or_else(|| format!("{name}: no such part"))?;
    Ok((Operand::Name(register.to_owned()), part))
}

/// `vadd.dtype.atype.btype{.sat}{.op2} d{.part}, a{.part}, b{.part}{, c}`.
pub(in crate::code) fn scalar(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let wrap = form.take("wrap");
    form.take("clamp");
    let operation = match form.opcode {
        "vadd" => Operation::Add,
        "vsub" => Operation::Sub,
        "vabsdiff" => Operation::AbsoluteDifference,
        "vmin" => Operation::Min,
        "vmax" => Operation::Max,
        "vshl" => Operation::Shl { wrap },
        "vshr" => Operation::Shr { wrap },
        _ => Operation::Set(comparison(form)?),
    };
    let signed = types(form)?.map(is_signed);
    let saturate = form.take("sat");
    let second = match form.take_any(&["add", "min", "max"]) {
        Some("add") => Second::Add,
        Some("min") => Second::Min,
        Some(_) => Second::Max,
        None => Second::Merge,
    };
    let (target, part_d) = part(Body::operand(i, 0)?)?;
    let (first, part_a) = part(Body::operand(i, 1)?)?;
    let (last, part_b) = part(Body::operand(i, 2)?)?;
    let first = body.read(&first, Scalar::B32)?;
    let last = body.read(&last, Scalar::B32)?;
    let c = body.read(i.operands.get(3).unwrap_or(&Operand::Int(0)), Scalar::B32)?;
    let d: Slot = body.write(&target, Scalar::B32)?;
    let how = single::How { operation, second, saturate, signed, parts: [part_d, part_a, part_b] };
    add(body, how, [d, first, last, c]);
    Ok(())
}

/// An operand that may be negated, without the sign, and whether it is.
fn negated(operand: &Operand) -> (Operand, bool) {
    match operand {
        Operand::Negated(name) => (Operand::Name(name.clone()), true),
        other => (other.clone(), false),
    }
}

/// `vmad.dtype.atype.btype{.po}{.sat}{.scale} d, {-}a{.part}, {-}b{.part}, {-}c`.
pub(in crate::code) fn product(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let [_, a, b] = types(form)?.map(is_signed);
    let plus_one = form.take("po");
    let saturate = form.take("sat");
    let scale = match form.take_any(&["shr7", "shr15"]) {
        Some("shr7") => 7,
        Some(_) => 15,
        None => 0,
    };
    let (first, minus_a) = negated(Body::operand(i, 1)?);
    let (last, minus_b) = negated(Body::operand(i, 2)?);
    let (c, negate_c) = negated(Body::operand(i, 3)?);
    let negate_product = minus_a != minus_b;
    if (plus_one || negate_product) && negate_c || plus_one && negate_product {
        return Err("only one of .po, a negated product and a negated sum".to_owned());
    }
    let (first, part_a) = part(&first)?;
    let (last, part_b) = part(&last)?;
    let first = body.read(&first, Scalar::B32)?;
    let last = body.read(&last, Scalar::B32)?;
    let c = body.read(&c, Scalar::B32)?;
    let d: Slot = body.write(Body::operand(i, 0)?, Scalar::B32)?;
    let (signed, parts) = ([a, b], [part_a, part_b]);
    let how = multiply::How { signed, parts, negate_product, negate_c, plus_one, saturate, scale };
    add(body, how, [d, first, last, c]);
    Ok(())
}

/// Adds the op of d, a, b and c.
fn add<V: Video>(body: &mut Body<'_, '_>, how: V, [d, a, b, c]: [Slot; 4]) {
    let (aux, immediate) = how.pack();
    let draft = body.draft(run::<V>(), slots([d, a, b, c]));
    body.push(Draft { aux, immediate, ..draft });
}
