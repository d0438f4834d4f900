//! What the threads of a block do together.

use super::{Random, Step};

/// One step, for a block of so many threads.
pub fn step(random: &mut Random, threads: u64) -> Step {
    let (device, host) = match random.below(10) {
        0 => shuffle(random, threads),
        1 => vote(random, threads),
        2 => masked(random, threads),
        3 => exchange(random, threads),
        4 => wide_exchange(random, threads),
        5 => shared_atomics(random, threads),
        6 => global_atomics(random, threads),
        7 => reduce(threads),
        8 => count(random, threads),
        _ => matches(random, threads),
    };
    Step::Together { device, host }
}

type Both = (String, String);

/// A variable that may be shuffled.
fn shuffled(random: &mut Random) -> (&'static str, &'static str) {
    *random.pick(&[
        ("a0", "u32"),
        ("a1", "u32"),
        ("b0", "i32"),
        ("c0", "u64"),
        ("d0", "i64"),
        ("e0", "f32"),
        ("g0", "f64"),
    ])
}

fn shuffle(random: &mut Random, threads: u64) -> Both {
    let (variable, ty) = shuffled(random);
    let width = *random.pick(&[32u64, 16, 8]);
    let by = random.below(width);
    let (device, source) = match random.below(4) {
        0 => (format!("__shfl_xor_sync(~0u, s.{variable}, {by}, {width})"), format!("(l ^ {by})")),
        1 => (
            format!("__shfl_up_sync(~0u, s.{variable}, {by}, {width})"),
            format!("(l % {width} >= {by} ? l - {by} : l)"),
        ),
        2 => (
            format!("__shfl_down_sync(~0u, s.{variable}, {by}, {width})"),
            format!("(l % {width} + {by} < {width} ? l + {by} : l)"),
        ),
        _ => (
            format!("__shfl_sync(~0u, s.{variable}, s.a3 + {by}, {width})"),
            format!("(l / {width} * {width} + (old[t].a3 + {by}) % {width})"),
        ),
    };
    (
        format!("  s.{variable} = {device};"),
        format!(
            "  {{ static State old[{threads}]; memcpy(old, all, sizeof old); for (u32 t = 0; t < {threads}; ++t) {{ u32 l = t % 32; all[t].{variable} = ({ty})old[t / 32 * 32 + {source}].{variable}; }} }}"
        ),
    )
}

fn vote(random: &mut Random, threads: u64) -> Both {
    let bit = random.below(32);
    let (device, host) = match random.below(3) {
        0 => ("s.a2 += __ballot_sync(~0u, p);", "all[t].a2 += m;"),
        1 => ("s.a2 += __any_sync(~0u, p) ? 3 : 4;", "all[t].a2 += m ? 3 : 4;"),
        _ => ("s.a2 += __all_sync(~0u, p) ? 5 : 6;", "all[t].a2 += m == ~0u ? 5 : 6;"),
    };
    (
        format!("  {{ const bool p = s.a0 >> {bit} & 1; {device} }}"),
        format!(
            "  for (u32 w = 0; w < {threads}; w += 32) {{ u32 m = 0; for (u32 l = 0; l < 32; ++l) m |= (all[w + l].a0 >> {bit} & 1) << l; for (u32 t = w; t < w + 32; ++t) {{ {host} }} }}"
        ),
    )
}

/// Lanes for which something holds speak among themselves, the others too.
fn masked(random: &mut Random, threads: u64) -> Both {
    let bit = random.below(32);
    let (yes, no) = (random.below(1000), random.below(1000));
    let step = |add: u64| format!("s.a1 = __shfl_sync(m, s.a1, __ffs(m) - 1) + s.a0 * 3 + {add};");
    (
        format!(
            "  {{ const bool p = s.a2 >> {bit} & 1; const u32 b = __ballot_sync(~0u, p); if (p) {{ const u32 m = b; {} }} else {{ const u32 m = ~b; {} }} __syncwarp(); }}",
            step(yes),
            step(no)
        ),
        format!(
            "  for (u32 w = 0; w < {threads}; w += 32) {{ u32 from[2] = {{0, 0}}; bool seen[2] = {{false, false}}; for (u32 t = w; t < w + 32; ++t) {{ u32 p = all[t].a2 >> {bit} & 1; if (!seen[p]) {{ seen[p] = true; from[p] = all[t].a1; }} }} for (u32 t = w; t < w + 32; ++t) {{ u32 p = all[t].a2 >> {bit} & 1; all[t].a1 = from[p] + all[t].a0 * 3 + (p ? {yes} : {no}); }} }}"
        ),
    )
}

fn exchange(random: &mut Random, threads: u64) -> Both {
    let (times, plus) = (1 + 2 * random.below(16), random.below(threads));
    (
        format!(
            "  sh[t] = s.a0; __syncthreads(); s.a0 = sh[(t * {times} + {plus}) % {threads}] ^ s.a1; __syncthreads();"
        ),
        format!(
            "  {{ static u32 sh[{threads}]; for (u32 t = 0; t < {threads}; ++t) sh[t] = all[t].a0; for (u32 t = 0; t < {threads}; ++t) all[t].a0 = sh[(t * {times} + {plus}) % {threads}] ^ all[t].a1; }}"
        ),
    )
}

