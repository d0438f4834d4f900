//! Instructions of several lanes together: barriers, shuffles, votes.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::{Form, size};
use crate::code::op::{Handler, SLOTS};
use crate::machine::barrier as run;
use crate::machine::sync::{
    DOUBLE_INPUT, Elect, Match, PREDICATE_INPUT, PREDICATE_RESULT, Redux, Shuffle, Vote, WarpBarrier,
    active_mask as here, together,
};
use crate::ptx::ast::Scalar::{self, B32, Pred, S32, U32};
use crate::ptx::ast::{Instruction, Operand};

/// Result and second result of `d|p`.
fn destinations(body: &mut Body<'_, '_>, operand: &Operand, ty: Scalar) -> Result<(Slot, Slot), String> {
    match operand {
        Operand::Pair(d, p) => Ok((body.write(d, ty)?, body.write_predicate(Some(p))?)),
        d => Ok((body.write(d, ty)?, Slot::None)),
    }
}

fn needs_sync(form: &mut Form<'_>) -> Lowered {
    form.take("sync").then_some(()).ok_or_else(|| "only the .sync form runs on sm_70 and later".to_owned())
}

/// `shfl.sync.mode.b32 d{|p}, a, b, c, members`.
pub(in crate::code) fn shuffle(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    needs_sync(form)?;
    let run = match form.take_any(&["up", "down", "bfly", "idx"]) {
        Some("up") => together::<Shuffle<0>>(),
        Some("down") => together::<Shuffle<1>>(),
        Some("bfly") => together::<Shuffle<2>>(),
        Some(_) => together::<Shuffle<3>>(),
        None => return Err("the mode is missing".to_owned()),
    };
    let mut read = |at| body.read(Body::operand(i, at)?, B32);
    let (a, b, c, members) = (read(1)?, read(2)?, read(3)?, read(4)?);
    let (d, p) = destinations(body, Body::operand(i, 0)?, B32)?;
    let draft = body.draft(run, slots([d, p, a, b, c, members]));
    body.push(draft);
    Ok(())
}

/// `vote.sync.mode d, p, members`.
pub(in crate::code) fn vote(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    needs_sync(form)?;
    let (run, result) = match form.take_any(&["all", "any", "uni", "ballot"]) {
        Some("all") => (together::<Vote<0>>(), Pred),
        Some("any") => (together::<Vote<1>>(), Pred),
        Some("uni") => (together::<Vote<2>>(), Pred),
        Some(_) => (together::<Vote<3>>(), B32),
        None => return Err("the mode is missing".to_owned()),
    };
    let a = body.read(Body::operand(i, 1)?, Pred)?;
    let members = body.read(Body::operand(i, 2)?, B32)?;
    let d = body.write(Body::operand(i, 0)?, result)?;
    let aux = PREDICATE_INPUT | if result == Pred { PREDICATE_RESULT } else { 0 };
    let draft = body.draft(run, slots([d, Slot::None, a, Slot::None, Slot::None, members]));
    body.push(Draft { aux, ..draft });
    Ok(())
}

/// `match.any.sync.ty d, a, members`, `match.all.sync.ty d{|p}, a, members`.
pub(in crate::code) fn matched(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    needs_sync(form)?;
    let ty = form.ty().ok_or("the type is missing")?;
    let run = match form.take_any(&["any", "all"]) {
        Some("any") => together::<Match<false>>(),
        Some(_) => together::<Match<true>>(),
        None => return Err("the mode is missing".to_owned()),
    };
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let members = body.read(Body::operand(i, 2)?, B32)?;
    let (d, p) = destinations(body, Body::operand(i, 0)?, B32)?;
    let draft = body.draft(run, slots([d, p, a, Slot::None, Slot::None, members]));
    body.push(Draft { aux: if size(ty) == 8 { DOUBLE_INPUT } else { 0 }, ..draft });
    Ok(())
}

