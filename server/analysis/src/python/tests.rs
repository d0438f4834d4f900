mod history;
mod sources;

use stitch_findings::Code;

use super::reader::{Read, Reader};
use super::unit::UnitRole;
use crate::Workspace;

fn read(source: &str) -> Read {
    Reader::new().update(&source.into(), &Workspace::default(), &|| true).unwrap()
}

fn texts(source: &str) -> Vec<(UnitRole, String, String)> {
    let units = read(source).units.into_iter();
    units.map(|unit| (unit.role, unit.name.clone(), unit.text.to_string())).collect()
}

/// The text of the only unit.
fn text(source: &str) -> String {
    let mut all = texts(source);
    assert_eq!(all.len(), 1, "{source}\n{all:?}");
    all.remove(0).2
}

fn marked(source: &str, code: Code) -> Vec<String> {
    let findings = read(source).findings;
    let own = findings.into_iter().filter(|finding| finding.code == code);
    own.map(|finding| source[finding.span.range()].to_owned()).collect()
}

const LOAD: &str = "from torch.utils.cpp_extension import load_inline\n";

#[test]
fn functions_have_their_names_parameters_and_places() {
    let source = "@jit\ndef f(a, b: int = 3, *args, c=(1, 2), **kw):\n    def g(): pass\n    return g\n\nclass A:\n    class B:\n        \
                  async def m(self, x): ...\n    def n(self): pass\n";
    let outline = read(source).outline;
    let shown: Vec<_> = outline
        .functions
        .iter()
        .map(|f| (f.qualified_name.as_str(), &source[f.span.range()][..4], &source[f.name_span.range()]))
        .collect();
    assert_eq!(
        shown,
        [("f", "@jit", "f"), ("f.g", "def ", "g"), ("A.B.m", "asyn", "m"), ("A.n", "def ", "n")]
    );
    let parameters: Vec<_> =
        outline.functions[0].parameters.iter().map(|p| (p.name.as_str(), p.ty.as_str())).collect();
    assert_eq!(parameters, [("a", ""), ("b", "int"), ("args", ""), ("c", ""), ("kw", "")]);
    assert!(outline.modules.is_empty());
}

#[test]
fn modules_are_found_however_they_are_imported() {
    for (imports, base, module) in [
        ("import torch.nn as nn", "nn.Module", true),
        ("from torch.nn import Module", "Module", true),
        ("from torch.nn import Module as M", "M", true),
        ("import torch", "torch.nn.Module", true),
        ("from torch import nn", "nn.Sequential", true),
        ("from torch import nn", "nn.Parameter", false),
        ("from torch.nn import *", "Module", true),
        ("Module = nn.Module", "Module", true),
        ("import torch.nn as nn", "Mixin, nn.Module, metaclass=M", true),
        ("import torch.nn as nn", "Base[T], nn.Module", true),
        ("", "nn.Module", true),
        ("from mine import Module", "Module", false),
        ("from torch.utils.data import Dataset", "Dataset", false),
        ("import pytorch_lightning as pl", "pl.LightningModule", true),
        ("", "object", false),
    ] {
        let source = format!("{imports}\nclass A({base}):\n    pass\n");
        assert_eq!(read(&source).outline.modules.len(), usize::from(module), "{source}");
    }
    let source = "from torch import nn\nclass C(B): pass\nclass B(A): pass\nclass A(nn.Module): pass\nclass X(Y): pass\nclass Y(X): pass\n\
                  class Outer:\n    class Inner(nn.Module):\n        def forward(self, x): pass\ndef f():\n    class Local(A):\n        \
                  def g(self, a, *b): pass\n    return Local\n";
    let outline = read(source).outline;
    let shown: Vec<_> = outline.modules.iter().map(|m| (m.name.as_str(), m.methods.len())).collect();
    assert_eq!(shown, [("C", 0), ("B", 0), ("A", 0), ("Inner", 1), ("Local", 1)]);
    assert_eq!(outline.modules[4].methods[0].parameters, ["a", "*b"]);
    assert!(source[outline.modules[3].span.range()].ends_with("def forward(self, x): pass"));
}

