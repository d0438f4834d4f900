//! Loads, stores, addresses, fences.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::{Form, class, is_signed, size};
use crate::code::op::{Class, Handler, SLOTS};
use crate::code::operand::{Address, Base};
use crate::machine::access::{
    ADDRESS, AS_ATOMIC, AS_VOLATILE, Generic, Global, LocalSpace, POLLS, Parameters, SHARED_WINDOW,
    SharedSpace, Space, UNCHECKED,
};
use crate::machine::special;
use crate::machine::transfer;
use crate::machine::{builtin, moves};
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// What an instruction may name as its space.
const SPACES: &[&str] = &[
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "const",
    "param",
    "param::entry",
    "param::func",
];

/// Takes the space that the instruction names: its first word, or nothing for generic addresses.
pub(super) fn space<'i>(form: &mut Form<'i>) -> Option<&'i str> {
    form.take_any(SPACES)
}

/// Takes modifiers that say how an access is ordered and seen. True if other blocks could tell.
pub(super) fn ordering(form: &mut Form<'_>) -> bool {
    let scope = form.take_any(&["cta", "cluster", "gpu", "sys"]);
    let strong =
        form.take_any(&["volatile", "relaxed", "acquire", "release", "acq_rel", "seq_cst", "sc", "mmio"]);
    form.take("weak");
    strong.is_some() && scope != Some("cta")
}

/// How checks see an access of this order, in `Op::aux`.
fn strength(form: &Form<'_>) -> u32 {
    const ORDERS: [&str; 7] = ["relaxed", "acquire", "release", "acq_rel", "seq_cst", "sc", "mmio"];
    let has = |word: &&str| form.rest().contains(word);
    if has(&"volatile") {
        AS_VOLATILE
    } else if ORDERS.iter().any(has) {
        AS_ATOMIC
    } else {
        0
    }
}

/// Takes modifiers that hint at how caches should keep the data: they change nothing here.
pub(super) fn hints(form: &mut Form<'_>) {
    const CACHE: &[&str] = &["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"];
    while form.take_any(CACHE).is_some() {}
    while let Some(word) = form.rest().iter().find(|w| w.starts_with("L1::") || w.starts_with("L2::")) {
        let word = (*word).to_owned();
        form.take(&word);
    }
}

/// The handler for a space and a type.
fn choose(
    space: Option<&str>,
    base: Base,
    is_entry: bool,
    ty: Scalar,
    store: bool,
) -> Result<Handler, String> {
    let kernel_parameter = base == Base::Parameter || (base == Base::Register && is_entry);
    Ok(match space {
        None => by_type::<Generic>(ty, store)?,
        Some("global" | "const") => by_type::<Global>(ty, store)?,
        Some("shared" | "shared::cta" | "shared::cluster") => by_type::<SharedSpace>(ty, store)?,
        Some("param" | "param::entry") if kernel_parameter && !store => by_type::<Parameters>(ty, false)?,
        Some("param" | "param::func" | "local") => by_type::<LocalSpace>(ty, store)?,
        Some(other) => return Err(format!(".{other} can't be accessed so")),
    })
}

fn by_type<S: Space>(ty: Scalar, store: bool) -> Result<Handler, String> {
    Ok(match (size(ty), is_signed(ty), store) {
        (1, true, false) => transfer::load::<S, i8>(),
        (2, true, false) => transfer::load::<S, i16>(),
        (1, _, false) => transfer::load::<S, u8>(),
        (2, _, false) => transfer::load::<S, u16>(),
        (4, _, false) => transfer::load::<S, u32>(),
        (8, _, false) => transfer::load::<S, u64>(),
        (16, _, false) => transfer::load::<S, u128>(),
        (1, _, true) => transfer::store::<S, u8>(),
        (2, _, true) => transfer::store::<S, u16>(),
        (4, _, true) => transfer::store::<S, u32>(),
        (8, _, true) => transfer::store::<S, u64>(),
        (16, _, true) => transfer::store::<S, u128>(),
        _ => return Err(format!("a .{ty:?} can't be accessed")),
    })
}

/// The elements of a data operand, as many as the instruction's vector, and the type to transfer each by. Eight elements go by
/// pairs, since an op has room for four.
fn elements(form: &mut Form<'_>, operand: &Operand, ty: Scalar) -> Result<(Vec<Operand>, Scalar), String> {
    let count = match form.take_any(&["v2", "v4", "v8"]) {
        Some("v2") => 2,
        Some("v4") => 4,
        Some(_) => 8,
        None => 1,
    };
    let elements: Vec<Operand> = match operand {
        Operand::Vector(elements) => elements.clone(),
        one => vec![one.clone()],
    };
    if elements.len() != count {
        return Err(format!("{} registers for a vector of {count}", elements.len()));
    }
    match (count, size(ty)) {
        (8, 4) => {
            let pairs = elements.chunks(2).map(|pair| Operand::Vector(pair.to_vec())).collect();
            Ok((pairs, Scalar::B64))
        }
        (8, _) => Err("vectors of eight hold 32-bit elements".to_owned()),
        _ => Ok((elements, ty)),
    }
}

