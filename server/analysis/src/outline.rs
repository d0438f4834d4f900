//! What a source file is made of, as far as GPU code is concerned: kernels, launches, device functions, modules.
//!
//! Plain data, in the file's own byte offsets, made anew for each version of a text. Everything that other rooms ask of a
//! source file is answered from here, so that none of them walks a syntax tree.

use serde::Serialize;
use stitch_findings::Span;

/// Where a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionKind {
    /// `__global__`: launched from the host, runs on the device.
    Kernel,
    /// `__device__`.
    Device,
    /// `__host__ __device__`.
    HostDevice,
    /// Everything else; in Python, every function.
    Host,
}

/// A function or kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Its name without scopes and template arguments: `gemm`.
    pub name: String,
    /// With its namespaces and classes: `detail::gemm`.
    pub qualified_name: String,
    /// Where it runs.
    pub kind: FunctionKind,
    /// Whether a body follows.
    pub is_definition: bool,
    /// Its template parameters, outermost first; empty for an ordinary function.
    pub template_parameters: Vec<TemplateParameter>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// `__launch_bounds__`, if it has any.
    pub launch_bounds: Option<LaunchBounds>,
    /// All of it: from `template` or the first specifier to the closing brace or semicolon.
    pub span: Span,
    /// Its name.
    pub name_span: Span,
    /// Its body, braces included.
    pub body: Option<Span>,
    /// For a function found inside an embedded unit of a Python file: the unit's index.
    pub unit: Option<usize>,
}

/// One template parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TemplateParameter {
    /// Its name; empty where it has none.
    pub name: String,
    /// `typename`, `int`, … as written.
    pub kind: String,
    /// Its default, as written.
    pub default: Option<String>,
}

/// One parameter of a function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Its name; empty where it has none.
    pub name: String,
    /// Its type as written, `const` and `__restrict__` included: `const float* __restrict__`.
    pub ty: String,
    /// All of it.
    pub span: Span,
}

/// `__launch_bounds__(max_threads, min_blocks, max_cluster)`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaunchBounds {
    /// Most threads a block.
    pub max_threads: Expression,
    /// Fewest blocks that should fit on a multiprocessor.
    pub min_blocks: Option<Expression>,
    /// Most blocks a cluster.
    pub max_cluster: Option<Expression>,
}

/// An expression of the source, with its value where it is a constant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expression {
    /// As written.
    pub text: String,
    /// Where.
    pub span: Span,
    /// Its value, folded through literals, `constexpr`, `#define` and template defaults: one value a dimension
    /// (`x`, `y`, `z`; missing ones are 1). `None` where it is not known.
    pub value: Option<[i64; 3]>,
}

/// `kernel<<<grid, block, shared, stream>>>(arguments)`, or the same through `cudaLaunchKernel` and its kin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Launch {
    /// The kernel's name without scopes and template arguments.
    pub kernel: String,
    /// Its template arguments as written; empty for none.
    pub template_arguments: Vec<String>,
    /// The grid.
    pub grid: Option<Expression>,
    /// The block.
    pub block: Option<Expression>,
    /// Dynamic shared memory, in bytes.
    pub shared: Option<Expression>,
    /// The stream.
    pub stream: Option<Expression>,
    /// The arguments as written.
    pub arguments: Vec<String>,
    /// What is known of each argument, where the launch is inside a function.
    #[serde(skip)]
    pub argument_facts: Vec<ArgumentFacts>,
    /// All of it, without the semicolon.
    pub span: Span,
    /// The kernel's name in it.
    pub name_span: Span,
    /// The function that launches, if it is inside one.
    pub caller: Option<String>,
    /// For a launch found inside an embedded unit of a Python file: the unit's index.
    pub unit: Option<usize>,
}

/// What is known of one argument of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArgumentFacts {
    /// Its value, for an integer that is constant there.
    pub value: Option<i64>,
    /// For a pointer that the same function allocates: the bytes of the allocation, where they are constant.
    pub bytes: Option<i64>,
}

/// A class derived from `torch.nn.Module`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its base classes as written.
    pub bases: Vec<String>,
    /// All of it.
    pub span: Span,
    /// Its name.
    pub name_span: Span,
    /// What `__init__` assigns to `self`: layers, parameters, buffers.
    pub parts: Vec<ModulePart>,
    /// Its methods.
    pub methods: Vec<Method>,
}

/// Something a module owns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModulePart {
    /// The attribute.
    pub name: String,
    /// What it is made by: `nn.Linear`, `nn.Parameter`, `register_buffer`, or the expression's own text.
    pub ty: String,
    /// The assignment.
    pub span: Span,
}

/// A method of a module.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Its parameters without `self`, as written.
    pub parameters: Vec<String>,
    /// All of it.
    pub span: Span,
    /// Its name.
    pub name_span: Span,
}

/// What a source file is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outline {
    /// Functions and kernels in the order of the text, declarations and definitions.
    pub functions: Vec<Function>,
    /// Launches in the order of the text.
    pub launches: Vec<Launch>,
    /// Modules, in Python.
    pub modules: Vec<Module>,
}

impl Outline {
    /// The kernels that are defined here.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.kind == FunctionKind::Kernel && f.is_definition)
    }

    /// The innermost function definition around `offset`.
    pub fn function_at(&self, offset: usize) -> Option<&Function> {
        self.functions
            .iter()
            .filter(|f| f.is_definition && f.span.touches(offset))
            .min_by_key(|f| f.span.len())
    }
}
