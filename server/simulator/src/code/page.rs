//! `docs/simulator.md`, made from the tables that lowering goes by.

use std::fmt::Write as _;

use expect_test::expect_file;

use super::{SPECIAL_REGISTERS, refused, supported};

const HEAD: &str = "\
# What the simulator runs

Made from the simulator's own tables: a test fails where this page and they differ (`UPDATE_EXPECT=1 cargo test -p
stitch-simulator` writes it anew).

A kernel runs if the simulator has every instruction that it can reach. Otherwise its launch is refused, and the message names
the instruction and its line; other kernels of the program run. A modifier that an instruction does not list here is refused
too: none is overlooked.
";

const STREAMS: &str = "
## Streams

Launches return at once. Work is done in the order of its calls, one piece after the other, so that runs are the same; the blocks of
a kernel run on all cores. Streams, events and the legacy default stream order it as CUDA says. A kernel that reads what others
may write while it runs (volatile and atomic accesses), or a host function, that has taken longer than 20 ms, no longer holds up work
that does not come after it: so kernels may wait for the host, for host functions, for copies and for kernels of other streams.
Functions of the host are called by a thread of their own. `CUDA_LAUNCH_BLOCKING=1` is obeyed. A program may be 1,024 pieces of work
ahead of its device; then launches wait. A kernel that took no longer than 20 µs the last time is done before its launch returns, where
nothing is before it.

Copies from memory that is not pinned are done when they are called, after what their stream did before; up to 64 KiB are put aside
instead where the stream is busy. What kernels print is written when the program waits for the device, all of it: the buffer
never overflows. Each thread whose assertion fails is named.

A program that ends without waiting leaves its work behind: it is done if that takes no more than two seconds, and abandoned otherwise.
A kernel that is stopped in the middle keeps what it counted; the report says after how many blocks it stopped.
";

const TENSORS: &str = "
## Tensor cores

`mma`, `wmma` and `wgmma` are done for the lanes that hold the fragments, when the instruction is reached; fences, groups and `wgmma.wait_group` order
what is ordered already, and a warpgroup waits for its four warps. Integers, bits and whole numbers that fit are exact. NVIDIA documents
no order of the other sums. The simulator has, whatever the simulated device, what an H200 does:

| factors | columns whose products are added at once | bits kept below the largest exponent | result |
|---|---|---|---|
| f16, bf16 | 16 | 25 | f32, cut; f16, rounded to nearest |
| tf32 | 8; of `wmma` 4 | 25 | f32, cut |
| e4m3 and e5m2 of `wgmma` | 32 | 13 | f32, cut to 13 bits of mantissa; f16, rounded to nearest |
| e4m3 and e5m2 of `mma` | half of k: of each four elements two, of sparse rows of each eight four | 25 | f32, cut; f16, rounded to nearest; the accumulator is added last, rounded to nearest |
| f16 of `mma.m8n8k4` | one; of f16 results two | | arithmetic of f32, rounded to nearest, from zero on; the accumulator is added last, or to each two |
| f64 | fused multiply-adds in the order of k | | f64, rounded to nearest |

Products are exact; each, and the accumulator, is cut toward zero. Of sparse rows, twice as many columns are added at once. Subnormal numbers count as they are; a result that is lost
whole is +0; an infinity times zero and infinities of both signs give NaN.
So a result of n products in blocks of b is off from the exact sum by less than n/b · ((b + 1) · 2^-bits + 2^-23) of the largest product or
result; with 13 bits of mantissa, 2^-13 stands for 2^-23; an accumulator that is added last adds 2^-24 of the result; `mma.m8n8k4` with f32 results is off by at most 14 · 2^-24 of the largest. The tests compute the model anew in whole numbers of 128 bits, and hold it to this bound.

The model began as what others measured on an H100 (Fasi, Higham, Mikaitis, Pranesh: \"Numerical behavior of NVIDIA tensor cores\",
2021; Li and others: \"FTTN\", 2024). A program of 254 forms of `mma`, `mma.sp`, `wmma`, `wgmma`, `ldmatrix`, `stmatrix` and `movmatrix` (`server/simulator/tests/h200/tensors`)
then ran on an H200 and here, on up to eight kinds of numbers: near each other, far apart, cancelling, subnormal, infinite and NaN, whole, mostly zero. All
951 lines, 125,048 tiles and 103 MB of results, are equal bit by bit, signs of zero and NaN too. The instructions of PTX that the machine lacks (`mma` of e4m3 and e5m2, `mma.m8n8k4` of f16, `wmma` of
tf32) are as nvcc 13.5 makes them of others; another compiler may sum in another order. A test runs 740 of the lines on their first eight tiles. Not among the lines, and so never compared: `mma` of
e4m3 and e5m2 with f16 results, which are as the machine code says: a test holds them to instructions of f16.

Where elements of `wmma` lie in fragments is as `mma` has them, and as an H200 has them. A tensor map is what `cuTensorMapEncodeTiled` of the simulator's runtime makes
(asked for by `cudaGetDriverEntryPoint`): tiles of one to five dimensions, with or without swizzle, not interleaved. Copies in bulk and by
maps are done at once, and a barrier is told of their bytes. What they read and write is checked for bounds, for values that nobody wrote and, within a
block, for races, as any access is; that a fence between proxies is missing is not seen. Of the blocks of a cluster, memory
that they share is checked for bounds alone.
";

const RANDOM: &str = "
## Random kernels beside those of an H200

280 random kernels (`server/simulator/tests/random`, numbers 0 to 279: branches that diverge, loops, calls, local arrays, shuffles, votes, shared memory, atomics) ran
on an H200 as machine code of nvcc -O3, and here as PTX of nvcc -O3: all 280 print the same. What the host's C++ compiler makes of the same text prints the same in 276.
Without optimisation (-G), 85 and 114 print here what the host prints, so that nvcc's optimiser makes the difference. 118 and 276 print the same with -G and -O3, and
something else on the host; why is not known. The sanitizers of g++ (undefined behaviour, addresses) find nothing in the four.
";

const COMPARED: &str = "
## Counters beside those of an H200

All blocks of `lines.cu` and `kernels.cu`, at their full size, beside what Nsight Compute 2025.3 counted for
each source line that touches global or shared memory. *Equal* lines are so in all four counters; the columns after it count the lines that have
any of one.

| program | lines | equal | L2 Theoretical Sectors Global | its ideal | L1 Wavefronts Shared | its ideal |
|---|---|---|---|---|---|---|
| `lines small` | 38 | 37 | 33 of 33 | 33 of 33 | 12 of 13 | 12 of 13 |
| `lines` | 38 | 37 | 33 of 33 | 33 of 33 | 12 of 13 | 12 of 13 |
| `kernels` | 20 | 18 | 19 of 20 | 19 of 20 | 5 of 6 | 5 of 6 |
| all | 96 | 92 (95.8 %) | 85 of 86 | 85 of 86 | 29 of 32 | 29 of 32 |

The other lines, and why:

| kernel, line | simulated | counted | what the machine code holds |
|---|---|---|---|
| `matmul_tiled`, 155 of `lines.cu` | 67108864 wavefronts | 50331648 | The unrolled loop over `k` reads 16 neighbouring words of a row of `as`: 16 `ld.shared.f32` in PTX, 4 `LDS.128` in machine code, of 2 wavefronts each. So a tile takes a warp 16 + 8 wavefronts instead of 16 + 16. |
| the same, `small` | 16384 wavefronts | 12288 | the same |
| `matmul_tiled`, 15 of `kernels.cu` | 71303168 wavefronts | 54525952 | the same |
| `reduce_shared`, 12 of `kernels.cu` | 2097152 sectors | 2162688 | Nothing else: Nsight Compute shows the `REDG` of `atomicAdd`, one instruction at one address with 65536 sectors, under the line of the header that `atomicAdd` is inlined from and under line 12 too. In `reduce_shuffle` and `histogram_atomic` it shows it under the header's line only, as the simulator does. |

Their programs run to the same results: `lines small` prints exactly what the GPU printed, and so do `lines` and `kernels`.
";

const SHARES: &str = "
## Shares of the blocks

`--sample 0.1` runs a tenth of the blocks, spread evenly over the grid, for their counters: results are not the program's then.
Where all blocks do the same, counters times ten are those of all blocks, exactly. Measured on the programs of the
tests at full size (33 kernels, 58 source lines that touch memory): with one block of a hundred, 52 lines are exactly what Nsight
Compute counted on an H200; three more are off by at most 0.05 % (a histogram of random numbers, a loop with 62 rounds for some
blocks and 63 for others, and an end that only the last block has), and three hold other accesses in machine code than in PTX, or are
counted twice there. So a sample is off by as much as its blocks differ from the others; a kernel of a few blocks should not be sampled.

A profile on save has a budget of 5 seconds instead of a share. Until they are over, all blocks run, in their order. The launch that is at work then
goes on with a sample of the rest of its blocks, spread evenly, for a tenth of the time that it had, and each launch after it with one for 20 ms,
so how many blocks those are follows from the machine. Kernels whose blocks wait for each other (cooperative launches, and code
that reads what others may write meanwhile) are never sampled. The report counts blocks that ran and blocks that were launched.

The rule for what a sample may be used for: counts of launches before the first that was sampled are exact. From then on memory lacks what was left
out. So results are never compared, defects are not told, and where host code or a later kernel decides by what was computed (a
loop until something has converged, a list that a kernel filled), what runs may be something else than in a full run: then only the counts of
launches until there are of use, and the profile says for which kernels it counted how many blocks.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    page += "\n## Instructions\n\n| opcode | forms |\n|---|---|\n";
    for entry in supported() {
        let _ = writeln!(page, "| `{}` | {} |", entry.opcode, entry.what);
    }
    page += "\n## Refused\n\n| opcodes | what they are |\n|---|---|\n";
    for entry in refused() {
        let names: Vec<String> = entry.opcodes.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {} | {} |", names.join(", "), entry.why);
    }
    page += "\n## Special registers\n\n";
    let names: Vec<String> = SPECIAL_REGISTERS.iter().map(|name| format!("`{name}`")).collect();
    page += &names.join(", ");
    page += ".\n\n`%clock` counts four cycles an instruction of the warp, and knows nothing of memory. `%smid` deals blocks to multiprocessors in turn.\n";
    page += "\n## Functions of the device runtime\n\n`vprintf`, `malloc`, `free`, `__assertfail`: `printf`, `malloc`, `new`, \
             `free`, `delete`, `assert`. Kernels\ncan't launch kernels.\n";
    page += STREAMS;
    page += TENSORS;
    page += COMPARED;
    page += RANDOM;
    page += SHARES;
    page
}

#[test]
fn the_page_is_up_to_date() {
    expect_file!["../../../../docs/simulator.md"].assert_eq(&page());
}

#[test]
fn nothing_is_both_supported_and_refused() {
    for entry in refused() {
        for opcode in entry.opcodes {
            assert!(supported().iter().all(|s| s.opcode != *opcode), "{opcode}");
        }
    }
}
