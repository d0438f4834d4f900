//! What arithmetic, logic and conversions mean, a lane at a time.
//!
//! Each entry is `op!(|a: u32, b: u32| -> u32 { … })`: the types say how registers are read and written, the closure is
//! applied to the lanes. Which entry an instruction takes is a `match` over its types.

pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod video;
pub(crate) mod wide;

/// What an entry takes from its instruction besides operands, packed into [`Op::aux`](crate::code::Op::aux).
pub(crate) trait Aux: Copy {
    fn pack(self) -> u32;
    fn unpack(aux: u32) -> Self;
}

/// An entry: a handler with the classes of its destination and sources. `with mode: Mode = value;` before the closure hands it
/// what the modifiers said.
macro_rules! op {
    ($(with $p:ident: $P:ty = $v:expr;)? |$a:ident: $A:ty| -> $R:ty $f:block) => {
        $crate::machine::alu::op!(@ map1, [$($p: $P = $v)?], [$a: $A], $R, $f)
    };
    ($(with $p:ident: $P:ty = $v:expr;)? |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $f:block) => {
        $crate::machine::alu::op!(@ map2, [$($p: $P = $v)?], [$a: $A, $b: $B], $R, $f)
    };
    ($(with $p:ident: $P:ty = $v:expr;)? |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $f:block) => {
        $crate::machine::alu::op!(@ map3, [$($p: $P = $v)?], [$a: $A, $b: $B, $c: $C], $R, $f)
    };
    (@ $map:ident, [$($p:ident: $P:ty = $v:expr)?], [$($a:ident: $A:ty),*], $R:ty, $f:block) => {{
        #[inline(always)]
        unsafe fn run(x: &mut $crate::machine::Exec<'_>, op: &$crate::code::Op, mask: u32) -> $crate::machine::Next {
            $(let $p = <$P as $crate::machine::alu::Aux>::unpack(op.aux);)?
            // SAFETY: the caller's promise.
            unsafe { $crate::machine::lanes::$map::<$($A,)* $R>(x, op, mask, |$($a),*| $f) };
            $crate::machine::Next::Advance
        }
        #[allow(unused_mut, unused_assignments)]
        let mut aux = 0;
        $(aux = <$P as $crate::machine::alu::Aux>::pack($v);)?
        Some($crate::code::Lanes {
            run: $crate::code::handler!(run),
            classes: vec![
                <$R as $crate::machine::lanes::Lane>::CLASS,
                $(<$A as $crate::machine::lanes::Lane>::CLASS),*
            ],
            aux,
        })
    }};
}
pub(crate) use op;

/// One entry for several types: `by_type!(ty, T, [U32: u32, S32: i32], op!(|a: T| -> T { … }))`.
macro_rules! by_type {
    ($ty:expr, $T:ident, [$($($scalar:ident)|+: $rust:ty),* $(,)?], $entry:expr) => {
        match $ty {
            $($($crate::ptx::ast::Scalar::$scalar)|+ => {
                type $T = $rust;
                $entry
            })*
            _ => None,
        }
    };
}
pub(crate) use by_type;

use crate::code::{Form, Lanes};

/// The entry of an instruction, if arithmetic has one.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    if form.opcode == "cvt" {
        return convert::select(form);
    }
    integer::select(form)
        .or_else(|| wide::select(form))
        .or_else(|| bits::select(form))
        .or_else(|| float::select(form))
        .or_else(|| half::select(form))
}