/// Puts an access together.
fn access(run: Handler, body: &Body<'_, '_>, data: &[Slot], address: &Address) -> Draft {
    let mut all = [Slot::None; SLOTS];
    all[..data.len()].copy_from_slice(data);
    all[ADDRESS] = address.slot;
    let draft = body.draft(run, all);
    Draft { aux: address.aux | data.len() as u32, immediate: address.immediate, ..draft }
}

/// `ld`, `ldu`.
pub(in crate::code) fn load(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let seen = strength(form);
    let strong = ordering(form);
    let space = space(form);
    // Padding of what is handed to a function is copied unseen.
    let seen = seen | if matches!(space, Some("param" | "param::func")) { UNCHECKED } else { 0 };
    hints(form);
    let address = body.address(Body::operand(i, 1)?)?;
    body.unit.ordered |= strong && matches!(space, None | Some("global"));
    let (data, ty) = elements(form, Body::operand(i, 0)?, ty)?;
    let run = choose(space, address.base, body.is_entry, ty, false)?;
    let data: Vec<Slot> = data.iter().map(|d| body.write(d, ty)).collect::<Result<_, _>>()?;
    let draft = access(run, body, &data, &address);
    body.push(Draft { aux: draft.aux | seen | if strong { POLLS } else { 0 }, ..draft });
    Ok(())
}

/// `st`.
pub(in crate::code) fn store(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let seen = strength(form);
    let strong = ordering(form);
    let space = space(form);
    let told = super::mbarrier::tells(form);
    hints(form);
    let (data, ty) = elements(form, Body::operand(i, 1)?, ty)?;
    let data: Vec<Slot> = data.iter().map(|d| body.read(d, ty)).collect::<Result<_, _>>()?;
    let address = body.address(Body::operand(i, 0)?)?;
    body.unit.ordered |= strong && matches!(space, None | Some("global"));
    let run = choose(space, address.base, body.is_entry, ty, true)?;
    let draft = access(run, body, &data, &address);
    body.push(Draft { aux: draft.aux | seen, ..draft });
    if told {
        super::mbarrier::tell(body, Body::operand(i, 2)?, size(ty) * data.len() as u32)
    } else {
        Ok(())
    }
}

/// `cvta{.to}.space.u64 d, a`.
pub(in crate::code) fn convert_address(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
) -> Lowered {
    let to = form.take("to");
    let space = space(form).ok_or("the space is missing")?;
    let window = special::window_of(space).ok_or("no such space")? as i64;
    if form.ty() != Some(Scalar::U64) {
        return Err("only 64-bit addresses are converted".to_owned());
    }
    let a = body.read(Body::operand(i, 1)?, Scalar::U64)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::U64)?;
    let run = if window == 0 { moves::copy(Class::Double) } else { special::shift_window() };
    let draft = body.draft(run, slots([d, a]));
    body.push(Draft { immediate: if to { -window } else { window }, ..draft });
    Ok(())
}

/// `isspacep.space p, a`.
pub(in crate::code) fn is_space(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let space = space(form).ok_or("the space is missing")?;
    let window = special::window_of(space).ok_or("no such space")?;
    let a = body.read(Body::operand(i, 1)?, Scalar::U64)?;
    let p = body.write_predicate(i.operands.first())?;
    let own = window == SHARED_WINDOW && space != "shared::cluster";
    let draft = body.draft(special::is_space(), slots([p, a]));
    body.push(Draft { immediate: window as i64, aux: u32::from(own), ..draft });
    Ok(())
}

/// `mapa{.shared::cluster}.ty d, a, rank`.
pub(in crate::code) fn map_address(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    let window = if space(form).is_some() { 0 } else { SHARED_WINDOW };
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let rank = body.read(Body::operand(i, 2)?, Scalar::U32)?;
    let d = body.write(Body::operand(i, 0)?, ty)?;
    let run = special::map_address(class(ty)).ok_or("no such form")?;
    let draft = body.draft(run, slots([d, a, rank]));
    body.push(Draft { immediate: window as i64, ..draft });
    Ok(())
}

