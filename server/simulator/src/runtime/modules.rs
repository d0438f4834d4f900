//! What a program registered: images, and the functions and variables in them. An image is opened and linked when the first
//! of its kernels or variables is asked for.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::{Context, Shared};
use super::engine::{KernelShape, Linked};
use super::errors::Code;
use super::launch::{MAX_CLUSTER, MAX_LARGE_CLUSTER};
use super::protocol::{Action, Answer, Call};
use crate::image;
use crate::memory::PAGE;

/// A kernel of an image, found by the address of its host function.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub image: u64,
    pub name: String,
    /// Dynamic shared memory that was asked for with `cudaFuncSetAttribute`, in bytes.
    pub max_dynamic_shared: Option<u32>,
    /// The wished share of shared memory in percent.
    pub carveout: i32,
    /// Clusters larger than every device has are allowed.
    pub large_cluster: bool,
}

impl Function {
    /// Most blocks of a cluster.
    pub(super) fn max_cluster(&self) -> u32 {
        if self.large_cluster { MAX_LARGE_CLUSTER } else { MAX_CLUSTER }
    }
}

/// A variable of an image, found by the address of its host shadow.
#[derive(Debug, Clone)]
struct Variable {
    image: u64,
    name: String,
}

/// One registered fat binary, or all objects of a separately compiled program.
#[derive(Default)]
struct Image {
    files: Vec<Vec<u8>>,
    linked: Option<Result<Arc<dyn Linked>, Code>>,
}

/// All that was registered.
#[derive(Default)]
pub(super) struct Modules {
    images: HashMap<u64, Image>,
    functions: HashMap<u64, Function>,
    variables: HashMap<u64, Variable>,
}

impl Modules {
    /// What was registered, as if none of it had been used.
    pub(super) fn unlinked(mut self) -> Self {
        self.images.values_mut().for_each(|image| image.linked = None);
        for function in self.functions.values_mut() {
            function.max_dynamic_shared = None;
            function.large_cluster = false;
        }
        self
    }

    pub(super) fn function(&self, host: u64) -> Result<&Function, Code> {
        self.functions.get(&host).ok_or_else(|| no_function(host))
    }

    pub(super) fn function_mut(&mut self, host: u64) -> Result<&mut Function, Code> {
        self.functions.get_mut(&host).ok_or_else(|| no_function(host))
    }

    /// The image of that handle, linked.
    pub(super) fn linked(&mut self, handle: u64, shared: &Shared) -> Result<Arc<dyn Linked>, Code> {
        let image = self.images.get_mut(&handle).ok_or(Code::INVALID_KERNEL_IMAGE)?;
        let linked = image.linked.get_or_insert_with(|| link(&image.files, shared));
        match linked {
            Ok(linked) => Ok(Arc::clone(linked)),
            Err(code) => Err(*code),
        }
    }

    /// A kernel by its host function, with its image linked.
    pub(super) fn kernel(&mut self, host: u64, shared: &Shared) -> Result<(Function, KernelShape), Code> {
        let function = self.function(host)?.clone();
        let shape = self.linked(function.image, shared)?.kernel(&function.name);
        Ok((function, shape.ok_or(Code::INVALID_DEVICE_FUNCTION)?))
    }
}

/// The error for the address of something that is no kernel.
fn no_function(host: u64) -> Code {
    if host == 0 { Code::INVALID_DEVICE_FUNCTION } else { Code::INVALID_HANDLE }
}

fn link(files: &[Vec<u8>], shared: &Shared) -> Result<Arc<dyn Linked>, Code> {
    let arch = shared.device.arch();
    let mut texts = Vec::new();
    let mut failure = None;
    for file in files {
        match image::read(file).and_then(|entries| image::choose(&entries, arch)) {
            Ok(ptx) => texts.push(ptx.text),
            Err(error) => failure = Some(error),
        }
    }
    if texts.is_empty() {
        let message =
            failure.map_or_else(|| "the program registered no image".to_owned(), |error| error.to_string());
        shared.report().note(message);
        return Err(Code::NO_KERNEL_IMAGE);
    }
    // Objects of libraries may lack PTX for this device: what is missing then is named by the linker.
    shared.engine.link(&texts, &shared.memory).map_err(|message| {
        let lacking =
            failure.map_or_else(String::new, |error| format!(" (of an object of the program: {error})"));
        shared.report().note(format!("the program's device code can't be linked: {message}{lacking}"));
        Code::INVALID_KERNEL_IMAGE
    })
}

pub(super) fn image(context: &mut Context, call: &Call) -> Answer {
    let image = context.modules.images.entry(call.argument(0)).or_default();
    image.files.push(call.blob.clone());
    image.linked = None;
    Answer::done()
}

pub(super) fn function(context: &mut Context, call: &Call) -> Answer {
    let function = Function {
        image: call.argument(0),
        name: call.text(),
        max_dynamic_shared: None,
        carveout: -1,
        large_cluster: false,
    };
    context.modules.functions.insert(call.argument(1), function);
    Answer::done()
}

pub(super) fn variable(context: &mut Context, call: &Call) -> Answer {
    let variable = Variable { image: call.argument(0), name: call.text() };
    context.modules.variables.insert(call.argument(1), variable);
    Answer::done()
}

fn find(context: &mut Context, host: u64) -> Result<(u64, u64), Code> {
    let variable = context.modules.variables.get(&host).ok_or(Code::INVALID_SYMBOL)?.clone();
    let shared = Arc::clone(&context.shared);
    let linked = context.modules.linked(variable.image, &shared)?;
    linked.symbol(&variable.name).ok_or(Code::INVALID_SYMBOL)
}

pub(super) fn symbol(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    find(context, call.argument(0)).map(|(address, size)| Answer::results([address, size]))
}

/// The address of a `__managed__` variable, whose pages the program may touch from then on.
pub(super) fn managed_variable(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (address, size) = find(context, call.argument(0))?;
    // The program names it by its own address too.
    if let Some(variable) = context.modules.variables.get(&call.argument(0)).cloned() {
        context.modules.variables.insert(address, variable);
    }
    context.ownership.managed_variables.push((address, size));
    let start = address / PAGE * PAGE;
    let size = (address + size).next_multiple_of(PAGE) - start;
    Ok(Answer::results([address]).with(vec![Action::Protect { start, size, open: true }]))
}
