//! A kernel as the timeline of a program knows it: how often, how long, and what it would bring to be rid of it.

use std::fmt::Write;

use crate::kernel::kernel_name;
use crate::system::{KernelSum, System};
use crate::units;

/// Instantiations that are told.
const MOST: usize = 4;

/// What was recorded of the kernels whose name without namespaces, template arguments and parameters is this. `None` for nothing.
pub fn recorded(system: &System, base: &str) -> Option<String> {
    let kernels = system.kernels.iter().flatten();
    let ours: Vec<&KernelSum> = kernels.filter(|kernel| kernel_name(&kernel.name).base == base).collect();
    if ours.is_empty() {
        return None;
    }
    let mut text = String::new();
    for kernel in ours.iter().take(MOST) {
        let launches = units::counted(kernel.count, "launch", "launches");
        let _ = write!(
            text,
            "**{}** of the time of all kernels: {} in {launches}",
            units::percent(kernel.share),
            units::time(kernel.total_ns)
        );
        if kernel.count > 1 {
            let [least, middle, most] = [kernel.min_ns, kernel.median_ns, kernel.max_ns].map(units::time);
            let _ = write!(text, ", {middle} at the median ({least} to {most})");
        }
        match kernel.ceiling {
            Some(ceiling) => {
                let _ = write!(text, ". Without it the program would be {ceiling:.2} times faster at most");
            }
            None => text.push_str(". The program does nothing else on the device"),
        }
        let _ = writeln!(text, ". {}\n", source(system));
    }
    if ours.len() > MOST {
        let _ = writeln!(text, "And {} more instantiations.", ours.len() - MOST);
    }
    Some(text.trim_end().to_owned() + "\n")
}

/// `(Nsight Systems 2025.3)`.
fn source(system: &System) -> String {
    let version = system.source.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("({}{version})", system.source.tool)
}
