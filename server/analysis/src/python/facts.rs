//! What one piece of a Python file tells, in offsets relative to the piece. It depends on the piece's text alone.

use stitch_findings::Span;

use super::value::{Argument, Value};

/// Where a name is defined: the piece's own level, or a class or function inside it.
pub(super) type ScopeIndex = usize;

/// Everything that one piece tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// The first is the piece's own level; each other's parent comes before it.
    pub(super) scopes: Vec<Scope>,
    pub(super) imports: Vec<Import>,
    pub(super) functions: Vec<FunctionFact>,
    pub(super) classes: Vec<ClassFact>,
    pub(super) assignments: Vec<Assignment>,
    pub(super) growths: Vec<Growth>,
    /// Calls by which an attribute of `self` comes to be: `self.register_buffer("x", …)`.
    pub(super) registrations: Vec<Registration>,
    /// Calls of what may compile CUDA.
    pub(super) compilations: Vec<Compilation>,
    /// Calls of other functions that seem to be given a source: of these some may be the file's own, and give it on.
    pub(super) source_calls: Vec<Compilation>,
    /// Strings that hold `__global__`.
    pub(super) kernel_texts: Vec<KernelText>,
    pub(super) items: Vec<ItemCall>,
    pub(super) moves: Vec<Move>,
    /// Levels that wait for the GPU anyway, by `torch.cuda.synchronize()`.
    pub(super) waits: Vec<ScopeIndex>,
    /// Something here says where all tensors are made: `torch.set_default_device`, `with torch.device(…)`.
    pub(super) default_device: bool,
}

/// A level of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scope {
    pub(super) parent: ScopeIndex,
    /// The name of the class or function; empty for the piece's own level.
    pub(super) name: String,
    pub(super) is_class: bool,
}

/// `local` stands for `path`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Import {
    pub(super) local: String,
    pub(super) path: String,
}

/// A function or method.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FunctionFact {
    pub(super) name: String,
    /// Where it is defined.
    pub(super) outer: ScopeIndex,
    /// Its own level.
    pub(super) scope: ScopeIndex,
    pub(super) parameters: Vec<ParameterFact>,
    /// With its decorators.
    pub(super) span: Span,
    pub(super) name_span: Span,
    pub(super) body: Option<Span>,
}

/// One parameter, as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParameterFact {
    /// Its name without stars.
    pub(super) name: String,
    /// Its annotation, or nothing.
    pub(super) ty: String,
    pub(super) span: Span,
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClassFact {
    pub(super) name: String,
    pub(super) outer: ScopeIndex,
    pub(super) scope: ScopeIndex,
    /// As written.
    pub(super) bases: Vec<String>,
    /// With its decorators.
    pub(super) span: Span,
    pub(super) name_span: Span,
}

/// `target = value`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) scope: ScopeIndex,
    /// `x` or `self.x`; for what a function returns, [`RETURNED`].
    pub(super) target: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// `+=`.
    pub(super) augmented: bool,
    /// The statement.
    pub(super) span: Span,
}

/// `target.append(value)`, `target.extend([value, …])`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Growth {
    pub(super) scope: ScopeIndex,
    /// The list's name, without dots.
    pub(super) target: String,
    pub(super) items: Vec<Value>,
    /// The call.
    pub(super) span: Span,
}

/// The target that a `return` assigns to.
pub(super) const RETURNED: &str = "return";

/// Where a value comes from: the first name of an expression, followed to its first call or index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Origin {
    /// `torch.zeros` for `torch.zeros(3).half()`; empty where there is no name.
    pub(super) path: String,
    /// Whether that is called.
    pub(super) called: bool,
    /// The call says where its result is to be made, or is bound to a generator or to pinned memory.
    pub(super) placed: bool,
    /// The call says that its result is to be made on the CPU.
    pub(super) on_cpu: bool,
    /// The methods called on the result, and `[]` for an index.
    pub(super) then: Vec<String>,
}

/// `self.register_buffer("name", …)` and its kin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Registration {
    pub(super) scope: ScopeIndex,
    pub(super) name: String,
    /// The method.
    pub(super) by: String,
    pub(super) span: Span,
}

/// A call of a function that may compile CUDA.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compilation {
    pub(super) scope: ScopeIndex,
    /// As written.
    pub(super) function: String,
    pub(super) arguments: Vec<Argument>,
}

/// A string expression with `__global__` in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KernelText {
    pub(super) scope: ScopeIndex,
    pub(super) value: Value,
}

/// `x.item()` in a loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ItemCall {
    pub(super) scope: ScopeIndex,
    pub(super) span: Span,
    /// What it is called on.
    pub(super) receiver: Origin,
    /// As written, shortened.
    pub(super) text: String,
}

/// A tensor that is moved: `x.cuda()`, `x.to(device)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    pub(super) scope: ScopeIndex,
    pub(super) span: Span,
    /// What is moved.
    pub(super) receiver: Origin,
    /// As it is moved: `.cuda()`.
    pub(super) text: String,
    /// Where to, as written, for the advice.
    pub(super) device: String,
    /// Whether the statement before this one gives the receiver its value.
    pub(super) follows_assignment: bool,
}
