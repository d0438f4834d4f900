//! What the simulator refuses though PTX has it, with the reason: for messages and for the documentation.

/// Opcodes that are refused for one reason.
pub struct Refused {
    /// `tex`, or the beginning of an opcode with its modifiers: `cp.async.bulk.tensor`.
    pub opcodes: &'static [&'static str],
    /// What they are, in words.
    pub why: &'static str,
}

/// What is refused, by kind.
#[must_use]
pub fn refused() -> &'static [Refused] {
    TABLE
}

/// Why an opcode is refused, where the table says.
pub(super) fn reason(opcode: &str) -> Option<&'static str> {
    TABLE.iter().find(|entry| entry.opcodes.contains(&opcode)).map(|entry| entry.why)
}

static TABLE: &[Refused] = &[
    Refused {
        opcodes: &["tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"],
        why: "textures and surfaces",
    },
    Refused { opcodes: &["tcgen05"], why: "tensor cores of sm_100 and later" },
    Refused { opcodes: &["tensormap"], why: "changes of tensor maps by kernels" },
    Refused {
        opcodes: &[
            "cp.async.bulk.tensor.im2col::w",
            "cp.async.bulk.tensor.tile::gather4",
            "cp.async.bulk.tensor.tile::scatter4",
        ],
        why: "modes of tensors that came with sm_100",
    },
    Refused {
        opcodes: &["multimem", "st.bulk", "clusterlaunchcontrol"],
        why: "memory of several devices, and what comes after sm_90",
    },
];
