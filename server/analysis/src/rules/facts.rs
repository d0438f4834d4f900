//! What the walk over a function notes down for the rules.

use std::collections::{HashMap, HashSet};

use tree_sitter::Node;

use super::index::Index;
use super::types::Type;
use super::value::Base;

/// Everything noted about one function.
#[derive(Debug, Default)]
pub struct Facts<'t> {
    /// Elements of arrays and pointers that are read or written.
    pub accesses: Vec<Access<'t>>,
    /// Calls of functions and macros.
    pub calls: Vec<Call<'t>>,
    /// Kernel launches.
    pub launches: Vec<LaunchSite<'t>>,
    /// Loops, outer ones before inner ones.
    pub loops: Vec<Loop<'t>>,
    /// Arithmetic that is done in double only because of a literal.
    pub doubles: Vec<DoubleUse<'t>>,
    /// Powers with a constant exponent.
    pub powers: Vec<Power<'t>>,
    /// Tests whether a thread's number is a multiple of something.
    pub multiples: Vec<MultipleTest<'t>>,
    /// Variables whose memory is also accessed through pointers to wider elements.
    pub recast: HashSet<u32>,
    /// The largest constant that each variable is compared with: `k < 4`.
    pub limits: HashMap<u32, i64>,
    /// Whether anything that differs between threads, or may, is compared, clamped or wrapped.
    pub is_guarded: bool,
}

/// One element of an array or behind a pointer, read or written.
#[derive(Clone, Copy, Debug)]
pub struct Access<'t> {
    /// The expression.
    pub node: Node<'t>,
    /// The memory.
    pub base: Base,
    /// Which element.
    pub index: Index,
    /// Its type.
    pub element: Type,
    /// Whether it is written.
    pub is_store: bool,
    /// Whether only a few threads of a warp get here (`threadIdx.x == 0`).
    pub by_few: bool,
    /// The most lanes of a warp that get here: 16 under `if (threadIdx.x % 32 < 16)`.
    pub lanes: u8,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'t> {
    /// The callee's name without scopes and template arguments.
    pub name: &'t str,
    /// All of it.
    pub node: Node<'t>,
    /// Whether it is a statement of its own, so that its result is dropped.
    pub is_statement: bool,
    /// The innermost loop around it.
    pub within: Option<u32>,
}

/// A kernel launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSite<'t> {
    /// The kernel's name without scopes and template arguments.
    pub kernel: &'t str,
    /// All of it.
    pub node: Node<'t>,
    /// The grid, as written.
    pub grid: Option<Node<'t>>,
    /// The block, as written.
    pub block: Option<Node<'t>>,
    /// The stream, as written.
    pub stream: Option<Node<'t>>,
    /// Whether it is a statement of its own: not handed to a macro that may check it.
    pub is_statement: bool,
}

/// A loop.
#[derive(Clone, Copy, Debug)]
pub struct Loop<'t> {
    /// All of it.
    pub node: Node<'t>,
    /// The outermost loop around it, which may be itself.
    pub outermost: u32,
}

/// Arithmetic of a float with a double literal.
#[derive(Clone, Copy, Debug)]
pub struct DoubleUse<'t> {
    /// The operation.
    pub node: Node<'t>,
    /// The literal or the constant's name.
    pub literal: Node<'t>,
    /// Whether the compiler does it in float after all: the literal is exact in float, and nothing but this one operation
    /// lies between floats (measured with nvcc 13.5: no `f64` instruction is left).
    pub is_foldable: bool,
    /// Whether the result is wanted as a double.
    pub is_wanted: bool,
    /// Another use whose result goes the same way.
    pub joined: Option<u32>,
}

/// `pow(base, exponent)` with a constant exponent.
#[derive(Clone, Copy, Debug)]
pub struct Power<'t> {
    /// The call.
    pub node: Node<'t>,
    /// The function's name.
    pub name: &'t str,
    /// The base.
    pub base: Node<'t>,
    /// The base's type.
    pub base_type: Type,
    /// The exponent's type.
    pub exponent_type: Type,
    /// The exponent.
    pub exponent: f64,
}

/// `thread % divisor == 0`, or the same in other words, in the condition of an `if`.
#[derive(Clone, Copy, Debug)]
pub struct MultipleTest<'t> {
    /// The comparison.
    pub node: Node<'t>,
    /// What divides: `2 * s` in `thread % (2 * s)` and in `thread & (2 * s - 1)`.
    pub divisor: Node<'t>,
    /// The `if` that it decides.
    pub branch: Node<'t>,
    /// The innermost loop around it.
    pub within: Option<u32>,
    /// Whether the branch is for the other threads: `thread % divisor != 0`.
    pub is_for_others: bool,
}
