//! Which calls of the CUDA runtime and driver launch, wait, copy, allocate or set up.
//!
//! Source of the table: CUDA Runtime API and CUDA Driver API reference manuals, "API synchronization behavior" for which copies block; the
//! names of HIP are the same with another prefix.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a call does to the host's way through the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallClass {
    /// Gives work to a device and returns.
    Launch,
    /// Waits for a device.
    Synchronize,
    /// Copies, and returns when the copy is done.
    BlockingCopy,
    /// Begins a copy or sets memory, and returns.
    Copy,
    /// Allocates or frees memory.
    Allocate,
    /// What is done once: contexts, modules, libraries, streams, graphs.
    Setup,
    /// Anything else.
    Other,
}

impl CallClass {
    /// Whether the host stands still until a device has done its work.
    pub fn waits(self) -> bool {
        matches!(self, Self::Synchronize | Self::BlockingCopy)
    }

    /// Whether something can run on a device because of it.
    pub fn causes_work(self) -> bool {
        matches!(self, Self::Launch | Self::BlockingCopy | Self::Copy)
    }
}

/// The first letters of a name without `cuda`, `cu` or `hip`, in this order: the first that fits counts.
const CLASSES: &[(&str, CallClass)] = &[
    ("LaunchHostFunc", CallClass::Other),
    ("Launch", CallClass::Launch),
    ("GraphLaunch", CallClass::Launch),
    ("ExtLaunch", CallClass::Launch),
    ("ModuleLaunch", CallClass::Launch),
    ("ExtModuleLaunch", CallClass::Launch),
    ("DeviceSynchronize", CallClass::Synchronize),
    ("ThreadSynchronize", CallClass::Synchronize),
    ("StreamSynchronize", CallClass::Synchronize),
    ("EventSynchronize", CallClass::Synchronize),
    ("CtxSynchronize", CallClass::Synchronize),
    // Set in a stream's order; returns before it is done.
    ("Memset", CallClass::Copy),
    ("MemsetD", CallClass::Copy),
    ("MemPrefetch", CallClass::Copy),
    ("MemcpyWithStream", CallClass::BlockingCopy),
    ("Malloc", CallClass::Allocate),
    ("Free", CallClass::Allocate),
    ("MemAlloc", CallClass::Allocate),
    ("MemFree", CallClass::Allocate),
    ("MemHost", CallClass::Allocate),
    ("HostAlloc", CallClass::Allocate),
    ("HostRegister", CallClass::Allocate),
    ("HostMalloc", CallClass::Allocate),
    ("MemCreate", CallClass::Allocate),
    ("MemMap", CallClass::Allocate),
    ("MemUnmap", CallClass::Allocate),
    ("MemRelease", CallClass::Allocate),
    ("MemSetAccess", CallClass::Allocate),
    ("MemAddress", CallClass::Allocate),
    ("Init", CallClass::Setup),
    ("Library", CallClass::Setup),
    ("ModuleLoad", CallClass::Setup),
    ("ModuleUnload", CallClass::Setup),
    ("ModuleGet", CallClass::Setup),
    ("KernelGet", CallClass::Setup),
    ("FuncGet", CallClass::Setup),
    ("FuncSet", CallClass::Setup),
    ("Link", CallClass::Setup),
    ("Ctx", CallClass::Setup),
    ("DevicePrimaryCtx", CallClass::Setup),
    ("GetProcAddress", CallClass::Setup),
    ("GetDriverEntryPoint", CallClass::Setup),
    ("GetDeviceProperties", CallClass::Setup),
    ("StreamCreate", CallClass::Setup),
    ("StreamDestroy", CallClass::Setup),
    ("EventCreate", CallClass::Setup),
    ("Graph", CallClass::Setup),
    ("Occupancy", CallClass::Setup),
];

/// The class of a call, by its name with or without the suffix of its version.
pub fn class(name: &str) -> CallClass {
    let name = plain(name);
    let Some(rest) = ["cuda", "hip", "cu"].iter().find_map(|prefix| name.strip_prefix(prefix)) else {
        return CallClass::Other;
    };
    if let Some((_, class)) = CLASSES.iter().find(|(start, _)| rest.starts_with(start)) {
        return *class;
    }
    if rest.starts_with("Memcpy") {
        // Copies within a device return at once too, but by name they are not told from others.
        return if rest.contains("Async") { CallClass::Copy } else { CallClass::BlockingCopy };
    }
    CallClass::Other
}

/// The name without `_v3020`, `_v2`, `_ptsz` and `_ptds`: the same call in another version.
pub fn plain(name: &str) -> &str {
    let mut name = name;
    loop {
        let shorter = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).or_else(|| {
            let (head, version) = name.rsplit_once("_v")?;
            (!version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())).then_some(head)
        });
        match shorter {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_go_and_classes_are_told() {
        for (name, without, expected) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel", CallClass::Launch),
            ("cuLaunchKernelEx_ptsz", "cuLaunchKernelEx", CallClass::Launch),
            ("cudaLaunchHostFunc_v10000", "cudaLaunchHostFunc", CallClass::Other),
            ("cudaGraphLaunch_v10000", "cudaGraphLaunch", CallClass::Launch),
            ("cudaGraphInstantiate_v12000", "cudaGraphInstantiate", CallClass::Setup),
            ("cudaStreamSynchronize_v3020", "cudaStreamSynchronize", CallClass::Synchronize),
            ("cudaMemcpy_v3020", "cudaMemcpy", CallClass::BlockingCopy),
            ("cuMemcpyDtoH_v2", "cuMemcpyDtoH", CallClass::BlockingCopy),
            ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync", CallClass::Copy),
            ("cudaMemset_v3020", "cudaMemset", CallClass::Copy),
            ("cuMemHostAlloc", "cuMemHostAlloc", CallClass::Allocate),
            ("hipMemcpyWithStream", "hipMemcpyWithStream", CallClass::BlockingCopy),
            ("cuLibraryLoadData", "cuLibraryLoadData", CallClass::Setup),
            ("cudaGetLastError", "cudaGetLastError", CallClass::Other),
            ("_v2", "_v2", CallClass::Other),
        ] {
            assert_eq!(plain(name), without);
            assert_eq!(class(name), expected, "{name}");
        }
    }
}
