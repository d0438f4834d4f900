//! `mma` and `wmma`.

use crate::code::build::{Body, Draft, Lowered, Slot};
use crate::code::form::Form;
use crate::code::lower::fragment::move_fragment;
use crate::code::op::SLOTS;
use crate::machine::matrix::fragment::{a_places, b_places, c_places, volta};
use crate::machine::matrix::{Element, Logic, MATRIX, Matrix, Number, multiply};
use crate::math::tensor::{Order, Sum};
use crate::ptx::ast::{Instruction, Operand, Scalar};

/// The element that a modifier names.
pub(super) fn element(word: &str) -> Option<Element> {
    Some(match word {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "tf32" => Element::Tf32,
        "e4m3" => Element::E4m3,
        "e5m2" => Element::E5m2,
        "f64" => Element::F64,
        "s8" => Element::S8,
        "u8" => Element::U8,
        "s4" => Element::S4,
        "u4" => Element::U4,
        "b1" => Element::B1,
        _ => return None,
    })
}

/// The accumulator that a modifier names.
pub(super) fn number(word: &str) -> Option<Number> {
    Some(match word {
        "f16" => Number::F16,
        "f32" => Number::F32,
        "f64" => Number::F64,
        "s32" => Number::S32,
        _ => return None,
    })
}

/// The type of the registers that hold an accumulator.
pub(super) fn register_of(number: Number) -> Scalar {
    match number {
        Number::F64 => Scalar::F64,
        Number::F32 => Scalar::F32,
        _ => Scalar::B32,
    }
}

pub(super) fn register_of_element(element: Element) -> Scalar {
    if element == Element::F64 { Scalar::F64 } else { Scalar::B32 }
}

/// Registers that `count` elements of a number take a lane.
pub(super) fn registers_of(number: Number, count: usize) -> usize {
    if number == Number::F16 { count / 2 } else { count }
}

/// Takes the types of an instruction, in order.
pub(super) fn types<'i>(form: &mut Form<'_>, i: &'i Instruction) -> Vec<&'i str> {
    let is_type = |word: &&str| element(word).is_some() || number(word).is_some();
    let found: Vec<&str> = i.modifiers.iter().map(String::as_str).filter(is_type).collect();
    for word in &found {
        form.take(word);
    }
    found
}

/// Takes a shape, `m16n8k16`.
pub(super) fn shape(form: &mut Form<'_>) -> Result<[usize; 3], String> {
    let parse = |word: &str| {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
    };
    let found = form.rest().iter().find_map(|word| Some(((*word).to_owned(), parse(word)?)));
    let (word, shape) = found.ok_or("the shape is missing")?;
    form.take(&word);
    Ok(shape)
}

/// `.sync.aligned`: what all forms have.
pub(super) fn aligned(form: &mut Form<'_>) -> Lowered {
    let both = form.take("sync") & form.take("aligned");
    both.then_some(()).ok_or_else(|| "only the .sync.aligned form runs on sm_70 and later".to_owned())
}

/// The registers of a fragment.
pub(super) fn registers(operand: &Operand) -> Vec<Operand> {
    match operand {
        Operand::Vector(elements) => elements.clone(),
        one => vec![one.clone()],
    }
}

/// How many registers an operand has, which must be as many as its fragment takes.
pub(super) fn expect(operand: &Operand, count: usize, name: &str) -> Result<Vec<Operand>, String> {
    let found = registers(operand);
    if found.len() == count {
        Ok(found)
    } else {
        Err(format!("{} registers for {name}, which takes {count}", found.len()))
    }
}

/// Shapes of `mma` by type of the factors. Source: PTX ISA, "Matrix Shape".
fn has_shape(shape: [usize; 3], a: Element) -> bool {
    let k = shape[2];
    match (shape[0], shape[1]) {
        (16, 8) => match a {
            Element::F16 | Element::Bf16 => matches!(k, 8 | 16),
            Element::Tf32 => matches!(k, 4 | 8),
            Element::E4m3 | Element::E5m2 => matches!(k, 16 | 32),
            Element::F64 => matches!(k, 4 | 8 | 16),
            Element::S8 | Element::U8 => matches!(k, 16 | 32),
            Element::S4 | Element::U4 => matches!(k, 32 | 64),
            Element::B1 => matches!(k, 128 | 256),
        },
        (8, 8) => match a {
            Element::F16 | Element::F64 => k == 4,
            Element::S8 | Element::U8 => k == 16,
            Element::S4 | Element::U4 => k == 32,
            Element::B1 => k == 128,
            _ => false,
        },
        _ => false,
    }
}

/// How products of a type are summed by `mma`; `share` columns of a sparse `a` hold one product.
fn sum_of(a: Element, k: usize, share: usize) -> Sum {
    match a {
        // No instruction of the machine has these: they are widened to f16, half of them at once.
        Element::E4m3 | Element::E5m2 => Sum { block: k / 2, order: Order::After, ..Sum::HALF },
        Element::Tf32 => Sum { block: share * Sum::TF32.block, ..Sum::TF32 },
        _ => Sum { block: share * Sum::HALF.block, ..Sum::HALF },
    }
}

