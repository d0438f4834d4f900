//! Classes of PTX instructions: what a kernel spends its instructions on.

/// What an instruction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionClass {
    /// Arithmetic, logic and comparisons of integers, bits and predicates.
    Integer,
    /// Arithmetic and comparisons of f32 (and tf32).
    F32,
    /// Arithmetic and comparisons of f64.
    F64,
    /// Arithmetic and comparisons of f16, bf16 and their pairs.
    Half,
    /// Products of matrices: tensor cores.
    Tensor,
    /// `cvt`, `cvta`.
    Conversion,
    /// Loads, stores, atomics and copies of global memory.
    Global,
    /// The same of shared memory.
    Shared,
    /// The same of local memory.
    Local,
    /// Loads of constant memory and of parameters, and the parameters of calls.
    Parameter,
    /// Accesses by generic addresses.
    Generic,
    /// Branches, calls, returns, exits.
    Control,
    /// Barriers, fences, and what lanes of a warp do together.
    Synchronization,
    /// Moves, selections between registers, hints and the rest.
    Other,
}

impl InstructionClass {
    /// All classes, in the order of reports.
    pub const ALL: [Self; 14] = [
        Self::Integer,
        Self::F32,
        Self::F64,
        Self::Half,
        Self::Tensor,
        Self::Conversion,
        Self::Global,
        Self::Shared,
        Self::Local,
        Self::Parameter,
        Self::Generic,
        Self::Control,
        Self::Synchronization,
        Self::Other,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Half => "half",
            Self::Tensor => "tensor cores",
            Self::Conversion => "conversion",
            Self::Global => "global memory",
            Self::Shared => "shared memory",
            Self::Local => "local memory",
            Self::Parameter => "parameters and constants",
            Self::Generic => "generic addresses",
            Self::Control => "control flow",
            Self::Synchronization => "synchronization",
            Self::Other => "other",
        }
    }

    /// The class of an opcode with its modifiers, as in [`InstructionCounters::opcode`](super::InstructionCounters::opcode).
    #[must_use]
    pub fn of(opcode: &str) -> Self {
        let mut words = opcode.split('.');
        let name = words.next().unwrap_or_default();
        match name {
            "ld" | "ldu" | "st" | "atom" | "red" => space(words),
            // A copy reads one side and writes the other; where one is global, that is what it costs.
            "cp" if opcode.contains("global") => Self::Global,
            "cp" if opcode.contains("_group") || opcode.contains("wait_all") => Self::Synchronization,
            "cp" => Self::Shared,
            "mma" => Self::Tensor,
            "wmma" if opcode.contains(".mma.") => Self::Tensor,
            "wgmma" if opcode.contains(".mma_async") => Self::Tensor,
            "wgmma" => Self::Synchronization,
            "wmma" | "ldmatrix" | "stmatrix" => space(words),
            "movmatrix" => Self::Other,
            "cvt" | "cvta" => Self::Conversion,
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" => Self::Control,
            "bar" | "barrier" | "membar" | "fence" | "mbarrier" | "shfl" | "vote" | "match" | "redux"
            | "elect" | "activemask" | "nanosleep" => Self::Synchronization,
            "mov" | "selp" | "slct" | "prefetch" | "prefetchu" | "discard" | "applypriority"
            | "createpolicy" | "griddepcontrol" | "setmaxnreg" | "pmevent" | "isspacep" | "mapa"
            | "getctarank" | "alloca" | "stacksave" | "stackrestore" => Self::Other,
            _ => arithmetic(words),
        }
    }
}

fn space<'a>(words: impl Iterator<Item = &'a str>) -> InstructionClass {
    for word in words {
        match word.split("::").next().unwrap_or_default() {
            "global" => return InstructionClass::Global,
            "shared" => return InstructionClass::Shared,
            "local" => return InstructionClass::Local,
            "param" | "const" => return InstructionClass::Parameter,
            _ => {}
        }
    }
    InstructionClass::Generic
}

/// By the last type: `setp.lt.f32`, `mul.wide.s32`.
fn arithmetic<'a>(words: impl Iterator<Item = &'a str>) -> InstructionClass {
    match words.last().unwrap_or_default() {
        "f32" | "tf32" => InstructionClass::F32,
        "f64" => InstructionClass::F64,
        "f16" | "f16x2" | "bf16" | "bf16x2" => InstructionClass::Half,
        _ => InstructionClass::Integer,
    }
}

#[cfg(test)]
mod tests {
    use super::InstructionClass as C;

    #[test]
    fn opcodes_have_classes() {
        for (opcode, class) in [
            ("ld.global.nc.v4.f32", C::Global),
            ("ld.param.u64", C::Parameter),
            ("ld.u32", C::Generic),
            ("st.shared::cta.b32", C::Shared),
            ("atom.shared.add.u32", C::Shared),
            ("cp.async.ca.shared.global", C::Global),
            ("cp.async.wait_group", C::Synchronization),
            ("fma.rn.f32", C::F32),
            ("setp.lt.f64", C::F64),
            ("fma.rn.bf16x2", C::Half),
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", C::Tensor),
            ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", C::Global),
            ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", C::Shared),
            ("wgmma.fence.sync.aligned", C::Synchronization),
            ("mad.lo.s32", C::Integer),
            ("and.pred", C::Integer),
            ("cvt.rn.f32.s32", C::Conversion),
            ("bra.uni", C::Control),
            ("bar.sync", C::Synchronization),
            ("mov.u32", C::Other),
        ] {
            assert_eq!(C::of(opcode), class, "{opcode}");
        }
    }
}