fn wide_exchange(random: &mut Random, threads: u64) -> Both {
    let plus = random.below(threads);
    (
        format!(
            "  wide[(t + {plus}) % {threads}] = s.c1 + bits(s.g1); __syncthreads(); s.c1 = wide[t] * 3; s.e1 = tame((f32)(i64)wide[{threads} - 1 - t] * 1e-9f); __syncthreads();"
        ),
        format!(
            "  {{ static u64 wide[{threads}]; for (u32 t = 0; t < {threads}; ++t) wide[(t + {plus}) % {threads}] = all[t].c1 + bits(all[t].g1); for (u32 t = 0; t < {threads}; ++t) {{ all[t].c1 = wide[t] * 3; all[t].e1 = tame((f32)(i64)wide[{threads} - 1 - t] * 1e-9f); }} }}"
        ),
    )
}

/// The name of an atomic, its first value, and what it does to `x` with `v`.
const ATOMICS: [(&str, &str, &str); 6] = [
    ("atomicAdd", "0", "x += v"),
    ("atomicMax", "0", "x = x > v ? x : v"),
    ("atomicMin", "~0u", "x = x < v ? x : v"),
    ("atomicOr", "0", "x |= v"),
    ("atomicAnd", "~0u", "x &= v"),
    ("atomicXor", "0", "x ^= v"),
];

fn shared_atomics(random: &mut Random, threads: u64) -> Both {
    let (name, initial, what) = *random.pick(&ATOMICS);
    let bins = 1 + random.below(31);
    (
        format!(
            "  sh[t] = {initial}; __syncthreads(); {name}(&sh[s.a1 % {bins}], s.a2); __syncthreads(); s.a2 = sh[t % {bins}]; __syncthreads();"
        ),
        format!(
            "  {{ static u32 sh[{threads}]; for (u32 t = 0; t < {threads}; ++t) sh[t] = {initial}; for (u32 t = 0; t < {threads}; ++t) {{ u32 &x = sh[all[t].a1 % {bins}], v = all[t].a2; {what}; }} for (u32 t = 0; t < {threads}; ++t) all[t].a2 = sh[t % {bins}]; }}"
        ),
    )
}

/// All of a kernel use one operation a word: those of a block may come between those of another.
fn global_atomics(random: &mut Random, threads: u64) -> Both {
    let which = random.below(4);
    let (name, _, what) = ATOMICS[[0usize, 1, 3, 5][which as usize]];
    let first = which * 16;
    (
        format!("  if (s.a3 % 3 != 0) {name}(&sums[{first} + s.a0 % 16], s.a1);"),
        format!(
            "  for (u32 t = 0; t < {threads}; ++t) if (all[t].a3 % 3 != 0) {{ u32 &x = sums[{first} + all[t].a0 % 16], v = all[t].a1; {what}; }}"
        ),
    )
}

fn reduce(threads: u64) -> Both {
    let half = if threads == 96 { 48 } else { threads / 2 };
    let rounds = if threads == 96 {
        "w = 48; w >= 3; w /= 2".to_owned()
    } else {
        format!("w = {half}; w > 0; w /= 2")
    };
    (
        format!(
            "  sh[t] = s.a3; __syncthreads(); for (u32 {rounds}) {{ if (t < w) sh[t] = sh[t] * 3 + sh[t + w]; __syncthreads(); }} s.a3 = sh[0] + sh[t % 3]; __syncthreads();"
        ),
        format!(
            "  {{ static u32 sh[{threads}]; for (u32 t = 0; t < {threads}; ++t) sh[t] = all[t].a3; for (u32 {rounds}) for (u32 t = 0; t < w; ++t) sh[t] = sh[t] * 3 + sh[t + w]; for (u32 t = 0; t < {threads}; ++t) all[t].a3 = sh[0] + sh[t % 3]; }}"
        ),
    )
}

fn count(random: &mut Random, threads: u64) -> Both {
    let bit = random.below(32);
    let (device, host) = match random.below(3) {
        0 => ("__syncthreads_count", "n"),
        1 => ("__syncthreads_or", "(n > 0)"),
        _ => ("__syncthreads_and", "(n == T)"),
    };
    let host = host.replace('T', &threads.to_string());
    (
        // Any number that is not 0 may stand for true.
        if device.ends_with("count") {
            format!("  s.a1 += (u32){device}(s.a0 >> {bit} & 1);")
        } else {
            format!("  s.a1 += {device}(s.a0 >> {bit} & 1) != 0;")
        },
        format!(
            "  {{ u32 n = 0; for (u32 t = 0; t < {threads}; ++t) n += all[t].a0 >> {bit} & 1; for (u32 t = 0; t < {threads}; ++t) all[t].a1 += {host}; }}"
        ),
    )
}

/// `match.any` needs compute capability 7.0.
fn matches(random: &mut Random, threads: u64) -> Both {
    let kinds = 1 + random.below(6);
    (
        format!("  s.a3 ^= __match_any_sync(~0u, s.a0 % {kinds});"),
        format!(
            "  {{ static State old[{threads}]; memcpy(old, all, sizeof old); for (u32 t = 0; t < {threads}; ++t) {{ u32 m = 0; for (u32 l = 0; l < 32; ++l) m |= (u32)(old[t / 32 * 32 + l].a0 % {kinds} == old[t].a0 % {kinds}) << l; all[t].a3 ^= m; }} }}"
        ),
    )
}
