//! What the tests of the processes share: an interpreter with torch, and a zygote that loads a file of this folder.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use stitch_session::folders::Folders;
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Scratch;
use stitch_verifier::torch::host::{
    Child, ChildError, Filled, Load, Loaded, Place as Where, Python, Role, Setting, Zygote, find_python,
    lay_out,
};
use stitch_verifier::torch::subject::{Callable, Case, Source, Subject};
use stitch_verifier::torch::values::{Dtype, Tensor, Tree, Values};
use tokio_util::sync::CancellationToken;

/// Set where there is no torch and these tests are not wanted.
const WITHOUT: &str = "STITCHCUDA_TESTS_WITHOUT_TORCH";
/// Set where they are to run on the first GPU.
const CUDA: &str = "STITCHCUDA_TESTS_CUDA";

/// Whether they run on a GPU.
pub fn on_cuda() -> bool {
    std::env::var_os(CUDA).is_some()
}

/// How processes of a role are started.
pub fn setting<'a>(python: &'a Python, scratch: &'a Scratch) -> Setting<'a> {
    let mut setting = Setting::new(python, scratch);
    if on_cuda() {
        setting.place = Where::Cuda(0);
    }
    setting
}

/// The interpreter, or `None` where a person has said to do without.
pub fn python() -> Option<Python> {
    let search = Search::new(Environment::of_this_process());
    let cache = Folders::find().cache.map(|cache| cache.join("torch"));
    match find_python(None, &search, cache.as_deref()) {
        Ok(python) => Some(python),
        Err(_) if std::env::var_os(WITHOUT).is_some() => None,
        Err(error) => panic!("{error} These tests need torch; set {WITHOUT} to leave them out."),
    }
}

/// A zygote and what it needs to live.
pub struct Place {
    pub zygote: Zygote,
    // Only one of the files that share this cancels.
    #[allow(dead_code)]
    pub cancel: CancellationToken,
    pub scratch: Scratch,
}

impl Place {
    pub async fn new(python: &Python, role: Role, limit: Duration) -> Self {
        let scratch = Scratch::new("torch-test").unwrap();
        let cancel = CancellationToken::new();
        let mut setting = setting(python, &scratch);
        setting.time_limit = limit;
        let zygote = Zygote::start(&setting, role, &cancel).await.unwrap();
        Self { zygote, cancel, scratch }
    }

    /// A child that has loaded the module `Model` of a file of this folder.
    pub async fn load(&mut self, file: &str) -> Result<Child, ChildError> {
        Ok(self.load_with(&Load::new(module(&data(file), "Model"), 1)).await?.0)
    }

    pub async fn load_with(&mut self, load: &Load) -> Result<(Child, Loaded), ChildError> {
        let mut child = self.zygote.child().await.unwrap();
        let loaded = child.load(load).await?;
        Ok((child, loaded))
    }
}

/// A file of this folder.
pub fn data(name: &str) -> PathBuf {
    // Where they run need not be where they were built.
    let room = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&room).join("tests/torch").join(name)
}

/// A class by KernelBench's convention.
pub fn module(path: &Path, name: &str) -> Subject {
    let function = |name: &str| Source::Function { name: name.to_owned() };
    Subject {
        path: path.to_owned(),
        callable: Callable::Module { name: name.to_owned(), init: Some(function("get_init_inputs")) },
        cases: vec![Case { inputs: function("get_inputs"), dtype: None }],
    }
}

/// Arguments: one-dimensional float32 tensors.
pub fn floats(tensors: &[&[f32]]) -> Filled {
    let mut described: Vec<Tensor> = tensors
        .iter()
        .map(|values| Tensor {
            dtype: Dtype::Float32,
            shape: vec![values.len() as u64],
            strides: None,
            offset: 0,
            bytes: values.len() as u64 * 4,
            device: None,
        })
        .collect();
    let size = lay_out(&mut described).unwrap();
    let items = (0..described.len()).map(|i| Tree::Tensor { i }).collect();
    let values = Values { tree: Tree::Tuple { items }, tensors: described, bytes: size };
    let mut filled = Filled::new(values, vec![0; size as usize]).unwrap();
    for (place, values) in tensors.iter().enumerate() {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        filled.tensor_mut(place).copy_from_slice(&bytes);
    }
    filled
}

/// The elements of a float32 tensor.
pub fn read(filled: &Filled, place: usize) -> Vec<f32> {
    assert_eq!(filled.values.tensors[place].dtype, Dtype::Float32);
    let parts = filled.tensor(place).chunks_exact(4);
    parts.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}
