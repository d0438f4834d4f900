//! Arithmetic, logic, comparisons, selections.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::{Form, class};
use crate::code::op::{Class, SLOTS};
use crate::machine::{alu, moves};
use crate::math::Comparison;
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// A type of each class, to read operands by.
fn type_of(class: Class, hint: Option<Scalar>) -> Scalar {
    match (class, hint) {
        (Class::Single, Some(ty @ (Scalar::F32 | Scalar::S8 | Scalar::S16 | Scalar::S32))) => ty,
        (Class::Double, Some(ty @ (Scalar::F64 | Scalar::S64))) => ty,
        (Class::Single, _) => Scalar::B32,
        (Class::Double, _) => Scalar::B64,
        (Class::Quad, _) => Scalar::B128,
        (Class::Predicate, _) => Scalar::Pred,
    }
}

/// An instruction that treats each lane alike.
pub(in crate::code) fn lanes(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.take("cc") {
        return with_carry(body, form, i, true);
    }
    if let Some(ty) = form.take_any(&["s16x2", "u16x2"]) {
        return super::video::pairs(body, form, i, ty == "s16x2");
    }
    let Some(entry) = alu::select(form) else { return Err("no such form".to_owned()) };
    if i.operands.len() != entry.classes.len() {
        return Err(format!("{} operands where {} are taken", i.operands.len(), entry.classes.len()));
    }
    let ty = form.ty();
    let mut all = [Slot::None; SLOTS];
    for (at, class) in entry.classes.iter().enumerate().skip(1) {
        all[at] = body.read(&i.operands[at], type_of(*class, ty))?;
    }
    all[0] = body.write(&i.operands[0], type_of(entry.classes[0], form.types.first().copied()))?;
    let draft = body.draft(entry.run, all);
    body.push(Draft { aux: entry.aux, ..draft });
    Ok(())
}

/// `and`, `or`, `xor`, `not`: of predicates, or of bits.
pub(in crate::code) fn logic(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.ty() != Some(Scalar::Pred) {
        return lanes(body, form, i);
    }
    let a = body.read(Body::operand(i, 1)?, Scalar::Pred)?;
    let (run, b) = match moves::combine_predicates(form.opcode) {
        Some(run) => (run, body.read(Body::operand(i, 2)?, Scalar::Pred)?),
        None => (moves::not_predicate(), Slot::None),
    };
    let d = body.write(Body::operand(i, 0)?, Scalar::Pred)?;
    let draft = body.draft(run, slots([d, a, b]));
    body.push(draft);
    Ok(())
}

/// `mad`, whose `.cc` form is a product and a sum.
pub(in crate::code) fn multiply_add(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
) -> Lowered {
    if form.take("cc") { product_with_carry(body, form, i, false, true) } else { lanes(body, form, i) }
}

/// `addc`, `subc`, `madc`.
pub(in crate::code) fn carried(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let out = form.take("cc");
    if form.opcode == "madc" {
        return product_with_carry(body, form, i, true, out);
    }
    with_carry(body, form, i, out)
}

/// `add.cc`, `addc`, `sub.cc`, `subc`.
fn with_carry(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction, out: bool) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let d = body.write(Body::operand(i, 0)?, ty)?;
    let (subtract, with) = (form.opcode.starts_with("sub"), form.opcode.ends_with('c'));
    sum_with_carry(body, ty, [d, a, b], subtract, with, out)
}

fn sum_with_carry(
    body: &mut Body<'_, '_>,
    ty: Scalar,
    [d, a, b]: [Slot; 3],
    subtract: bool,
    carry_in: bool,
    carry_out: bool,
) -> Lowered {
    let run = alu::bits::carry(subtract, ty).ok_or("no such form")?;
    let flag = body.carry();
    let from = if carry_in { Slot::Use(flag) } else { Slot::None };
    let to = if carry_out { Slot::Def(flag) } else { Slot::None };
    let draft = body.draft(run, slots([d, a, b, from, to]));
    body.push(draft);
    Ok(())
}

