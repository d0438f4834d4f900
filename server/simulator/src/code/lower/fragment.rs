//! Fragments and rows of matrices from and to memory: `wmma.load`, `wmma.store`, `ldmatrix`, `stmatrix`, `movmatrix`.

use crate::code::build::{Body, Draft, Lowered, Slot, slots};
use crate::code::form::Form;
use crate::code::lower::matrix::{
    aligned, element, expect, has_wide_shape, number, register_of, register_of_element, shape, types,
    wmma_registers,
};
use crate::code::lower::memory::space;
use crate::code::op::{Handler, SLOTS};
use crate::machine::access::{ADDRESS, Generic, Global, SharedSpace};
use crate::machine::matrix::fragment::{a_places, b_places, c_places};
use crate::machine::matrix::wide::{self, Fragment};
use crate::machine::matrix::{MATRIX, Number, rows};
use crate::ptx::ast::{Instruction, Scalar};

/// `wmma.load.of.sync.aligned.layout.shape{.space}.type r, [a]{, stride}`, and `wmma.store.d`.
pub(super) fn move_fragment(
    body: &mut Body<'_, '_>,
    form: &mut Form<'_>,
    i: &Instruction,
    loads: bool,
) -> Lowered {
    aligned(form)?;
    let shape = shape(form)?;
    let of = form.take_any(&["a", "b", "c", "d"]).ok_or("the matrix is missing")?;
    let layout = form.take_any(&["row", "col"]).ok_or("the layout is missing")?;
    let space = space(form);
    let found = types(form, i);
    // `.s32` and `.f32` are only types of accumulators, which have no element of that name.
    let word =
        found.first().copied().or_else(|| form.take_any(&["s32", "f32"])).ok_or("the type is missing")?;
    let (fragment, ty) = fragment(of, layout, shape, word)?;
    let (at_list, at_address) = if loads { (0, 1) } else { (1, 0) };
    let list = expect(Body::operand(i, at_list)?, fragment.registers, of)?;
    let address = body.address(Body::operand(i, at_address)?)?;
    let stride = i.operands.get(2).map_or(Ok(Slot::None), |stride| body.read(stride, Scalar::U32))?;
    let more: Result<Vec<Slot>, String> =
        list.iter().map(|one| if loads { body.write(one, ty) } else { body.read(one, ty) }).collect();
    let run = match (space, loads) {
        (None, true) => wide::load::<Generic>(),
        (None, false) => wide::store::<Generic>(),
        (Some("global"), true) => wide::load::<Global>(),
        (Some("global"), false) => wide::store::<Global>(),
        (Some("shared" | "shared::cta"), true) => wide::load::<SharedSpace>(),
        (Some("shared" | "shared::cta"), false) => wide::store::<SharedSpace>(),
        (Some(other), _) => return Err(format!(".{other} can't hold a matrix")),
    };
    let number = body.unit.fragments.len() as u32;
    body.unit.fragments.push(fragment);
    let mut all = [Slot::None; SLOTS];
    (all[ADDRESS], all[5], all[MATRIX]) = (address.slot, stride, Slot::Fixed(number));
    let draft = body.draft(run, all);
    body.push(Draft { more: more?, aux: address.aux, immediate: address.immediate, ..draft });
    Ok(())
}

/// A fragment of `wmma` in memory, and the type of its registers.
fn fragment(of: &str, layout: &str, [m, n, k]: [usize; 3], word: &str) -> Result<(Fragment, Scalar), String> {
    let unknown = || format!("no matrix .{of} of .{word}");
    let by_columns = layout == "col";
    let (places, columns, registers, count, bits, size, ty) = if matches!(of, "a" | "b") {
        let element = element(word).ok_or_else(unknown)?;
        if !has_wide_shape([m, n, k], element) {
            return Err("no such shape for this type".to_owned());
        }
        let (registers, count) = (wmma_registers(of, element, [m, n, k]), element.per_register());
        let places =
            if of == "a" { a_places(m, k, registers, count) } else { b_places(n, k, registers, count) };
        let (columns, size) = if of == "a" { (k, m * k) } else { (n, k * n) };
        (places, columns, registers, count, element.bits(), size, register_of_element(element))
    } else {
        let number = number(word).ok_or_else(unknown)?;
        let (registers, bits) = match number {
            Number::F16 => (m * n / 64, 16),
            Number::F64 => (m * n / 32, 64),
            _ => (m * n / 32, 32),
        };
        let count = if number == Number::F16 { 2 } else { 1 };
        (c_places(m, n, registers, count), n, registers, count, bits, m * n, register_of(number))
    };
    let rows = size / columns;
    let split = |at: &u32| ((*at as usize / columns) as u16, (*at as usize % columns) as u16);
    let fragment = Fragment {
        places: places.iter().map(split).collect(),
        distinct: (size / 32 / count).min(registers).max(1),
        registers,
        count,
        bits: bits as u64,
        by_columns,
        stride: if by_columns { rows } else { columns } as u64,
    };
    Ok((fragment, ty))
}

/// `ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16 {…}, [a]`, and `stmatrix`.
fn move_rows(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction, loads: bool) -> Lowered {
    aligned(form)?;
    if !form.take("m8n8") || form.ty() != Some(Scalar::B16) {
        return Err("only matrices of .m8n8.b16 are moved; others come with sm_100".to_owned());
    }
    let count = match form.take_any(&["x1", "x2", "x4"]) {
        Some("x1") => 1,
        Some("x2") => 2,
        Some(_) => 4,
        None => return Err("the number of matrices is missing".to_owned()),
    };
    let transposed = if form.take("trans") { rows::TRANSPOSED } else { 0 };
    let space = space(form);
    let run: Handler = match (space, loads) {
        (None, true) => rows::load::<Generic>(),
        (None, false) => rows::store::<Generic>(),
        (Some("shared" | "shared::cta"), true) => rows::load::<SharedSpace>(),
        (Some("shared" | "shared::cta"), false) => rows::store::<SharedSpace>(),
        (Some(other), _) => return Err(format!("rows can't lie in .{other}")),
    };
    let (at_list, at_address) = if loads { (0, 1) } else { (1, 0) };
    let address = body.address(Body::operand(i, at_address)?)?;
    let list = expect(Body::operand(i, at_list)?, count, "the matrices")?;
    let mut all = [Slot::None; SLOTS];
    for (at, register) in list.iter().enumerate() {
        all[at] = if loads { body.write(register, Scalar::B32)? } else { body.read(register, Scalar::B32)? };
    }
    (all[ADDRESS], all[5]) = (address.slot, Slot::Fixed(count as u32 | transposed));
    let draft = body.draft(run, all);
    body.push(Draft { aux: address.aux, immediate: address.immediate, ..draft });
    Ok(())
}

/// `ldmatrix`.
pub(in crate::code) fn load_rows(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    move_rows(body, form, i, true)
}

/// `stmatrix`.
pub(in crate::code) fn store_rows(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    move_rows(body, form, i, false)
}

/// `movmatrix.sync.aligned.m8n8.trans.b16 d, a`.
pub(in crate::code) fn transpose(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    aligned(form)?;
    if !(form.take("m8n8") & form.take("trans")) {
        return Err("no such form".to_owned());
    }
    let a = body.read(Body::operand(i, 1)?, Scalar::B32)?;
    let d = body.write(Body::operand(i, 0)?, Scalar::B32)?;
    let draft = body.draft(rows::transpose(), slots([d, a]));
    body.push(draft);
    Ok(())
}
