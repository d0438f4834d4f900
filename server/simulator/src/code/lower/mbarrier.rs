//! `mbarrier`, and copies that report to one.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::Form;
use crate::code::lower::memory::{hints, ignore, ordering, space};
use crate::code::op::HIDDEN;
use crate::machine::mbarrier::{self as run, Action};
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// `mbarrier.….shared.b64`.
pub(in crate::code) fn mbarrier(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let name = form
        .take_any(&[
            "init",
            "inval",
            "arrive",
            "arrive_drop",
            "expect_tx",
            "complete_tx",
            "test_wait",
            "try_wait",
            "pending_count",
        ])
        .ok_or("the operation is missing")?;
    ordering(form);
    space(form);
    let expects = matches!(name, "arrive" | "arrive_drop") && form.take("expect_tx");
    let action = match (name, expects) {
        ("test_wait" | "try_wait", _) => return test(body, form, i),
        ("pending_count", _) => return pending(body, i),
        ("init", _) => Action::Init,
        ("inval", _) => Action::Invalidate,
        ("arrive", false) => Action::Arrive,
        ("arrive", true) => Action::ArriveExpect,
        ("arrive_drop", false) => Action::Drop,
        ("arrive_drop", true) => Action::DropExpect,
        ("expect_tx", _) => Action::Expect,
        _ => Action::Complete,
    };
    form.take("noComplete");
    // `arrive` returns a state, unless the barrier is another block's.
    let has_state =
        name.starts_with("arrive") && !matches!(i.operands.first(), Some(Operand::Address { .. }));
    let first = usize::from(has_state);
    let address = body.address_value(Body::operand(i, first)?)?;
    let number = i.operands.get(first + 1).map_or(Ok(Slot::None), |n| body.read(n, Scalar::U32))?;
    let state = match i.operands.first() {
        Some(d) if has_state && *d != Operand::Sink => body.write(d, Scalar::B64)?,
        _ => Slot::None,
    };
    let draft = body.draft(run::update(), slots([state, address, number]));
    body.push(Draft { aux: action as u32, ..draft });
    Ok(())
}

/// `test_wait` and `try_wait p, [a], state`, or `.parity p, [a], parity`; a time limit may follow.
fn test(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let parity = form.take("parity");
    let address = body.address_value(Body::operand(i, 1)?)?;
    let asked = body.read(Body::operand(i, 2)?, if parity { Scalar::U32 } else { Scalar::B64 })?;
    let p = body.write_predicate(i.operands.first())?;
    let draft = body.draft(run::test(), slots([p, address, asked]));
    body.push(Draft { aux: if parity { run::PARITY } else { 0 }, ..draft });
    Ok(())
}

fn pending(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let state = body.read(Body::operand(i, 1)?, Scalar::B64)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::U32)?;
    let draft = body.draft(run::pending(), slots([d, state]));
    body.push(draft);
    Ok(())
}

/// `cp.async.mbarrier.arrive{.noinc}.b64 [a]`.
pub(super) fn copied(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    form.take("arrive").then_some(()).ok_or("the operation is missing")?;
    space(form);
    // Without `.noinc` the arrival is one more than the barrier expects, so that nothing changes.
    let action = if form.take("noinc") { Action::Arrive } else { Action::Copied };
    let address = body.address_value(Body::operand(i, 0)?)?;
    let draft = body.draft(run::update(), slots([Slot::None, address]));
    body.push(Draft { aux: action as u32, ..draft });
    Ok(())
}

/// `cp.async.bulk.to.from…`: copied at once; groups have nothing to wait for.
pub(super) fn bulk(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.take_any(&["commit_group", "wait_group", "prefetch"]).is_some() {
        return ignore(body, form, i);
    }
    let (to, from) = (space(form), space(form));
    let barrier = form.take("mbarrier::complete_tx::bytes");
    form.take("bulk_group");
    let multicast = form.take("multicast::cluster");
    hints(form);
    let run = run::bulk_between(from.unwrap_or(""), to.unwrap_or("")).ok_or("no such form")?;
    let target = body.address_value(Body::operand(i, 0)?)?;
    let source = body.address_value(Body::operand(i, 1)?)?;
    let size = body.read(Body::operand(i, 2)?, Scalar::U32)?;
    let told = if barrier { body.address_value(Body::operand(i, 3)?)? } else { Slot::None };
    let mask = if multicast { body.read(Body::operand(i, 4)?, Scalar::U32)? } else { Slot::None };
    let draft = body.draft(run, slots([Slot::None, target, source, size, told, mask]));
    body.push(draft);
    Ok(())
}

/// Takes what makes `st` and `red` report to a barrier: `.async` with `.mbarrier::complete_tx::bytes`.
pub(super) fn tells(form: &mut Form<'_>) -> bool {
    form.take("async") && form.take("mbarrier::complete_tx::bytes")
}

/// Tells a barrier that bytes are there: they are, since the access was done at once.
pub(super) fn tell(body: &mut Body<'_, '_>, barrier: &Operand, bytes: u32) -> Lowered {
    let address = body.address_value(barrier)?;
    let bytes = body.read(&Operand::Int(u64::from(bytes)), Scalar::U32)?;
    let draft = body.draft(run::update(), slots([Slot::None, address, bytes]));
    body.push(Draft { aux: Action::Complete as u32, flags: HIDDEN, ..draft });
    Ok(())
}