/// `mad.lo.cc` and its like: the product first, then the sum with its carries.
fn product_with_carry(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
    carry_in: bool,
    carry_out: bool,
) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let mut product = form.clone();
    product.opcode = "mul";
    let entry = alu::select(&mut product).ok_or("no such form")?;
    form.take_any(&["lo", "hi"]).ok_or("only .lo and .hi carry")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let c = body.read(Body::operand(i, 3)?, ty)?;
    let part = body.register(class(ty));
    body.push_hidden(entry.run, slots([Slot::Def(part), a, b]), 0);
    let d = body.write(Body::operand(i, 0)?, ty)?;
    sum_with_carry(body, ty, [d, Slot::Use(part), c], false, carry_in, carry_out)
}

/// The modifiers of `set` and `setp`: the comparison, and what a third operand is combined by, for [`alu::compare::pack`].
fn comparison(form: &mut Form<'_>) -> Result<(u32, bool), String> {
    const NAMES: &[&str] = &[
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
        "num", "nan",
    ];
    let name = form.take_any(NAMES).ok_or("the comparison is missing")?;
    let comparison = Comparison::named(name).ok_or("no such comparison")?;
    let combine = match form.take_any(&["and", "or", "xor"]) {
        Some("and") => 0,
        Some("or") => 1,
        Some(_) => 2,
        None => 3,
    };
    Ok((alu::compare::pack(comparison, combine), form.take("ftz")))
}

/// `setp.cmp{.op}.ty p{|q}, a, b{, c}`.
pub(in crate::code) fn set_predicate(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let (aux, ftz) = comparison(form)?;
    if matches!(ty, Scalar::F16x2 | Scalar::Bf16x2) {
        return set_predicates_of_halves(body, i, ty, aux);
    }
    let run = alu::compare::set_predicates(ty, ftz).ok_or("no such form")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let c = i.operands.get(3).map_or(Ok(Slot::None), |c| body.read(c, Scalar::Pred))?;
    let (p, q) = match Body::operand(i, 0)? {
        Operand::Pair(p, q) => (body.write_predicate(Some(p))?, body.write_predicate(Some(q))?),
        p => (body.write_predicate(Some(p))?, Slot::None),
    };
    let draft = body.draft(run, slots([p, q, a, b, c]));
    body.push(Draft { aux, ..draft });
    Ok(())
}

/// `setp.….f16x2 p|q`: one predicate for each half.
fn set_predicates_of_halves(body: &mut Body<'_, '_>, i: &Instruction, ty: Scalar, aux: u32) -> Lowered {
    let one = if ty == Scalar::F16x2 { Scalar::F16 } else { Scalar::Bf16 };
    let run = alu::compare::set_predicates(one, false).ok_or("no such form")?;
    let Operand::Pair(p, q) = Body::operand(i, 0)? else {
        return Err("two destinations are needed".to_owned());
    };
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let c = i.operands.get(3).map_or(Ok(Slot::None), |c| body.read(c, Scalar::Pred))?;
    let mut high = |whole: Slot| -> Result<Slot, String> {
        let half = body.register(Class::Single);
        let run = moves::extract(Class::Single, Class::Single).ok_or("no such form")?;
        body.push_hidden(run, slots([Slot::Def(half), whole]), 16);
        if let Some(last) = body.drafts.last_mut() {
            last.aux = 16;
        }
        Ok(Slot::Use(half))
    };
    let (high_a, high_b) = (high(a)?, high(b)?);
    let (p, q) = (body.write_predicate(Some(p))?, body.write_predicate(Some(q))?);
    let first = body.draft(run, slots([p, Slot::None, a, b, c]));
    body.push(Draft { aux, ..first });
    let second = body.draft(run, slots([q, Slot::None, high_a, high_b, c]));
    body.push(Draft { aux, flags: crate::code::HIDDEN, ..second });
    Ok(())
}