/// `redux.sync.op.ty d, a, members`.
pub(in crate::code) fn reduced(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    needs_sync(form)?;
    let ty = form.ty().ok_or("the type is missing")?;
    let name = form.take_any(&["add", "min", "max", "and", "or", "xor"]).ok_or("the operation is missing")?;
    let run: Handler = match (name, ty) {
        ("add", U32 | S32) => together::<Redux<0>>(),
        ("min", U32) => together::<Redux<1>>(),
        ("max", U32) => together::<Redux<2>>(),
        ("min", S32) => together::<Redux<3>>(),
        ("max", S32) => together::<Redux<4>>(),
        ("and", B32) => together::<Redux<5>>(),
        ("or", B32) => together::<Redux<6>>(),
        ("xor", B32) => together::<Redux<7>>(),
        _ => return Err("no such form".to_owned()),
    };
    let a = body.read(Body::operand(i, 1)?, B32)?;
    let members = body.read(Body::operand(i, 2)?, B32)?;
    let d = body.write(Body::operand(i, 0)?, B32)?;
    let draft = body.draft(run, slots([d, Slot::None, a, Slot::None, Slot::None, members]));
    body.push(draft);
    Ok(())
}

/// `elect.sync d|p, members`.
pub(in crate::code) fn elect(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    needs_sync(form)?;
    let members = body.read(Body::operand(i, 1)?, B32)?;
    let (d, p) = destinations(body, Body::operand(i, 0)?, B32)?;
    let draft = body.draft(together::<Elect>(), slots([d, p, Slot::None, Slot::None, Slot::None, members]));
    body.push(draft);
    Ok(())
}

/// `activemask.b32 d`.
pub(in crate::code) fn active_mask(body: &mut Body<'_, '_>, _: &mut Form<'_>, i: &Instruction) -> Lowered {
    let d = body.write(Body::operand(i, 0)?, B32)?;
    let draft = body.draft(here(), slots([d]));
    body.push(draft);
    Ok(())
}

/// `bar` and `barrier`: of the block, of the cluster, of the warp.
pub(in crate::code) fn barrier(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.take("warp") {
        needs_sync(form)?;
        let members = body.read(Body::operand(i, 0)?, B32)?;
        let none = Slot::None;
        let draft = body.draft(together::<WarpBarrier>(), slots([none, none, none, none, none, members]));
        body.push(draft);
        return Ok(());
    }
    // `bar` is short for `barrier.cta.….aligned`.
    let aligned = form.take("aligned") || i.opcode == "bar";
    if form.take("cluster") {
        return cluster_barrier(body, form, i);
    }
    form.take("cta");
    let kind = form.take_any(&["sync", "arrive", "red"]).ok_or("the operation is missing")?;
    let (aux, result) = match (kind, form.take_any(&["popc", "and", "or"])) {
        ("sync", None) => (run::SYNC, None),
        ("arrive", None) => (run::ARRIVE, None),
        ("red", Some("popc")) => (run::POPC, Some(U32)),
        ("red", Some("and")) => (run::AND, Some(Pred)),
        ("red", Some("or")) => (run::OR, Some(Pred)),
        _ => return Err("no such form".to_owned()),
    };
    let mut operands = i.operands.iter();
    let d = match result {
        Some(ty) => body.write(operands.next().ok_or("the result is missing")?, ty)?,
        None => Slot::None,
    };
    let mut rest: Vec<&Operand> = operands.collect();
    let predicate = match result {
        Some(_) => body.read(rest.pop().ok_or("the predicate is missing")?, Pred)?,
        None => Slot::None,
    };
    let id = body.read(rest.first().copied().unwrap_or(&Operand::Int(0)), U32)?;
    let count = rest.get(1).map_or(Ok(Slot::None), |count| body.read(count, U32))?;
    let draft = body.draft(run::barrier(), slots([d, id, count, predicate]));
    body.push(Draft { aux: aux | if aligned { run::ALIGNED } else { 0 }, ..draft });
    Ok(())
}

fn cluster_barrier(body: &mut Body<'_, '_>, form: &mut Form<'_>, _: &Instruction) -> Lowered {
    form.take_any(&["release", "acquire", "relaxed"]);
    let handler = match form.take_any(&["arrive", "wait"]) {
        Some("arrive") => run::cluster_arrive(),
        Some(_) => run::cluster_wait(),
        None => return Err("no such form".to_owned()),
    };
    form.take("aligned");
    let draft = body.draft(handler, [Slot::None; SLOTS]);
    body.push(draft);
    Ok(())
}