#[test]
fn the_parts_of_a_module_are_what_its_constructor_makes() {
    let source = "import torch, torch.nn as nn\nclass Net(nn.Module):\n    '''doc'''\n    def __init__(self, n, flag=True):\n        super().__init__()\n        \
                  self.n: int = n\n        self.a = self.b = nn.Linear(n, 2 * n)\n        self.c, self.d = nn.ReLU(), F.gelu\n        if flag:\n            \
                  self.seq = nn.Sequential(\n                nn.Conv2d(1, 2, 3),\n            ).to(0)\n        self.register_buffer('mask', torch.ones(n))\n        \
                  self.register_parameter(\"w\", None)\n        self.scale = n ** -0.5\n        self.p = nn.Parameter(torch.zeros(3))\n        \
                  other.x = 1\n    def forward(self, x, y=None):\n        self.late = 1\n        return x\n";
    let outline = read(source).outline;
    let module = &outline.modules[0];
    let parts: Vec<_> = module.parts.iter().map(|part| (part.name.as_str(), part.ty.as_str())).collect();
    assert_eq!(
        parts,
        [
            ("n", "n"),
            ("a", "nn.Linear"),
            ("b", "nn.Linear"),
            ("c", "nn.ReLU"),
            ("d", "F.gelu"),
            ("seq", "nn.Sequential"),
            ("mask", "register_buffer"),
            ("w", "register_parameter"),
            ("scale", "n ** -0.5"),
            ("p", "nn.Parameter"),
        ]
    );
    assert_eq!(module.methods[1].parameters, ["x", "y=None"]);
    assert!(source[module.span.range()].ends_with("return x"));
    assert_eq!(&source[module.parts[1].span.range()], "self.a = self.b = nn.Linear(n, 2 * n)");
}

