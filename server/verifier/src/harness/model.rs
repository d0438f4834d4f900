//! What a harness does, as data: arrays, scalars, the launch, each with where it comes from.

/// An array that is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The parameter.
    pub name: String,
    /// The type of its elements, as it is written.
    pub element: String,
    /// Whether the kernel can only read it.
    pub is_const: bool,
    /// How many elements, in C++: `1024 * 768`, `4096 / sizeof(T)`.
    pub count: String,
    /// One more than the largest value of an integer, in C++.
    pub limit: Option<String>,
    /// Where the size comes from.
    pub from: String,
}

/// A value that is passed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The parameter.
    pub name: String,
    /// Its type, as it is written.
    pub ty: String,
    /// Its value, in C++.
    pub value: String,
    /// Where it comes from.
    pub from: String,
}

/// One argument of the launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An array's device memory.
    Array(Array),
    /// A value.
    Scalar(Scalar),
}

/// What a harness does.
#[derive(Clone, Debug, PartialEq)]
pub struct Harness {
    /// The kernel, with its namespaces.
    pub kernel: String,
    /// Template parameters: whether each is a type, its name, its argument.
    pub template: Vec<(bool, String, String)>,
    /// The arguments in order.
    pub arguments: Vec<Argument>,
    /// Blocks.
    pub grid: [u64; 3],
    /// Threads of a block.
    pub block: [u64; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u64,
    /// Where grid and block come from.
    pub from: String,
}

impl Harness {
    /// The arrays, in the order of the parameters.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Array(array) => Some(array),
            Argument::Scalar(_) => None,
        })
    }
}
