//! The syntax tree of a PTX module.

use std::collections::HashMap;

/// A translation unit of PTX: what one `.ptx` file, or one PTX entry of a fat binary, holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// `.target`, the architecture alone: `sm_90`.
    pub target: String,
    /// `.address_size`, 32 or 64; 32 where the text does not say.
    pub address_size: u32,
    /// `.file index "path"`: source files that [`Location::file`] points at.
    pub files: HashMap<u32, String>,
    /// Module-scope variables: `.global`, `.const`, `.shared`.
    pub variables: Vec<Variable>,
    /// Kernels and device functions, declarations too.
    pub functions: Vec<Function>,
    /// Strings of `.debug_str` by their label: the names that `.loc … function_name` refers to.
    pub strings: HashMap<String, String>,
    /// `.alias name, aliasee`.
    pub aliases: Vec<(String, String)>,
}

/// Who sees a symbol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Linkage {
    /// No directive: this module alone.
    #[default]
    Internal,
    /// `.extern`: defined elsewhere.
    Extern,
    /// `.visible`.
    Visible,
    /// `.weak`: the first definition wins.
    Weak,
    /// `.common`.
    Common,
}

/// A state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Registers.
    Reg,
    /// Kernel and function parameters.
    Param,
    /// Per-thread memory.
    Local,
    /// Per-block memory.
    Shared,
    /// Device memory.
    Global,
    /// Constant memory.
    Const,
}

/// A fundamental type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are PTX's own.
pub enum Scalar {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    F32,
    F64,
    Pred,
    Texref,
    Samplerref,
    Surfref,
}

/// A variable in memory: `.shared .align 16 .f32 tile[32][33] = {…}`. Parameters too.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its symbol.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// Who sees it.
    pub linkage: Linkage,
    /// Element type.
    pub ty: Scalar,
    /// `.v2` and `.v4`: 2 and 4; 1 otherwise.
    pub vector: u32,
    /// `.align`, in bytes; the natural alignment of the type where the text does not say.
    pub align: u32,
    /// Array dimensions, outermost first; empty for a scalar. `[]` is as long as its initialisers, and 0 without them.
    pub dimensions: Vec<u64>,
    /// Initialisers in memory order, nested braces flattened with zeros filled in; what follows the last of them is zero.
    /// Empty where there are none.
    pub initial: Vec<Initial>,
    /// `.attribute(.managed)`: the host uses it too.
    pub managed: bool,
    /// Properties of a `.samplerref` or `.texref`: `addr_mode_0`, `wrap`.
    pub properties: Vec<(String, String)>,
    /// Line of the PTX text, from 1.
    pub line: u32,
}

/// One initialiser.
#[derive(Debug, Clone, PartialEq)]
pub enum Initial {
    /// An integer, in two's complement.
    Int(u64),
    /// A floating-point number; converted to the variable's type.
    Float(f64),
    /// The address of a symbol plus bytes; `generic(…)` or not; `0xFF(…)` masks pick one byte of it.
    Symbol {
        /// The symbol.
        name: String,
        /// Bytes to add.
        offset: i64,
        /// Written as `generic(name)`.
        generic: bool,
        /// `mask(symbol)`: the mask, which picks one byte of the address.
        mask: Option<u64>,
    },
}

/// A kernel (`.entry`) or a device function (`.func`).
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its symbol (mangled).
    pub name: String,
    /// `.entry`.
    pub is_entry: bool,
    /// Who sees it.
    pub linkage: Linkage,
    /// `.noreturn`.
    pub no_return: bool,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Parameters in order.
    pub parameters: Vec<Variable>,
    /// Performance and other directives with their numbers: `maxntid` `[1024, 1, 1]`, `minnctapersm` `[1]`; those without
    /// numbers too (`explicitcluster`).
    pub directives: Vec<(String, Vec<u64>)>,
    /// Statements, or nothing for a declaration.
    pub body: Option<Vec<Statement>>,
    /// Line of the PTX text, from 1.
    pub line: u32,
}

/// One statement of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `{ … }`: names declared inside are not seen outside.
    Block(Vec<Statement>),
    /// `$L__BB0_2:`.
    Label(String),
    /// `.reg .b32 %r<10>;` gives `%r0` to `%r9`; `.reg .b32 t;` gives `t`.
    Registers {
        /// Type of each.
        ty: Scalar,
        /// `.v2`, `.v4`: 2, 4; 1 otherwise.
        vector: u32,
        /// Names, each with the count in angle brackets where there is one.
        names: Vec<(String, Option<u32>)>,
    },
    /// A variable of a function: `.local`, `.shared`, or `.param` of a call.
    Variable(Variable),
    /// `.loc`: the source place of what follows.
    Location(Location),
    /// `name: .branchtargets a, b;`.
    BranchTargets(String, Vec<String>),
    /// `name: .calltargets f, g;`.
    CallTargets(String, Vec<String>),
    /// `name: .callprototype (returns) _ (parameters);`.
    CallPrototype {
        /// Its label.
        name: String,
        /// Return parameters.
        returns: Vec<Variable>,
        /// Parameters.
        parameters: Vec<Variable>,
    },
    /// `.pragma "…";`.
    Pragma(String),
    /// An instruction.
    Instruction(Instruction),
}

/// `.loc file line column [, function_name label [+ offset], inlined_at file line column]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// Index into [`Module::files`].
    pub file: u32,
    /// Line of that file, from 1; 0 where the compiler names none.
    pub line: u32,
    /// Column, from 1; 0 for none.
    pub column: u32,
    /// Key of the inlined function's name in [`Module::strings`]: its label, or `label+offset`.
    pub function: Option<String>,
    /// Where the function was inlined: file, line, column.
    pub inlined_at: Option<(u32, u32, u32)>,
}

/// `@!%p opcode.modifier.modifier operands;`.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Guard predicate.
    pub guard: Option<Guard>,
    /// First word: `ld`, `setp`, `mad`.
    pub opcode: String,
    /// The words after it, as written, without dots: `global`, `v4`, `f32`. `::` stays inside a word
    /// (`shared::cta`).
    pub modifiers: Vec<String>,
    /// Operands in order.
    pub operands: Vec<Operand>,
    /// Line of the PTX text, from 1.
    pub line: u32,
}

/// `@%p` or `@!%p`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Predicate register.
    pub register: String,
    /// `!`.
    pub negated: bool,
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A register, a special register (`%tid.x`), a label, a symbol, a function: told apart by what is declared.
    Name(String),
    /// `!%p`.
    Not(String),
    /// `-%r1.h0`: only `vmad` has it.
    Negated(String),
    /// `symbol+8` outside brackets.
    NameOffset(String, i64),
    /// An integer literal, in two's complement. `WARP_SZ` is 32.
    Int(u64),
    /// `0f3F800000`: the bits.
    F32(u32),
    /// `0d3FF0000000000000`: the bits; decimal literals too.
    F64(u64),
    /// `{a, b, c, d}`.
    Vector(Vec<Operand>),
    /// `[base+offset]`; no base for `[16]`.
    Address {
        /// Register or symbol.
        base: Option<String>,
        /// Bytes.
        offset: i64,
    },
    /// `[name, {coordinates}]` of textures and surfaces, and other bracketed lists.
    Bracketed(Vec<Operand>),
    /// `a|b`: a destination in two.
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)`: the lists of a call.
    List(Vec<Operand>),
    /// `_`: a value that nobody wants.
    Sink,
}
