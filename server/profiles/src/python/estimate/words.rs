//! An estimate in words, with the numbers that it rests on.

use super::{OperatorEstimate, Peaks};
use crate::kernel::BUSY;
use crate::units::{count, percent, rate, size, time};

impl OperatorEstimate {
    /// `at least 210 MB in 60.0 µs: 3.50 TB/s, 73% of 4.81 TB/s`, and what is computed likewise. `None` where bytes or peaks are not known.
    pub fn words(&self, peaks: &Peaks) -> Option<String> {
        let (bytes, memory) = (self.bytes?, self.memory?);
        let seconds = self.ns as f64 * 1e-9;
        let mut words = format!(
            "at least {} in {}: {}, {} of {}",
            size(bytes),
            time(self.ns),
            rate(bytes as f64 / seconds),
            percent(memory / 100.0),
            rate(peaks.bandwidth),
        );
        // Of several calls, each may find there what the one before it left: then the memory is not what bounds it.
        if memory >= BUSY && peaks.l2 > 0 && bytes / self.calls.max(1) <= peaks.l2 {
            words.push_str(&format!(" (a call's tensors fit into the L2 cache of {})", size(peaks.l2)));
        }
        if let (Some(flops), Some(compute), Some(arithmetic)) = (self.flops, self.compute, self.arithmetic)
            && let Some(peak) = peaks.flops.get(&arithmetic)
        {
            words.push_str(&format!(
                "; {} operations: {}, {} of {} ({})",
                operations(flops as f64),
                flops_a_second(flops as f64 / seconds),
                percent(compute / 100.0),
                flops_a_second(*peak),
                arithmetic.label(),
            ));
        }
        Some(words)
    }

    /// `aten::addmm`, or what stands for no name.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { "kernels of no operator" } else { &self.name }
    }
}

/// Operations a second: `40.1 TFLOP/s`.
pub fn flops_a_second(flops: f64) -> String {
    let (value, unit) = scaled(flops);
    format!("{value} {unit}FLOP/s")
}

fn operations(flops: f64) -> String {
    if flops < 1e6 {
        count(flops as u64)
    } else {
        let (value, unit) = scaled(flops);
        format!("{value} {unit}")
    }
}

fn scaled(value: f64) -> (String, &'static str) {
    let (value, unit) = match value {
        value if value < 1e6 => (value / 1e3, "k"),
        value if value < 1e9 => (value / 1e6, "M"),
        value if value < 1e12 => (value / 1e9, "G"),
        value if value < 1e15 => (value / 1e12, "T"),
        value => (value / 1e15, "P"),
    };
    (crate::units::three_digits(value), unit)
}