/// `set.cmp{.op}.dtype.ty d, a, b{, c}`.
pub(in crate::code) fn set(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let [result, ty] = form.types[..] else { return Err("two types are needed".to_owned()) };
    let (aux, ftz) = comparison(form)?;
    if matches!(ty, Scalar::F16x2 | Scalar::Bf16x2) {
        let run = alu::compare::set_halves(result, ty).ok_or("no such form")?;
        if i.operands.len() != 3 {
            return Err("no such form".to_owned());
        }
        let a = body.read(Body::operand(i, 1)?, ty)?;
        let b = body.read(Body::operand(i, 2)?, ty)?;
        let d = body.write(Body::operand(i, 0)?, result)?;
        let draft = body.draft(run, slots([d, a, b]));
        body.push(Draft { aux, immediate: i64::from(ftz), ..draft });
        return Ok(());
    }
    let run = alu::compare::set(result, ty, ftz).ok_or("no such form")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let c = i.operands.get(3).map_or(Ok(Slot::None), |c| body.read(c, Scalar::Pred))?;
    let d = body.write(Body::operand(i, 0)?, result)?;
    let draft = body.draft(run, slots([d, Slot::None, a, b, c]));
    body.push(Draft { aux, ..draft });
    Ok(())
}

/// `selp.ty d, a, b, p`.
pub(in crate::code) fn select(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let run = alu::compare::select(class(ty)).ok_or("no such form")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let p = body.read(Body::operand(i, 3)?, Scalar::Pred)?;
    let d = body.write(Body::operand(i, 0)?, ty)?;
    let draft = body.draft(run, slots([d, a, b, p]));
    body.push(draft);
    Ok(())
}

/// `slct.dtype.ctype d, a, b, c`.
pub(in crate::code) fn select_by_sign(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
) -> Lowered {
    let [ty, by] = form.types[..] else { return Err("two types are needed".to_owned()) };
    let ftz = form.take("ftz");
    let run = alu::compare::select_by_sign(class(ty), by, ftz).ok_or("no such form")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let c = body.read(Body::operand(i, 3)?, by)?;
    let d = body.write(Body::operand(i, 0)?, ty)?;
    let draft = body.draft(run, slots([d, a, b, c]));
    body.push(draft);
    Ok(())
}

/// `lop3.b32 d, a, b, c, table`.
pub(in crate::code) fn lop3(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.ty() != Some(Scalar::B32) {
        return Err("no such form".to_owned());
    }
    let Operand::Int(table) = Body::operand(i, 4)? else {
        return Err("the table must be a literal".to_owned());
    };
    let a = body.read(Body::operand(i, 1)?, Scalar::B32)?;
    let b = body.read(Body::operand(i, 2)?, Scalar::B32)?;
    let c = body.read(Body::operand(i, 3)?, Scalar::B32)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::B32)?;
    let draft = body.draft(alu::bits::lop3(), slots([d, a, b, c]));
    body.push(Draft { immediate: *table as i64, ..draft });
    Ok(())
}

/// `bfi.ty d, a, b, position, length`.
pub(in crate::code) fn insert_field(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let run = alu::bits::insert_field(ty).ok_or("no such form")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let b = body.read(Body::operand(i, 2)?, ty)?;
    let position = body.read(Body::operand(i, 3)?, Scalar::U32)?;
    let length = body.read(Body::operand(i, 4)?, Scalar::U32)?;
    let d = body.write(Body::operand(i, 0)?, ty)?;
    let draft = body.draft(run, slots([d, a, b, position, length]));
    body.push(draft);
    Ok(())
}

/// `testp.class.ty p, a`.
pub(in crate::code) fn test(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let class = form
        .take_any(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"])
        .ok_or("the class is missing")?;
    let run = alu::compare::test_class(ty).ok_or("no such form")?;
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let p = body.write_predicate(i.operands.first())?;
    let draft = body.draft(run, slots([p, a]));
    body.push(Draft { aux: alu::compare::class_number(class), ..draft });
    Ok(())
}