#[test]
fn a_long_function_reads_as_a_short_one() {
    let body = |pad: &str| {
        format!(
            "import torch, torch.nn as nn\n{LOAD}class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        {pad}\n        \
             self.a = nn.Linear(n, n)\n        s = 'a'\n        if n:\n            self.b = load_inline('m', '', s)\n        self.register_buffer('c', n)\n\n    \
             def forward(self, x):\n        m = torch.ones(3)\n        {pad}\n        for y in x:\n            y.item()\n        def inner(z):\n            \
             return z\n        return m.to(x.device)\n"
        )
    };
    let (short, long) = (read(&body("pass")), read(&body(&format!("'{}'", "x".repeat(5000)))));
    let shown = |read: &Read| {
        let functions: Vec<_> = read.outline.functions.iter().map(|f| f.qualified_name.clone()).collect();
        let modules: Vec<_> = read
            .outline
            .modules
            .iter()
            .map(|m| (m.parts.iter().map(|p| p.name.clone()).collect::<Vec<_>>(), m.methods.len()))
            .collect();
        let findings: Vec<_> =
            read.findings.iter().map(|f| (f.code, f.subject.clone(), f.related.len())).collect();
        (functions, modules, findings, read.units.iter().map(|u| u.text.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(shown(&short), shown(&long));
    assert_eq!(shown(&long).0, ["Net.__init__", "Net.forward", "Net.forward.inner"]);
    assert_eq!((shown(&long).1[0].0.len(), shown(&long).2.len(), shown(&long).3.len()), (3, 2, 1));
    let source = body(&format!("'{}'", "x".repeat(5000)));
    let forward = &long.outline.functions[1];
    assert!(source[forward.span.range()].ends_with("return m.to(x.device)"));
    assert!(source[forward.body.unwrap().range()].trim_start().starts_with("m = torch.ones(3)"));
    assert_eq!(long.outline.modules[0].methods[1].span, forward.span);
}

#[test]
fn texts_are_found_by_every_way_that_compiles_them() {
    use UnitRole::*;
    for (source, expected) in [
        (
            "from torch.utils.cpp_extension import load_inline\nload_inline('m', 'a', 'b', ['f'])",
            vec![(CppSource, "a"), (CudaSource, "b")],
        ),
        (
            "import torch\ntorch.utils.cpp_extension.load_inline(name='m', cuda_sources=['a', 'b'], cpp_sources='')",
            vec![(CudaSource, "a"), (CudaSource, "b")],
        ),
        (
            "from torch.utils import cpp_extension as e\ne.load_inline('m', cpp_sources=(), cuda_sources=S)\nS = ('a', T)\nT = 'b'",
            vec![(CudaSource, "a"), (CudaSource, "b")],
        ),
        ("import cupy as cp\ncp.RawKernel(r'a', 'f')", vec![(RawKernel, "a")]),
        ("from cupy import RawModule\nRawModule(code='a', options=('-O3',))", vec![(RawModule, "a")]),
        ("from pycuda.compiler import SourceModule\nSourceModule('a')", vec![(SourceModule, "a")]),
        ("import pycuda.compiler\nmod = pycuda.compiler.SourceModule(source='a')", vec![(SourceModule, "a")]),
        (
            "from cuda.bindings import nvrtc\nnvrtc.nvrtcCreateProgram(str.encode(S), b'x.cu', 0, [], [])\nS = 'a'",
            vec![(Nvrtc, "a")],
        ),
        ("from cuda import nvrtc\nnvrtc.nvrtcCreateProgram(b'a', b'x', 0, [], [])", vec![(Nvrtc, "a")]),
        ("from cuda.core.experimental import Program\nProgram('a', code_type='c++')", vec![(Nvrtc, "a")]),
        ("from pynvrtc.compiler import Program\nProgram('a'.encode('utf-8'), 'x.cu')", vec![(Nvrtc, "a")]),
        ("import torch\ntorch.cuda._compile_kernel('a', 'f')", vec![(Nvrtc, "a")]),
        ("from mine import Program\nProgram('a')", vec![]),
        ("print('__global__ is a word')", vec![]),
    ] {
        let found: Vec<_> = texts(source).into_iter().map(|(role, _, text)| (role, text)).collect();
        let expected: Vec<_> = expected.into_iter().map(|(role, text)| (role, text.to_owned())).collect();
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn texts_are_followed_through_names_and_operations() {
    let load = |rest: &str| format!("{LOAD}import textwrap\nfrom textwrap import dedent\n{rest}\n");
    for (rest, expected) in [
        ("S = 'a'\ndef f():\n    load_inline('m', '', S)", "a"),
        ("def f():\n    s = 'a' 'b'\n    t = s\n    return load_inline('m', '', t)", "ab"),
        ("class A:\n    S = 'a'\n    def f(self):\n        load_inline('m', '', self.S)", "a"),
        ("class A:\n    S = 'a'\n    def f(self):\n        load_inline('m', '', A.S)", "a"),
        (
            "class A:\n    def __init__(self):\n        self.s = 'a'\n    def f(self):\n        load_inline('m', '', self.s)",
            "a",
        ),
        ("H = 'h\\n'\nload_inline('m', '', H + 'a' + \"b\")", "h\nab"),
        ("load_inline('m', '', ('a'\n  # about b\n  r'\\b'))", "a\\b"),
        ("load_inline('m', '', '\\n a \\n'.strip())", "a"),
        ("load_inline('m', '', textwrap.dedent('''\\\n    a\n      b\n'''))", "a\n  b\n"),
        ("load_inline('m', '', dedent('  a').replace('a', 'x' 'y'))", "xy"),
        ("load_inline('m', '', '%s x[%d]; %% %s' % ('float', 4, n))", "float x[4]; % stitch_unknown"),
        ("load_inline('m', '', '{t} x[{0}] {{}}'.format(4, t='int'))", "int x[4] {}"),
        ("N = 32\nload_inline('m', '', f'int x[{N}][{m}]; {{}}')", "int x[32][stitch_unknown]; {}"),
        ("s = 'a'\ns += 'b'\ns = s.strip() + 'c'\nload_inline('m', '', s)", "abc"),
        ("load_inline('m', '', '\\n'.join(['a', 'b']))", "a\nb"),
        ("def make():\n    return 'a'\nload_inline('m', '', make())", "a"),
        (
            "def build(n, src):\n    return load_inline(n, '', 'h\\n' + src)\nSRC = 'a'\nbuild('m', SRC)",
            "h\na",
        ),
        (
            "class K:\n    def __init__(self, code, n=1):\n        self.c = code.strip()\n    def b(self):\n        load_inline('m', '', self.c)\nK(code='__global__ ')",
            "__global__",
        ),
        ("def f(src):\n    f(src)\n    load_inline('m', '', src)\nf(KERNEL)\nKERNEL = 'k'", "k"),
        ("S = read()\nload_inline('m', '', 'a\\n' + S)", "a\n"),
        ("load_inline('m', '', '#define N ' + str(n) + '\\n' + 'b')", "#define N stitch_unknown\nb"),
        (
            "from string import Template\nT = Template('$t x[${n}]; // $other')\nload_inline('m', '', T.substitute(t='int', n=4))",
            "int x[4]; // stitch_unknown",
        ),
        ("a = b\nb = a\nload_inline('m', a, 'x')", "x"),
    ] {
        assert_eq!(text(&load(rest)), expected, "{rest}");
    }
    let two =
        load("if x:\n    s = 'a'\nelse:\n    s = 'b'\nload_inline('m', '', s)\nload_inline('n', '', s)");
    assert_eq!(texts(&two).len(), 2, "each of two values once");
}

#[test]
fn a_unit_knows_its_name_options_holes_and_place() {
    let source = format!(
        "{LOAD}SRC = f'''__global__ void k_{{name}}() {{{{ }}}}'''\nFLAGS = ['-O3', '--use_fast_math']\n\
                          m = load_inline(name='mod', cpp_sources='void f();', cuda_sources=SRC, extra_cuda_cflags=FLAGS)\n"
    );
    let read = read(&source);
    let shown: Vec<_> =
        read.units.iter().map(|unit| (unit.name.as_str(), &source[unit.span.range()])).collect();
    assert_eq!(shown, [("SRC", "f'''__global__ void k_{name}() {{ }}'''"), ("mod", "'void f();'")]);
    let unit = &read.units[0];
    assert_eq!(unit.options, ["-O3", "--use_fast_math"]);
    assert_eq!(unit.holes.iter().map(|hole| &source[hole.range()]).collect::<Vec<_>>(), ["{name}"]);
    assert!(!unit.needs_torch);
    assert_eq!(&source[unit.to_file(unit.text.find("void").unwrap())..][..4], "void");
    assert_eq!(unit.to_text(0), None);
}

#[test]
fn a_text_given_to_nothing_is_read_only_if_it_is_a_kernel() {
    let kernel =
        "__global__ void k(float* x, int n) {\\n  int i = threadIdx.x;\\n  if (i < n) x[i] = 0;\\n}\\n";
    assert_eq!(texts(&format!("code = '{kernel}'")).len(), 1);
    assert_eq!(
        texts(&format!("check('// adds one to each of the many things here\\n{kernel}'.strip())")).len(),
        1
    );
    for prompt in [
        format!("p = 'You are an expert who writes kernels such as\\n{kernel}'"),
        format!("p = 'Look:\\n```cuda\\n{kernel}```'"),
        format!("p = 'import torch\\nsrc = 1\\n{kernel}'"),
        "p = r'__global__\\s+void\\s+(\\w+)'".to_owned(),
        "p = '__global__'".to_owned(),
        "p = '__global__ void ${name}() {}'".to_owned(),
        format!("def f():\n    '''{}'''", "Runs inside one `__global__` launch.".repeat(3)),
    ] {
        assert_eq!(texts(&prompt), [], "{prompt}");
    }
}

#[test]
fn what_a_unit_holds_is_shown_in_the_file() {
    for end in ["\n", "\r\n"] {
        let source = format!(
            "{LOAD}# é😀\nclass A:\n    SRC = \"\"\"\n__global__ void add(float* x,\\\n int n) {{\n  // 😀 \\t é\n  x[threadIdx.x] = 1.0;\n}}\n\
             void go(float* x) {{ add<<<1, 32>>>(x, 3); }}\n\"\"\"\n    m = load_inline('m', '', SRC)\n"
        )
        .replace('\n', end);
        let read = read(&source);
        let own: Vec<_> = read.outline.functions.iter().filter(|f| f.unit == Some(0)).collect();
        let names: Vec<_> = own.iter().map(|f| &source[f.name_span.range()]).collect();
        assert_eq!(names, ["add", "go"]);
        assert!(
            source[own[0].span.range()].starts_with("__global__ void add")
                && source[own[0].span.range()].ends_with('}')
        );
        assert_eq!(
            own[0].parameters.iter().map(|p| &source[p.span.range()]).collect::<Vec<_>>(),
            ["float* x", "int n"]
        );
        let launch = &read.outline.launches[0];
        assert_eq!(&source[launch.span.range()], "add<<<1, 32>>>(x, 3)");
        assert_eq!(&source[launch.grid.as_ref().unwrap().span.range()], "1");
        assert_eq!(launch.unit, Some(0));
    }
}

#[test]
fn item_in_a_loop_waits_each_time() {
    let code = Code::ITEM_IN_LOOP;
    let train = "import torch\ndef train(model, loader):\n    for x, y in loader:\n        loss = model(x)\n        total += loss.item()\n";
    assert_eq!(marked(train, code), ["loss.item()"]);
    let found = |body: &str| marked(&format!("import torch\nimport numpy as np\n{body}"), code).len();
    for (body, expected) in [
        ("while err.item() > 1:\n    step()", 1),
        ("x = [t.item() for t in losses]", 1),
        ("x = {k: v.item() for k, v in metrics.items()}", 1),
        ("for x in y:\n    a = (p == x).sum().item() / 3", 1),
        ("for x in y.item():\n    pass", 0),
        ("a = [x for x in range(n.item())]", 0),
        ("a = [[x for x in range(n.item())] for n in ns]", 1),
        ("for k, v in d.items():\n    pass", 0),
        ("loss.item()", 0),
        ("for x in y:\n    def f():\n        return x.item()", 0),
        ("for x in y:\n    f = lambda: x.item()", 0),
        ("for i in y:\n    if i % 100 == 0:\n        print(loss.item())", 0),
        ("for i in y:\n    if i > 3:\n        best = loss.item()\n        break", 0),
        ("for i in y:\n    if i:\n        return loss.item()", 0),
        ("for i in y:\n    pass\nelse:\n    loss.item()", 0),
        ("for i in y:\n    a = np.mean(i).item()", 0),
        ("for i in y:\n    m = np.mean(i)\n    a = m.item()", 0),
        ("for i in y:\n    m = i.cpu().numpy()\n    a = m[0].item()", 0),
        ("m = y.cpu()\nfor i in y:\n    a = m[i].item()", 0),
        ("for i in y:\n    a = i.cpu().sum().item()", 0),
        ("for i in y:\n    a = i.cpu().to(device).item()", 1),
        ("rates = [x.item() for x in torch.linspace(0, r, depth)]", 0),
        ("rates = [x.item() for x in torch.linspace(0, r, depth, device='cpu')]", 0),
        ("for i in y:\n    j = torch.randint(0, 9, (1,)).item()", 0),
        ("for i in y:\n    j = torch.randint(0, 9, (1,), device=d).item()", 1),
        ("def test_x():\n    for i in y:\n        i.item()", 0),
        ("import pytest\nfor i in y:\n    i.item()", 0),
        ("for i in y:\n    i.item(3)", 0),
        ("for i in y:\n    torch.cuda.synchronize()\n    i.item()", 0),
        ("torch.cuda.synchronize()\nfor i in y:\n    i.item()", 1),
        ("for i in y:\n    if args.DEBUG:\n        print(i.item())", 0),
        ("for i in y:\n    print((i - j).abs().max().item())", 0),
        ("def attention_reference(y):\n    for i in y:\n        i.item()", 0),
        ("def f(y):\n    for i in y:\n        self.optimizer.state[i]['step'].item()", 0),
    ] {
        assert_eq!(found(body), expected, "{body}");
    }
    assert_eq!(marked("for x in y:\n    x.item()", code).len(), 0, "no torch");
}

#[test]
fn a_tensor_made_on_the_cpu_and_moved() {
    let code = Code::CPU_TENSOR_MOVED;
    assert_eq!(
        marked("import torch\nx = torch.rand(3, 4).half().cuda()\n", code),
        ["torch.rand(3, 4).half().cuda()"]
    );
    let found = |body: &str| marked(&format!("import torch\nfrom torch import zeros\n{body}"), code).len();
    for (body, expected) in [
        ("torch.zeros(3).to('cuda')", 1),
        ("torch.zeros(3).to(\"cuda:1\", torch.float16)", 1),
        ("torch.zeros(3).to(device)", 1),
        ("torch.zeros(3).to(x.device)", 1),
        ("torch.zeros(3).to(states['a'].device)", 1),
        ("torch.zeros(3).to(dtype=t, device=self.device)", 1),
        ("torch.zeros(3).to(torch.device('cuda'))", 1),
        ("torch.zeros(3).to(0).to(dtype)", 1),
        ("torch.zeros(3).cuda().to(device)", 1),
        ("zeros(3).cuda(non_blocking=True)", 1),
        // Its data are on the CPU, wherever it is made.
        ("torch.tensor([1, 2]).cuda()", 0),
        ("torch.scalar_tensor(1).to(device)", 0),
        ("import pytest\ntorch.zeros(3).cuda()", 0),
        ("def _test_sum():\n    pass\ndef data():\n    return torch.zeros(3).cuda()", 0),
        ("def torch_test():\n    pass\ndef data():\n    return torch.zeros(3).cuda()", 0),
        ("def benchmark():\n    return torch.zeros(3).cuda()", 0),
        ("torch.arange(3)[None].to(device)", 1),
        ("torch.zeros(3).to(torch.float16)", 0),
        ("torch.zeros(3).to('cpu')", 0),
        ("torch.zeros(3).to(cpu_device)", 0),
        ("torch.zeros(3).to(dtype)", 0),
        ("torch.zeros(3).to(dtype=device_type)", 0),
        ("torch.zeros(3).to(other)", 0),
        ("torch.zeros(3, device=d).to('cuda')", 0),
        ("torch.zeros(3, **options).cuda()", 0),
        ("torch.randn(3, generator=g).cuda()", 0),
        ("torch.zeros(3).pin_memory().cuda()", 0),
        ("torch.from_numpy(a).cuda()", 0),
        ("torch.load(p).to(device)", 0),
        ("torch.zeros_like(x).cuda()", 0),
        ("model.cuda()", 0),
        ("np.zeros(3).cuda()", 0),
        ("nn.Parameter(torch.zeros(3)).cuda()", 0),
        ("torch.set_default_device('cuda')\ntorch.zeros(3).to(device)", 0),
        ("with torch.device('cuda'):\n    torch.zeros(3).to(device)", 0),
        ("def forward(self, x):\n    m = torch.ones(3)\n    m = m.to(x.device)\n    return m", 1),
        ("def forward(self, x):\n    m = torch.ones(3, device=x.device)\n    return m.to(x.device)", 0),
        ("def forward(self, x):\n    m = torch.ones(3)\n    m = f(m)\n    return m.to(x.device)", 0),
        ("def helper(x):\n    m = torch.ones(3)\n    return m.to(x.device)", 0),
        ("def helper(x):\n    m = torch.ones(3)\n    m[0] = x.size(0)\n    m = m.to(x.device)", 0),
        ("def helper():\n    m = torch.zeros(3)\n    # a comment\n    m = m.cuda()", 1),
        ("m = torch.zeros(3)\nm = m.cuda()", 0),
        ("def check(y):\n    ref_out = y\n    return torch.zeros(3).cuda()", 0),
        ("m = torch.zeros(3)\nother = other.cuda()", 0),
        ("def forward(self, x):\n    return torch.ones(3).to(x)", 1),
        ("def forward(self, x, dtype):\n    return torch.ones(3).to(dtype)", 0),
        ("def forward(self, x: torch.dtype):\n    return torch.ones(3).to(x)", 0),
        ("def helper(x):\n    return torch.ones(3).to(x)", 0),
        ("device = torch.device('cpu')\ntorch.zeros(3).to(device)", 0),
        ("device = 'cpu'\ntorch.zeros(3).to(device)", 0),
        ("device = torch.device('cuda' if c else 'cpu')\ntorch.zeros(3).to(device)", 1),
    ] {
        assert_eq!(found(body), expected, "{body}");
    }
}