/// `getctarank{.shared::cluster}.ty d, a`: which block of the cluster an address of shared memory lies in.
pub(in crate::code) fn block_rank(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let ty = form.ty().ok_or("the type is missing")?;
    space(form);
    let a = body.read(Body::operand(i, 1)?, ty)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::U32)?;
    let run = special::block_rank(class(ty)).ok_or("no such form")?;
    let draft = body.draft(run, slots([d, a]));
    body.push(draft);
    Ok(())
}

/// `membar`, `fence`: lanes see each other's writes at once here; what remains is that blocks may talk to each other.
pub(in crate::code) fn fence(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    // What stays within a cluster, blocks of other workers can't tell; proxies see the same memory here.
    let has = |word: &str| form.rest().iter().any(|own| own.starts_with(word));
    let narrow = has("mbarrier_init") || has("proxy") && !has("tensormap") || has("cluster");
    let block = form.take("cta") || narrow;
    while form.rest().first().is_some_and(|word| !word.is_empty()) {
        let word = form.rest()[0].to_owned();
        form.take(&word);
    }
    body.unit.ordered |= !block;
    ignore(body, form, i)
}

/// An instruction that changes nothing here, but is counted.
pub(in crate::code) fn ignore(body: &mut Body<'_, '_>, form: &mut Form<'_>, _: &Instruction) -> Lowered {
    while let Some(word) = form.rest().first() {
        let word = (*word).to_owned();
        form.take(&word);
    }
    let draft = body.draft(builtin::nothing(), [Slot::None; SLOTS]);
    body.push(draft);
    Ok(())
}

/// `createpolicy`: a value that only hints read.
pub(in crate::code) fn policy(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    while let Some(word) = form.rest().first() {
        let word = (*word).to_owned();
        form.take(&word);
    }
    let zero = body.read(&Operand::Int(0), Scalar::B64)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::B64)?;
    let draft = body.draft(moves::copy(Class::Double), slots([d, zero]));
    body.push(draft);
    Ok(())
}

/// `cp.async`: a load and a store at once, zeros where the source is shorter; groups have nothing to wait for.
pub(in crate::code) fn copy_async(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    if form.take("reduce") {
        return super::tensor::reduce(body, form, i);
    }
    if !form.take("async") {
        return Err("no such form".to_owned());
    }
    if form.take("bulk") {
        if form.take("tensor") {
            return super::tensor::copy(body, form, i);
        }
        return super::mbarrier::bulk(body, form, i);
    }
    if form.take("mbarrier") {
        return super::mbarrier::copied(body, form, i);
    }
    if form.take_any(&["commit_group", "wait_group", "wait_all"]).is_some() {
        return ignore(body, form, i);
    }
    hints(form);
    form.take_any(&["shared", "shared::cta"]).ok_or("the destination must be shared memory")?;
    if !form.take("global") {
        return Err("the source must be global memory".to_owned());
    }
    let Operand::Int(bytes) = Body::operand(i, 2)? else {
        return Err("the size must be a literal".to_owned());
    };
    let (ty, class) = match bytes {
        4 => (Scalar::B32, Class::Single),
        8 => (Scalar::B64, Class::Double),
        16 => (Scalar::B128, Class::Quad),
        _ => return Err(format!("{bytes} bytes can't be copied at once")),
    };
    let to = body.address(Body::operand(i, 0)?)?;
    let from = body.address(Body::operand(i, 1)?)?;
    let value = body.register(class);
    match i.operands.get(3) {
        Some(size) if matches!(size, Operand::Int(_) | Operand::Name(_)) && i.operands.len() == 4 => {
            // Fewer bytes are read than written: the rest is zeros.
            let size = body.read(size, Scalar::U32)?;
            let mut draft = access(transfer::load_short(), body, &[Slot::Def(value)], &from);
            draft.slots[1] = size;
            draft.aux |= (*bytes as u32) << transfer::BYTES_SHIFT;
            let wide = body.register(Class::Quad);
            draft.slots[0] = Slot::Def(wide);
            body.push(draft);
            let cut = moves::convert(Class::Quad, class, false).unwrap_or_else(|| moves::copy(Class::Quad));
            body.push_hidden(cut, slots([Slot::Def(value), Slot::Use(wide)]), 0);
        }
        None => {
            let draft = access(by_type::<Global>(ty, false)?, body, &[Slot::Def(value)], &from);
            body.push(draft);
        }
        Some(_) => return Err("no such form".to_owned()),
    }
    let draft = access(by_type::<SharedSpace>(ty, true)?, body, &[Slot::Use(value)], &to);
    body.push(draft);
    Ok(())
}
