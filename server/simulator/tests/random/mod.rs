//! Small random kernels: each a text for nvcc and the same for a C++ compiler of the host, which print the same numbers.
//!
//! A kernel is a list of steps. In a step of code each thread changes its own variables, with divergent branches, loops, local arrays and
//! calls. In between are steps that all threads take together: shuffles, votes, shared memory between barriers, atomics whose order
//! does not matter. On the host, each step runs for one thread after the other. Everything has one meaning (`prelude.h`), so
//! all compilers, all levels of optimisation and all devices must agree.
//!
//! Kernels 0 to 279 ran on an H200, as machine code of nvcc -O3, and printed what the simulator prints of PTX of nvcc -O3. The host's program
//! differs from both in 85 and 114, where -G agrees with it, and in 118 and 276, where -G agrees with the H200.

#![allow(dead_code)] // The test and the example each use a part.

mod code;
mod together;

use std::fmt::Write as _;

/// What both texts begin with.
pub const PRELUDE: &str = include_str!("prelude.h");

/// Numbers that look random. Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// A step of a kernel.
pub enum Step {
    /// What each thread does alone, on `s`.
    Alone(String),
    /// What they do together: on a device, and on the host for the threads `all` of a block.
    Together { device: String, host: String },
}

/// Texts that print the same lines.
pub struct Texts {
    pub device: String,
    pub host: String,
}

/// `count` kernels, numbered from `first`. The same number makes the same kernel.
pub fn texts(first: u64, count: u64) -> Texts {
    let mut texts = Texts { device: PRELUDE.to_owned(), host: PRELUDE.to_owned() };
    texts.device.push_str("static u64 *outputs;\nstatic u32 *sums;\n");
    texts.host.push_str("static u32 sums[64];\n");
    for number in first..first + count {
        kernel(number, &mut texts);
    }
    texts.device.push_str(
        "int main() {\n  cudaMalloc(&outputs, 4096 * 8);\n  cudaMalloc(&sums, 256);\n  static u64 back[4096];\n  static u32 totals[64];\n",
    );
    texts.host.push_str("int main() {\n");
    for number in first..first + count {
        let _ = writeln!(texts.device, "  run{number}(back, totals);");
        let _ = writeln!(texts.host, "  run{number}();");
    }
    texts.device.push_str("  return cudaDeviceSynchronize() != cudaSuccess;\n}\n");
    texts.host.push_str("  return 0;\n}\n");
    texts
}

fn kernel(number: u64, texts: &mut Texts) {
    let random = &mut Random::new(number.wrapping_mul(0x5851_F42D_4C95_7F2D));
    let threads = *random.pick(&[32u64, 64, 96, 128, 256]);
    let blocks = 1 + random.below(3);
    let helper = code::function(random, number);
    let mut steps = Vec::new();
    for _ in 0..2 + random.below(4) {
        steps.push(Step::Alone(code::block(random, number, 0)));
        steps.push(together::step(random, threads));
    }
    steps.push(Step::Alone(code::block(random, number, 0)));
    let (device, host) = (&mut texts.device, &mut texts.host);
    device.push_str(&helper);
    host.push_str(&helper);
    let _ = writeln!(device, "__global__ void k{number}(u64 *out, u32 *sums) {{");
    let _ = writeln!(device, "  __shared__ u32 sh[{threads}];\n  __shared__ u64 wide[{threads}];");
    let _ = writeln!(
        device,
        "  const u32 t = threadIdx.x, block = blockIdx.x;\n  (void)sh; (void)wide; (void)sums;"
    );
    let _ = writeln!(device, "  State s = begin(block * {threads} + t, {number}u);");
    let _ = writeln!(host, "static void h{number}(u64 *out, u32 block) {{\n  static State all[{threads}];");
    let _ = writeln!(
        host,
        "  for (u32 t = 0; t < {threads}; ++t) all[t] = begin(block * {threads} + t, {number}u);"
    );
    for step in &steps {
        match step {
            Step::Alone(text) => {
                let _ = writeln!(device, "  {{\n{text}  }}");
                let _ = writeln!(
                    host,
                    "  for (u32 t = 0; t < {threads}; ++t) {{\n    State &s = all[t];\n{text}  }}"
                );
            }
            Step::Together { device: here, host: there } => {
                let _ = writeln!(device, "{here}");
                let _ = writeln!(host, "{there}");
            }
        }
    }
    let _ = writeln!(device, "  out[block * {threads} + t] = finish(s);\n}}");
    let _ = writeln!(
        host,
        "  for (u32 t = 0; t < {threads}; ++t) out[block * {threads} + t] = finish(all[t]);\n}}"
    );
    let all = threads * blocks;
    let print = format!(
        "  u64 h = {number};\n  for (u32 i = 0; i < {all}; ++i) h = mix_host(h, out[i]);\n  for (u32 i = 0; i < 64; ++i) h = mix_host(h, sums[i]);\n  printf(\"k{number} %016llx\\n\", (unsigned long long)h);\n}}\n"
    );
    let mix = "#ifndef MIX_HOST\n#define MIX_HOST\nstatic u64 mix_host(u64 h, u64 v) { h ^= v; h *= 0x9e3779b97f4a7c15ull; return h ^ h >> 29; }\n#endif\n";
    device.push_str(mix);
    host.push_str(mix);
    let _ = write!(
        device,
        "static void run{number}(u64 *out, u32 *totals) {{\n  cudaMemset(sums, 0, 256);\n  k{number}<<<{blocks}, {threads}>>>(outputs, sums);\n  cudaMemcpy(out, outputs, {all} * 8, cudaMemcpyDeviceToHost);\n  cudaMemcpy(totals, ::sums, 256, cudaMemcpyDeviceToHost);\n  {{\n  u32 *sums = totals;\n{print}}}\n"
    );
    let _ = write!(
        host,
        "static void run{number}() {{\n  static u64 out[{all}];\n  memset(sums, 0, sizeof sums);\n  for (u32 block = 0; block < {blocks}; ++block) h{number}(out, block);\n{print}"
    );
}