/// Where a column goes of numbers of 8 bits, which are widened to f16 and multiplied in two halves: the first half has of each
/// four elements (of a register) the first two; of a sparse `a`, whose registers hold half of the columns, of each eight the first four.
fn halved(column: usize, k: usize, share: usize) -> usize {
    let (together, pair) = (2 * share, 4 * share);
    column % pair / together * (k / 2) + column / pair * together + column % together
}

/// Sorts the columns of numbers of 8 bits by the half that they are multiplied in.
fn halve(matrix: &mut Matrix) {
    let [_, n, k] = matrix.shape;
    let share = if matrix.sparse.is_some() { 2 } else { 1 };
    let columns: Vec<u32> = (0..k).map(|column| halved(column, k, share) as u32).collect();
    for place in &mut matrix.b_places {
        *place = columns[*place as usize / n] * n as u32 + *place % n as u32;
    }
    if matrix.sparse.is_some() {
        matrix.columns = columns;
    } else {
        matrix.a_places.iter_mut().for_each(|at| *at = *at / k as u32 * k as u32 + columns[*at as usize % k]);
    }
}

/// A multiplication before its fragments have places; `registers` are those of `a` and `b`.
pub(super) fn plain(
    shape: [usize; 3],
    (a, b): (Element, Element),
    (c, d): (Number, Number),
    sum: Sum,
    registers: [usize; 2],
) -> Matrix {
    let [m, n, _] = shape;
    let held = |number| registers_of(number, m * n / 32);
    Matrix {
        shape,
        a,
        b,
        c,
        d,
        sum,
        saturate: false,
        logic: Logic::Xor,
        padded: false,
        sparse: None,
        columns: Vec::new(),
        a_places: Vec::new(),
        b_places: Vec::new(),
        c_places: Vec::new(),
        d_places: Vec::new(),
        registers: [held(d), registers[0], registers[1], held(c)],
    }
}

/// `mma.sync.aligned.shape.row.col.d.a.b.c d, a, b, c`.
pub(in crate::code) fn mma(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    let sparse = form.take("sp") | form.take("sp::ordered_metadata");
    aligned(form)?;
    let shape = shape(form)?;
    let types = types(form, i);
    let [d, a, b, c] = types[..] else { return Err("four types are needed".to_owned()) };
    let (Some(d), Some(a), Some(b), Some(c)) = (number(d), element(a), element(b), number(c)) else {
        return Err("no such types".to_owned());
    };
    let layouts: Vec<&str> =
        i.modifiers.iter().map(String::as_str).filter(|w| matches!(*w, "row" | "col")).collect();
    let [layout_a, layout_b] = layouts[..] else { return Err("two layouts are needed".to_owned()) };
    form.take(layout_a);
    form.take(layout_b);
    // Half of the columns of a sparse `a` are there.
    let [m, n, k] = shape;
    let packed = if sparse { k / 2 } else { k };
    if !has_shape([m, n, packed], a) || sparse && !is_sparse(a, k) {
        return Err("no such shape for these types".to_owned());
    }
    let is_volta = a == Element::F16 && shape == [8, 8, 4];
    if !is_volta && (layout_a, layout_b) != ("row", "col") {
        return Err("the layouts must be .row.col".to_owned());
    }
    let rounded = form.take("rn");
    if rounded && a != Element::F64 {
        return Err(".rn is of .f64".to_owned());
    }
    let count = a.per_register();
    let registers = [m * packed / 32 / count, k * n / 32 / count];
    let mut matrix = plain(shape, (a, b), (c, d), sum_of(a, k, k / packed), registers);
    (matrix.saturate, matrix.logic) = (form.take("satfinite"), logic(form, a)?);
    if is_volta {
        volta::fill(&mut matrix, layout_a == "row", layout_b == "row");
    } else {
        fill(&mut matrix);
    }
    if sparse {
        let Operand::Int(selector @ 0..=3) = Body::operand(i, 5)? else {
            return Err("the selector must be a literal from 0 to 3".to_owned());
        };
        matrix.sparse = Some(*selector as u32);
        matrix.padded = true;
        matrix.a_places = a_places(m, packed, matrix.registers[1], count);
    }
    if matches!(a, Element::E4m3 | Element::E5m2) {
        halve(&mut matrix);
    }
    push(body, i, matrix)
}

/// Whether sparse factors of a type have this `k`.
fn is_sparse(a: Element, k: usize) -> bool {
    match a {
        Element::F16 | Element::Bf16 => matches!(k, 16 | 32),
        Element::Tf32 => matches!(k, 8 | 16),
        Element::S8 | Element::U8 => matches!(k, 32 | 64),
        Element::S4 | Element::U4 => matches!(k, 64 | 128),
        Element::E4m3 | Element::E5m2 => k == 64,
        Element::F64 | Element::B1 => false,
    }
}

