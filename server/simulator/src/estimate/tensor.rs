//! What products of matrices take of the tensor cores.

use crate::device::Device;

/// Cycles of a multiprocessor's tensor cores for an instruction of one warp, or `None` where the opcode names no product.
///
/// Rates beside that of f16, from the tables of the architectures' white papers ("NVIDIA A100 Tensor Core GPU Architecture", Table 4;
/// "NVIDIA H100 Tensor Core GPU Architecture", "Tensor Core throughput"): tf32 a half, eight-bit formats twice, s4 and u4 four times, bits
/// sixteen times; sparse rows twice what their columns say. Of f64, A100 and H100 do two multiply-adds where their other units do one; elsewhere
/// it is those units' rate. Sums of f16 count as sums of f32.
pub(super) fn cycles(device: &Device, opcode: &str) -> Option<f64> {
    let words: Vec<&str> = opcode.split('.').collect();
    let [m, n, k] = words.iter().find_map(|word| shape(word))?;
    // A warpgroup's product is counted once for each of its four warps.
    let warps = if words[0] == "wgmma" { 4.0 } else { 1.0 };
    let sparse = words.iter().any(|word| *word == "sp" || word.starts_with("sp::"));
    let factors = words.iter().filter_map(|word| rate(device, word));
    // Accumulators are of the widest type; the narrowest are the factors.
    let rate = match factors.fold(0.0, f64::max) {
        // `wmma` of f16 names its sums alone.
        0.0 if words[0] == "wmma" => f64::from(device.tensor),
        rate => rate,
    };
    let products = m * n * k / if sparse { 2.0 } else { 1.0 };
    (rate > 0.0).then(|| products / warps / rate)
}

/// `m16n8k16`.
fn shape(word: &str) -> Option<[f64; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// Multiply-adds a cycle of a multiprocessor, of factors of a type; `None` where the word is no type of factors.
fn rate(device: &Device, word: &str) -> Option<f64> {
    let half = f64::from(device.tensor);
    let limits = device.limits;
    Some(match word {
        "f16" | "bf16" => half,
        "tf32" => half / 2.0,
        "s8" | "u8" | "e4m3" | "e5m2" => half * 2.0,
        "s4" | "u4" => half * 4.0,
        "b1" => half * 16.0,
        "f64" => {
            let twice = matches!(limits.capability, (8 | 9, 0));
            f64::from(limits.lanes) / f64::from(limits.single_to_double) * if twice { 2.0 } else { 1.0 }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(device: &str, opcode: &str) -> Option<f64> {
        cycles(Device::named(device).unwrap(), opcode)
    }

    /// Cycles by hand: m · n · k over the multiply-adds of a cycle.
    #[test]
    fn a_product_takes_its_multiply_adds() {
        let f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
        assert_eq!(on("a100", f16), Some(2.0));
        assert_eq!(on("h200", f16), Some(1.0));
        assert_eq!(on("h200", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), Some(1.0));
        assert_eq!(on("a100", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"), Some(2.0));
        assert_eq!(on("a100", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"), Some(2.0));
        assert_eq!(on("a100", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"), Some(4.0));
        assert_eq!(on("rtx4090", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"), Some(128.0));
        assert_eq!(on("h200", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"), Some(16.0));
        assert_eq!(on("v100", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"), Some(8.0));
        assert_eq!(on("a100", "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32"), Some(2.0));
        assert_eq!(on("h200", "fma.rn.f32"), None);
    }
}
