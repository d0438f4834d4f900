//! Branches, calls, ends.

use crate::code::CallSite;
use crate::code::build::{Body, Draft, Flow, Lowered, Name, Slot, convention, slots};
use crate::code::form::Form;
use crate::code::op::SLOTS;
use crate::machine::{builtin, control as run};
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// `bra label`.
pub(in crate::code) fn branch(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    form.take("uni");
    let Operand::Name(label) = Body::operand(i, 0)? else {
        return Err("the target must be a label".to_owned());
    };
    let flow = Flow::Branch(body.label(label)?);
    let draft = body.draft(run::branch(), [Slot::None; SLOTS]);
    body.push(Draft { flow, ..draft });
    Ok(())
}

/// `brx.idx index, table`.
pub(in crate::code) fn branch_indexed(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
) -> Lowered {
    form.take("idx");
    form.take("uni");
    let Operand::Name(name) = Body::operand(i, 1)? else { return Err("the table must be a name".to_owned()) };
    let Some(Name::Labels(names)) = body.name(name).cloned() else {
        return Err(format!("{name} is no list of targets"));
    };
    let labels = names.iter().map(|name| body.label(name)).collect::<Result<Vec<_>, _>>()?;
    let index = body.read(Body::operand(i, 0)?, Scalar::U32)?;
    let aux = body.table();
    let draft = body.draft(run::branch_indexed(), slots([index]));
    body.push(Draft { flow: Flow::Table(labels), aux, ..draft });
    Ok(())
}

/// `ret`.
pub(in crate::code) fn ret(body: &mut Body<'_, '_>, form: &mut Form<'_>, _: &Instruction) -> Lowered {
    form.take("uni");
    let draft = body.draft(run::ret(), [Slot::None; SLOTS]);
    body.push(Draft { flow: Flow::Leave, ..draft });
    Ok(())
}

/// `exit`.
pub(in crate::code) fn exit(body: &mut Body<'_, '_>, _: &mut Form<'_>, _: &Instruction) -> Lowered {
    let draft = body.draft(run::exit(), [Slot::None; SLOTS]);
    body.push(Draft { flow: Flow::Leave, ..draft });
    Ok(())
}

/// `trap`, `brkpt`.
pub(in crate::code) fn trap(body: &mut Body<'_, '_>, _: &mut Form<'_>, _: &Instruction) -> Lowered {
    let draft = body.draft(run::trap(), [Slot::None; SLOTS]);
    body.push(draft);
    Ok(())
}

/// `nanosleep`.
pub(in crate::code) fn pause(body: &mut Body<'_, '_>, _: &mut Form<'_>, i: &Instruction) -> Lowered {
    let time = i.operands.first().map_or(Ok(Slot::None), |time| body.read(time, Scalar::U32))?;
    let draft = body.draft(run::pause(), slots([time]));
    body.push(draft);
    Ok(())
}

/// The parts of a call.
struct Call<'i> {
    returns: &'i [Operand],
    target: &'i str,
    arguments: &'i [Operand],
}

fn parts(i: &Instruction) -> Result<Call<'_>, String> {
    let mut rest = i.operands.as_slice();
    let returns: &[Operand] = match rest.first() {
        Some(Operand::List(list)) => {
            rest = &rest[1..];
            list
        }
        _ => &[],
    };
    let Some(Operand::Name(target)) = rest.first() else { return Err("the function is missing".to_owned()) };
    let arguments: &[Operand] = match rest.get(1) {
        Some(Operand::List(list)) => list,
        _ => &[],
    };
    Ok(Call { returns, target, arguments })
}

/// `call`.
pub(in crate::code) fn call(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    form.take("uni");
    let call = parts(i)?;
    let returns = places(body, call.returns)?;
    let arguments = places(body, call.arguments)?;
    if let Some(Name::Register(pointer)) = body.name(call.target).cloned() {
        body.unit.indirect = true;
        let site = site(body, &arguments, &returns);
        let draft = body.draft(run::call_indirect(), slots([Slot::Use(pointer)]));
        body.push(Draft { immediate: site, ..draft });
        return Ok(());
    }
    if let Some(definition) = body.unit.linked.function(body.module, call.target) {
        let function = body.unit.function(definition);
        let site = site(body, &arguments, &returns);
        let draft = body.draft(run::call(), [Slot::None; SLOTS]);
        body.push(Draft { immediate: site, aux: function, ..draft });
        return Ok(());
    }
    let Some((handler, takes, gives)) = builtin::find(call.target) else {
        return Err(format!("no module defines {}, and the simulator has no such function", call.target));
    };
    if arguments.len() != takes || returns.len() > gives {
        return Err(format!("{} takes {takes} arguments, {} are given", call.target, arguments.len()));
    }
    // Lines come in the order of blocks, and the heap hands out its places in that order, in every run.
    body.unit.ordered |= matches!(call.target, "vprintf" | "malloc");
    let mut all = [Slot::None; SLOTS];
    for (slot, place) in all.iter_mut().zip(&arguments) {
        *slot = Slot::Fixed(place.offset);
    }
    if let Some(place) = returns.first() {
        all[builtin::RESULT] = Slot::Fixed(place.offset);
    }
    let draft = body.draft(handler, all);
    body.push(draft);
    Ok(())
}

/// An argument's or a result's place in the caller's frame.
struct Place {
    offset: u32,
    bytes: u32,
    align: u32,
}

fn places(body: &mut Body<'_, '_>, list: &[Operand]) -> Result<Vec<Place>, String> {
    list.iter()
        .map(|operand| match operand {
            Operand::Name(name) => match body.frame_place(name) {
                Some((offset, bytes, align)) => Ok(Place { offset, bytes, align }),
                None => Err(format!("{name} is not a .param of the call")),
            },
            other => Err(format!("{other:?} can't be passed to a function")),
        })
        .collect()
}

/// Writes down what a call copies.
fn site(body: &mut Body<'_, '_>, arguments: &[Place], returns: &[Place]) -> i64 {
    let all = || arguments.iter().chain(returns);
    let sizes: Vec<(u32, u32)> = all().map(|place| (place.bytes, place.align)).collect();
    let (offsets, _) = convention(&sizes);
    let rows = |place: &Place| place.bytes.div_ceil(4);
    let (to, from) = offsets.split_at(arguments.len());
    let site = CallSite {
        arguments: arguments.iter().zip(to).map(|(a, to)| (a.offset / 4, to / 4, rows(a))).collect(),
        returns: returns.iter().zip(from).map(|(r, from)| (from / 4, r.offset / 4, rows(r))).collect(),
    };
    body.unit.calls.push(site);
    body.unit.calls.len() as i64 - 1
}