/// Places of the elements of a matrix's fragments.
fn fill(matrix: &mut Matrix) {
    let [m, n, k] = matrix.shape;
    let [d, a, b, c] = matrix.registers;
    let per = |number| if number == Number::F16 { 2 } else { 1 };
    matrix.a_places = a_places(m, k, a, matrix.a.per_register());
    matrix.b_places = b_places(n, k, b, matrix.b.per_register());
    matrix.c_places = c_places(m, n, c, per(matrix.c));
    matrix.d_places = c_places(m, n, d, per(matrix.d));
}

/// What is done with bits.
fn logic(form: &mut Form<'_>, a: Element) -> Result<Logic, String> {
    if a != Element::B1 {
        return Ok(Logic::Xor);
    }
    let logic = if form.take("xor") {
        Logic::Xor
    } else if form.take("and") {
        Logic::And
    } else {
        return Err("the operation is missing".to_owned());
    };
    form.take("popc").then_some(logic).ok_or_else(|| "the operation is missing".to_owned())
}

/// Puts a multiplication together.
fn push(body: &mut Body<'_, '_>, i: &Instruction, matrix: Matrix) -> Lowered {
    let [d, a, b, c] = matrix.registers;
    let (of_d, of_a) = (expect(Body::operand(i, 0)?, d, "d")?, expect(Body::operand(i, 1)?, a, "a")?);
    let (of_b, of_c) = (expect(Body::operand(i, 2)?, b, "b")?, expect(Body::operand(i, 3)?, c, "c")?);
    let read = |body: &mut Body<'_, '_>, list: &[Operand], ty| -> Result<Vec<Slot>, String> {
        list.iter().map(|operand| body.read(operand, ty)).collect()
    };
    let read_a = read(body, &of_a, register_of_element(matrix.a))?;
    let read_b = read(body, &of_b, register_of_element(matrix.b))?;
    let read_c = read(body, &of_c, register_of(matrix.c))?;
    let ty = register_of(matrix.d);
    let mut more: Vec<Slot> = of_d.iter().map(|operand| body.write(operand, ty)).collect::<Result<_, _>>()?;
    more.extend(read_a);
    more.extend(read_b);
    more.extend(read_c);
    let mut all = [Slot::None; SLOTS];
    if matrix.sparse.is_some() {
        all[0] = body.read(Body::operand(i, 4)?, Scalar::B32)?;
    }
    let number = body.unit.matrices.len() as u32;
    body.unit.matrices.push(matrix);
    all[MATRIX] = Slot::Fixed(number);
    let draft = body.draft(multiply::multiply(), all);
    body.push(Draft { more, ..draft });
    Ok(())
}

/// Registers of a fragment of `wmma`. Source: PTX ISA, "Matrix Fragments for WMMA": those of f16 are 8 whatever the shape.
pub(super) fn wmma_registers(of: &str, element: Element, [m, n, k]: [usize; 3]) -> usize {
    let size = if of == "a" { m * k } else { k * n };
    if element == Element::F16 { 8 } else { size / 32 / element.per_register() }
}

/// Shapes of `wmma` by type of the factors.
pub(super) fn has_wide_shape(shape: [usize; 3], a: Element) -> bool {
    match a {
        Element::F16 | Element::Bf16 | Element::S8 | Element::U8 => {
            matches!(shape, [16, 16, 16] | [32, 8, 16] | [8, 32, 16])
        }
        Element::Tf32 => shape == [16, 16, 8],
        Element::F64 => shape == [8, 8, 4],
        Element::S4 | Element::U4 => shape == [8, 8, 32],
        Element::B1 => shape == [8, 8, 128],
        _ => false,
    }
}

/// `wmma.load`, `wmma.store`, `wmma.mma`.
pub(in crate::code) fn wmma(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    match form.take_any(&["load", "store", "mma"]) {
        Some("mma") => wmma_multiply(body, form, i),
        Some(way) => move_fragment(body, form, i, way == "load"),
        None => Err("the operation is missing".to_owned()),
    }
}

fn wmma_multiply(body: &mut Body<'_, '_>, form: &mut Form<'_>, i: &Instruction) -> Lowered {
    aligned(form)?;
    let shape = shape(form)?;
    let found = types(form, i);
    let (d, a, b, c) = match found[..] {
        [d, a, b, c] => (d, a, b, c),
        [d, c] => (d, "f16", "f16", c),
        _ => return Err("two or four types are needed".to_owned()),
    };
    let (Some(d), Some(a), Some(b), Some(c)) = (number(d), element(a), element(b), number(c)) else {
        return Err("no such types".to_owned());
    };
    // Fragments hold the same elements whatever their layout in memory.
    while form.take_any(&["row", "col"]).is_some() {}
    if !has_wide_shape(shape, a) {
        return Err("no such shape for these types".to_owned());
    }
    form.take("rn");
    let registers = [wmma_registers("a", a, shape), wmma_registers("b", b, shape)];
    // The machine's instructions for tf32 that `wmma` becomes have four columns.
    let sum = if a == Element::Tf32 { Sum { block: 4, ..Sum::TF32 } } else { sum_of(a, shape[2], 1) };
    let mut matrix = plain(shape, (a, b), (c, d), sum, registers);
    (matrix.saturate, matrix.logic) = (form.take("satfinite"), logic(form, a)?);
    fill(&mut matrix);
    push(body, i, matrix)
}
