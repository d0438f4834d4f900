//! What a device can at most, for classes of lines that are estimated from shapes: from the table of devices, by the name that the driver and profilers give them.

use stitch_profiles::python::Peaks;
use stitch_profiles::python::estimate::Arithmetic;
use stitch_profiles::system::System;
use stitch_simulator::device::{DEVICES, Device};

use crate::device::devices;

/// Devices that differ from one of the table in their memory's size alone. Source: NVIDIA's data sheet of the V100, which gives both sizes one bandwidth.
const ALIKE: [(&str, &str); 1] = [("Tesla V100-SXM2-32GB", "v100")];

/// What of multiplying on tensor cores the architectures have besides FP16: TF32 since Ampere at half of its rate, FP8 since Ada at twice, and FP64 at twice the rate of the
/// other units on A100 and H100, at the same on B200. Source: the data sheets of A100, H100, L4 and B200.
fn flops(device: &Device) -> impl Iterator<Item = (Arithmetic, f64)> {
    let half =
        2.0 * f64::from(device.tensor) * f64::from(device.multiprocessors) * f64::from(device.clock) * 1e3;
    let single = 2.0 * device.single();
    let double = single / f64::from(device.limits.single_to_double);
    let (capability, since) = (device.capability, |least: (u32, u32)| device.capability >= least);
    let double_tensor = match capability {
        (8, 0) | (9, 0) => Some(2.0 * double),
        (10, 0) => Some(double),
        _ => None,
    };
    let all = [
        (Arithmetic::Fp64, Some(double)),
        (Arithmetic::Fp64Tensor, double_tensor),
        (Arithmetic::Fp32, Some(single)),
        (Arithmetic::Tf32Tensor, since((8, 0)).then_some(half / 2.0)),
        (Arithmetic::Fp16Tensor, Some(half)),
        (Arithmetic::Fp8Tensor, since((8, 9)).then_some(half * 2.0)),
    ];
    all.into_iter().filter_map(|(arithmetic, peak)| Some((arithmetic, peak?)))
}

/// The peaks of a device with this name.
///
/// # Errors
/// It is not in the table, in words.
pub fn named(name: &str) -> Result<Peaks, String> {
    let alike = ALIKE.iter().find(|(other, _)| *other == name).and_then(|(_, known)| Device::named(known));
    let device = DEVICES.iter().find(|device| device.product == name).or(alike);
    let device = device.ok_or_else(|| format!("the peaks of {name} are not in the table of devices"))?;
    Ok(Peaks {
        device: name.to_owned(),
        bandwidth: device.bandwidth(),
        l2: u64::from(device.l2),
        flops: flops(device).collect(),
        source: "the table of devices: data sheets, and what drivers say".to_owned(),
    })
}

/// The peaks of the device that a trace is of.
///
/// # Errors
/// It is not known, in words.
pub fn of_trace(system: &System) -> Result<Peaks, String> {
    match system.busiest().and_then(|(device, _)| device.name.as_deref()) {
        Some(name) => named(name),
        None => Err("the trace does not name the device".to_owned()),
    }
}

/// The peaks of a GPU of this machine. Of one that is not in the table, what the driver says of its memory.
///
/// # Errors
/// There is no such GPU, in words.
pub async fn here(index: u32) -> Result<Peaks, String> {
    let device = devices().await.iter().find(|device| device.index == index);
    let device = device.ok_or_else(|| format!("cuda:{index} is not known here"))?;
    named(&device.name).or_else(|why| match device.bandwidth {
        0 => Err(why),
        bandwidth => Ok(Peaks {
            device: device.name.clone(),
            bandwidth: bandwidth as f64,
            l2: device.l2,
            source: "what the driver says of its memory".to_owned(),
            ..Peaks::default()
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_near_those_of_the_data_sheets() {
        // Dense rates in TFLOP/s, and bytes of memory a second in TB/s. The clock of the table is the highest, that of a data sheet's rates is the boost clock.
        let sheets = [
            ("NVIDIA A100-SXM4-80GB", Arithmetic::Fp32, 19.5, 2.04),
            ("NVIDIA A100-SXM4-80GB", Arithmetic::Tf32Tensor, 156.0, 2.04),
            ("NVIDIA A100-SXM4-80GB", Arithmetic::Fp16Tensor, 312.0, 2.04),
            ("NVIDIA A100-SXM4-80GB", Arithmetic::Fp64Tensor, 19.5, 2.04),
            ("NVIDIA H200", Arithmetic::Fp32, 67.0, 4.81),
            ("NVIDIA H200", Arithmetic::Tf32Tensor, 494.0, 4.81),
            ("NVIDIA H200", Arithmetic::Fp16Tensor, 989.0, 4.81),
            ("NVIDIA H200", Arithmetic::Fp8Tensor, 1_979.0, 4.81),
            ("NVIDIA L4", Arithmetic::Fp16Tensor, 121.0, 0.30),
            ("Tesla V100-SXM2-32GB", Arithmetic::Fp16Tensor, 125.0, 0.90),
        ];
        for (name, arithmetic, tera, bandwidth) in sheets {
            let peaks = named(name).unwrap();
            let near = |found: f64, sheet: f64| (found / sheet - 1.0).abs() < 0.1;
            assert!(near(peaks.flops[&arithmetic] / 1e12, tera), "{name} {arithmetic:?} {:?}", peaks.flops);
            assert!(near(peaks.bandwidth / 1e12, bandwidth), "{name} {}", peaks.bandwidth);
        }
        assert!(!named("Tesla T4").unwrap().flops.contains_key(&Arithmetic::Tf32Tensor));
        assert!(named("Some GPU").unwrap_err().contains("Some GPU"));
    }
}
