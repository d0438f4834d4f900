//! Kernels of one instruction each, written from the name of a line: each block has a tile.

use super::numbers::format;
use std::fmt::Write;

/// What a tile takes.
pub struct Input {
    pub format: &'static str,
    pub bytes: usize,
    pub sum: bool,
}

pub struct Kernel {
    pub text: String,
    pub inputs: Vec<Input>,
    /// Bytes of a tile's results.
    pub result: usize,
    pub threads: u32,
}

/// Words of a name that are types.
fn types(name: &'static str) -> Vec<&'static str> {
    name.split('.').filter(|word| format(word).is_some()).collect()
}

fn bits(name: &str) -> usize {
    format(name).unwrap().bits as usize
}

/// `m16n8k8`.
fn shape(name: &str) -> Option<[usize; 3]> {
    let word = name.split('.').find(|word| word.starts_with('m') && word.contains('n'))?;
    let (m, rest) = word[1..].split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// `{%a0,%a1}`.
fn list(name: &str, count: usize) -> String {
    let registers: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
    format!("{{{}}}", registers.join(","))
}

/// Text of a kernel: `%x0` is the tile, `%x1` the thread.
struct Text(String);

impl Text {
    fn new(threads: u32) -> Self {
        let parameters = ["a", "b", "c", "e", "d"].map(|name| format!(".param .u64 of_{name}")).join(", ");
        Self(format!(
            ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry product({parameters})\n.reqntid {threads}\n{{\n\
             .reg .b32 %x<8>;\n.reg .b64 %y<8>;\n.reg .pred %p<2>;\n.shared .align 128 .b8 image[4096];\n\
             mov.u32 %x0, %ctaid.x;\nmov.u32 %x1, %tid.x;\n"
        ))
    }

    fn line(&mut self, text: &str) {
        writeln!(self.0, "{text};").unwrap();
    }

    /// Registers of a matrix.
    fn declare(&mut self, name: &str, count: usize, bits: usize) {
        self.line(&format!(".reg .b{bits} %{name}<{count}>"));
    }

    /// Where a tile's matrix of `bytes` begins, into `%y0`, and what a thread has of it: each begins `thread` bytes after the one before.
    fn address(&mut self, name: &str, bytes: usize, thread: usize) {
        self.line(&format!("ld.param.u64 %y0, [of_{name}]"));
        self.line(&format!("mul.lo.u32 %x2, %x0, {bytes}"));
        self.line(&format!("mad.lo.u32 %x2, %x1, {thread}, %x2"));
        self.line("cvt.u64.u32 %y1, %x2");
        self.line("add.s64 %y0, %y0, %y1");
    }

    /// Loads registers as they are: the first of all threads, then the second.
    fn load(&mut self, name: &str, count: usize, (bits, threads): (usize, usize)) {
        self.declare(name, count, bits);
        self.address(name, count * threads * bits / 8, bits / 8);
        for i in 0..count {
            self.line(&format!("ld.global.b{bits} %{name}{i}, [%y0+{}]", i * threads * bits / 8));
        }
    }

    /// Stores registers as they are.
    fn store(&mut self, name: &str, count: usize, (bits, threads): (usize, usize)) {
        self.address("d", count * threads * bits / 8, bits / 8);
        for i in 0..count {
            self.line(&format!("st.global.b{bits} [%y0+{}], %{name}{i}", i * threads * bits / 8));
        }
    }

    /// The factors of `wgmma` in shared memory, `a` perhaps in registers, and their descriptors in `%y2` and `%y3`.
    fn place(&mut self, held: bool) {
        self.line("mov.u32 %x3, image");
        if held {
            self.load("a", 4, (32, 128));
        } else {
            self.declare("a", 4, 32);
            self.address("a", 2048, 16);
            self.line(&format!("ld.global.v4.b32 {}, [%y0]", list("a", 4)));
            self.line("mad.lo.u32 %x4, %x1, 16, %x3");
            self.line(&format!("st.shared.v4.b32 [%x4], {}", list("a", 4)));
        }
        self.declare("b", 1, 32);
        self.address("b", 256, 2);
        self.line("ld.global.b16 %b0, [%y0]");
        self.line("mad.lo.u32 %x4, %x1, 2, %x3");
        self.line("st.shared.b16 [%x4+2048], %b0");
        self.line("fence.proxy.async.shared::cta");
        self.line("bar.sync 0");
        // Matrices of 8 by 16 bytes: 128 bytes to the next along k, 256 to the next across.
        self.line("shr.u32 %x3, %x3, 4");
        self.line("cvt.u64.u32 %y2, %x3");
        self.line(&format!("add.s64 %y2, %y2, {}", 16u64 << 32 | 8 << 16));
        self.line("add.s64 %y3, %y2, 128");
        self.line("setp.eq.u32 %p0, %x0, %x0");
    }

    fn end(mut self) -> String {
        self.0.push_str("ret;\n}\n");
        self.0
    }
}

impl Kernel {
    /// None for lines of other kinds: layouts, fragments, rows, and what lies in units below a byte in memory.
    pub fn new(name: &'static str) -> Option<Self> {
        if name.contains("fragments") {
            return None;
        }
        match name.split_once('.')? {
            ("wmma", _) => Self::wide(name),
            ("wgmma", rest) => Self::group(name, rest),
            ("sp", rest) => Some(Self::mma(name, rest, true)),
            (shape, _) if shape.starts_with('m') => Some(Self::mma(name, name, false)),
            _ => None,
        }
    }

    /// Registers are loaded as they are, whatever element each holds.
    fn mma(name: &'static str, text: &str, sparse: bool) -> Self {
        let types = types(name);
        let [m, n, k] = shape(name).unwrap();
        let [d, a, b, c] = types[..4] else { panic!("{name}") };
        // The four multiplications of Volta.
        let times = if (m, k, a) == (8, 4, "f16") { 4 } else { 1 };
        let wide = if d == "f64" { 64 } else { 32 };
        let registers = |elements: usize, name: &str| times * elements * bits(name) / 32 / wide;
        let packed = if sparse { k / 2 } else { k };
        let counts =
            [registers(m * n, d), registers(m * packed, a), registers(k * n, b), registers(m * n, c)];
        let mut kernel = Text::new(32);
        for (name, count) in ["a", "b", "c"].into_iter().zip(&counts[1..]) {
            kernel.load(name, *count, (wide, 32));
        }
        kernel.declare("d", counts[0], wide);
        let lists = ["d", "a", "b", "c"].iter().zip(counts).map(|(name, count)| list(name, count));
        let lists = lists.collect::<Vec<_>>().join(", ");
        if sparse {
            kernel.load("e", 1, (32, 32));
            let (text, selector) = text.rsplit_once('.').unwrap();
            kernel.line(&format!("mma.sp::ordered_metadata.sync.aligned.{text} {lists}, %e0, {selector}"));
        } else {
            kernel.line(&format!("mma.sync.aligned.{text} {lists}"));
        }
        kernel.store("d", counts[0], (wide, 32));
        let input = |format, count, sum| Input { format, bytes: count * 32 * wide / 8, sum };
        let mut inputs =
            vec![input(a, counts[1], false), input(b, counts[2], false), input(c, counts[3], true)];
        if sparse {
            let format = if a == "tf32" { "metadata32" } else { "metadata" };
            inputs.push(Input { format, bytes: 128, sum: false });
        }
        Self { text: kernel.end(), inputs, result: counts[0] * 32 * wide / 8, threads: 32 }
    }

    /// `mma.m16n8k32` of numbers of 8 bits with f16 results, as nvcc 13.5 makes it for sm_90: the lower and the upper two elements of
    /// each register are widened, multiplied one after the other, from zero on, and added.
    pub fn widened(name: &'static str) -> Self {
        let whole = Self::mma(name, name, false);
        let a = types(name)[1];
        let mut kernel = Text::new(32);
        for (name, count) in [("a", 4), ("b", 2), ("c", 2)] {
            kernel.load(name, count, (32, 32));
        }
        kernel.declare("d", 2, 32);
        kernel.declare("w", 6, 32);
        kernel.line(".reg .b16 %h<2>");
        kernel.line("mov.b32 %d0, 0");
        kernel.line("mov.b32 %d1, 0");
        for half in 0..2 {
            for (i, from) in ["a0", "a1", "a2", "a3", "b0", "b1"].iter().enumerate() {
                kernel.line(&format!("mov.b32 {{%h0,%h1}}, %{from}"));
                kernel.line(&format!("cvt.rn.f16x2.{a}x2 %w{i}, %h{half}"));
            }
            let factors = "{%w0,%w1,%w2,%w3}, {%w4,%w5}";
            let sum = list("d", 2);
            kernel
                .line(&format!("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {sum}, {factors}, {sum}"));
        }
        for i in 0..2 {
            kernel.line(&format!("add.rn.f16x2 %d{i}, %d{i}, %c{i}"));
        }
        kernel.store("d", 2, (32, 32));
        Self { text: kernel.end(), ..whole }
    }

    /// Matrices in memory, one after the other.
    fn wide(name: &'static str) -> Option<Self> {
        let [m, n, k] = shape(name)?;
        let [d, a, b] = types(name)[..] else { return None };
        if bits(a) < 8 {
            return None;
        }
        let words: Vec<&str> = name.split('.').collect();
        let layouts = [words[2], words[3], words[4]];
        let per = |name: &str| (32 / bits(name)).max(1);
        let held = |elements: usize, name: &str| {
            if name == "f16" { 8 } else { elements / 32 / per(name) }
        };
        let sums = m * n / 32 / per(d);
        let wide = if d == "f64" { 64 } else { 32 };
        let mut kernel = Text::new(32);
        let lines = |layout: &str, [rows, columns]: [usize; 2]| if layout == "row" { columns } else { rows };
        for (matrix, count, ty, layout, size) in [
            ("a", held(m * k, a), a, layouts[0], [m, k]),
            ("b", held(k * n, b), b, layouts[1], [k, n]),
            ("c", sums, d, layouts[2], [m, n]),
        ] {
            kernel.declare(matrix, count, wide);
            kernel.address(matrix, size[0] * size[1] * bits(ty) / 8, 0);
            kernel.line(&format!(
                "wmma.load.{matrix}.sync.aligned.{layout}.{}.global.{ty} {}, [%y0], {}",
                words[1],
                list(matrix, count),
                lines(layout, size)
            ));
        }
        kernel.declare("d", sums, wide);
        let lists = [list("d", sums), list("a", held(m * k, a)), list("b", held(k * n, b)), list("c", sums)];
        let types = if a == "f16" { format!("{d}.{d}") } else { format!("{d}.{a}.{b}.{d}") };
        let end = if name.ends_with("satfinite") { ".satfinite" } else { "" };
        let [first, second, last] = layouts;
        let instruction = format!("wmma.mma.sync.aligned.{first}.{second}.{}.{types}{end}", words[1]);
        kernel.line(&format!("{instruction} {}", lists.join(", ")));
        let result = m * n * bits(d) / 8;
        kernel.address("d", result, 0);
        kernel.line(&format!(
            "wmma.store.d.sync.aligned.{last}.{}.global.{d} [%y0], {}, {}",
            words[1],
            lists[0],
            lines(last, [m, n])
        ));
        let input = |format, elements: usize, sum| Input { format, bytes: elements * bits(format) / 8, sum };
        let inputs = vec![input(a, m * k, false), input(b, k * n, false), input(d, m * n, true)];
        Some(Self { text: kernel.end(), inputs, result, threads: 32 })
    }

    /// Factors side by side along `k`, eight columns; `a` also in registers.
    fn group(name: &'static str, rest: &str) -> Option<Self> {
        let [d, a, b] = types(name)[..] else { return None };
        let held = rest.ends_with(".registers");
        let plain = rest.trim_end_matches(".registers");
        let words = plain.split('.').count();
        if words > if plain.ends_with("satfinite") { 5 } else { 4 } || !plain.starts_with("m64n8k") {
            return None;
        }
        let (sums, threads) = (512 * bits(d) / 32 / 128, (32, 128));
        let mut kernel = Text::new(128);
        kernel.load("c", sums, threads);
        kernel.place(held);
        let of_a = if held { list("a", 4) } else { "%y2".to_owned() };
        let integer = d == "s32";
        let turned = if bits(a) != 16 {
            ""
        } else if held {
            ", 0"
        } else {
            ", 0, 0"
        };
        let signs = if integer { "" } else { ", 1, 1" };
        kernel.line("wgmma.fence.sync.aligned");
        let instruction = format!("wgmma.mma_async.sync.aligned.{plain}");
        kernel.line(&format!("{instruction} {}, {of_a}, %y3, %p0{signs}{turned}", list("c", sums)));
        kernel.line("wgmma.commit_group.sync.aligned");
        kernel.line("wgmma.wait_group.sync.aligned 0");
        kernel.store("c", sums, threads);
        let input = |format, bytes, sum| Input { format, bytes, sum };
        let inputs = vec![input(a, 2048, false), input(b, 256, false), input(d, sums * 512, true)];
        Some(Self { text: kernel.end(), inputs, result: sums * 512, threads: 128 })
    }
}
