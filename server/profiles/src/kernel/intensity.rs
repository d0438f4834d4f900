//! Where a launch stands on the roofline: operations for each byte of device memory, beside the point from which on computing is the lower roof.
//!
//! Source of the model: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
//! architectures", CACM 52(4), 2009. Source of the counters: the roofline sections that Nsight Compute ships, which count an addition and a
//! multiplication as one operation, and a fused multiply-add as two.

use super::{KernelLaunch, Metric};

/// From this share of its peak on, in percent, the tensor pipe does operations that are not among those counted here. Ours: the compiler moves
/// constants through this pipe, which counts up to 3 percent.
const TENSOR_IN_USE: f64 = 5.0;

/// What places a launch, to be asked for beside what rules need. Counts, and not rates: they are the same whatever the caches held.
pub(crate) const INTENSITY: &[Metric] = &[
    Metric::DramRead,
    Metric::DramWritten,
    Metric::DramPeakBytes,
    Metric::DramFrequency,
    Metric::SmFrequency,
    Metric::PeakFp32Fma,
    Metric::PeakFp64Fma,
    Metric::Fp32Add,
    Metric::Fp32Mul,
    Metric::Fp32Fma,
    Metric::Fp64Add,
    Metric::Fp64Mul,
    Metric::Fp64Fma,
];

/// The precision whose operations take most of a launch's roof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits.
    Fp32,
    /// 64 bits.
    Fp64,
}

impl Precision {
    /// What a person calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
        }
    }

    /// Counts and rates of additions, multiplications and fused multiply-adds, and the peak of the last.
    fn metrics(self) -> ([(Metric, Metric, f64); 3], Metric) {
        match self {
            Self::Fp32 => (
                [
                    (Metric::Fp32Add, Metric::Fp32AddRate, 1.0),
                    (Metric::Fp32Mul, Metric::Fp32MulRate, 1.0),
                    (Metric::Fp32Fma, Metric::Fp32FmaRate, 2.0),
                ],
                Metric::PeakFp32Fma,
            ),
            Self::Fp64 => (
                [
                    (Metric::Fp64Add, Metric::Fp64AddRate, 1.0),
                    (Metric::Fp64Mul, Metric::Fp64MulRate, 1.0),
                    (Metric::Fp64Fma, Metric::Fp64FmaRate, 2.0),
                ],
                Metric::PeakFp64Fma,
            ),
        }
    }
}

/// A launch's place on the roofline of device memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intensity {
    /// What was counted.
    pub precision: Precision,
    /// Operations.
    pub operations: f64,
    /// Bytes that went to and from device memory.
    pub bytes: f64,
    /// Operations a second at most.
    pub peak_operations: f64,
    /// Bytes a second at most.
    pub peak_bytes: f64,
}

impl Intensity {
    /// Arithmetic intensity: operations a byte.
    pub fn value(&self) -> f64 {
        self.operations / self.bytes
    }

    /// The ridge: operations a byte from which on computing is the lower roof.
    pub fn ridge(&self) -> f64 {
        self.peak_operations / self.peak_bytes
    }

    /// Operations a second that the roof allows at this intensity.
    pub fn roof(&self) -> f64 {
        (self.value() * self.peak_bytes).min(self.peak_operations)
    }
}

/// Where a launch stands. `None` where its operations, its traffic or the device's peaks were not measured, where it moved or computed nothing,
/// and where the tensor pipe is in use, whose operations are not counted.
pub fn intensity(launch: &KernelLaunch) -> Option<Intensity> {
    if launch.get(Metric::PipeTensor).is_some_and(|busy| busy >= TENSOR_IN_USE) {
        return None;
    }
    let bytes = traffic(launch).filter(|bytes| *bytes > 0.0)?;
    let peak_bytes = launch.get(Metric::DramPeakBytes)? * launch.get(Metric::DramFrequency)?;
    let of = |precision: Precision| {
        let (counts, peak) = precision.metrics();
        let mut operations = 0.0;
        for (count, rate, weight) in counts {
            operations += weight * counted(launch, count, rate)?;
        }
        let peak_operations = 2.0 * launch.get(peak)? * launch.get(Metric::SmFrequency)?;
        Some(Intensity { precision, operations, bytes, peak_operations, peak_bytes })
    };
    let all = [of(Precision::Fp32), of(Precision::Fp64)];
    let busy = all.into_iter().flatten().filter(|found| found.operations > 0.0 && found.ridge() > 0.0);
    busy.max_by(|a, b| (a.operations / a.peak_operations).total_cmp(&(b.operations / b.peak_operations)))
}

/// Bytes to and from device memory.
fn traffic(launch: &KernelLaunch) -> Option<f64> {
    let counted = launch.get(Metric::DramRead).zip(launch.get(Metric::DramWritten));
    let by_rate = || Some(launch.get(Metric::DramRate)? * launch.get(Metric::Duration)?);
    counted.map(|(read, written)| read + written).or_else(by_rate)
}

fn counted(launch: &KernelLaunch, count: Metric, rate: Metric) -> Option<f64> {
    launch.get(count).or_else(|| Some(launch.get(rate)? * launch.get(Metric::SmCyclesElapsed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(metrics: &[(Metric, f64)]) -> KernelLaunch {
        KernelLaunch { metrics: metrics.iter().copied().collect(), ..KernelLaunch::default() }
    }

    /// One fused multiply-add for each float read and written, on an H200: 1504 bytes and 16,896 fused multiply-adds a cycle at most.
    const SAXPY: &[(Metric, f64)] = &[
        (Metric::DramRead, 8e6),
        (Metric::DramWritten, 4e6),
        (Metric::DramPeakBytes, 1504.0),
        (Metric::DramFrequency, 3.2e9),
        (Metric::SmFrequency, 2e9),
        (Metric::PeakFp32Fma, 16_896.0),
        (Metric::Fp32Add, 0.0),
        (Metric::Fp32Mul, 0.0),
        (Metric::Fp32Fma, 1e6),
    ];

    #[test]
    fn operations_a_byte_stand_beside_the_ridge() {
        let found = intensity(&launch(SAXPY)).unwrap();
        assert_eq!(found.precision, Precision::Fp32);
        assert!((found.value() - 1.0 / 6.0).abs() < 1e-12);
        assert!((found.ridge() - 67.584e12 / 4.8128e12).abs() < 1e-9);
        assert!((found.roof() - 4.8128e12 / 6.0).abs() < 1.0);
    }

    #[test]
    fn what_was_not_counted_has_no_place() {
        for lacking in SAXPY {
            let rest: Vec<_> = SAXPY.iter().filter(|known| known.0 != lacking.0).copied().collect();
            assert_eq!(intensity(&launch(&rest)), None, "{:?}", lacking.0);
        }
        let nothing_computed: Vec<_> = SAXPY
            .iter()
            .map(|(metric, value)| (*metric, if *metric == Metric::Fp32Fma { 0.0 } else { *value }))
            .collect();
        assert_eq!(intensity(&launch(&nothing_computed)), None);
        let tensor: Vec<_> = SAXPY.iter().copied().chain([(Metric::PipeTensor, 40.0)]).collect();
        assert_eq!(intensity(&launch(&tensor)), None);
    }
}
