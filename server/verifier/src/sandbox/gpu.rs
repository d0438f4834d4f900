//! The proof that a GPU works inside: a kernel that writes numbers, and a look at the numbers.

use std::ffi::{CString, c_void};
use std::panic::catch_unwind;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

/// Writes `3 * i + 7` for each thread `i`. PTX of an old version for an old processor: every driver compiles it for its GPU.
const KERNEL: &str = "\
.version 6.0
.target sm_50
.address_size 64

.visible .entry fill(.param .u64 out)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r1, %r2, %r3, %r1;
    mad.lo.s32 %r4, %r1, 3, 7;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.u32 [%rd2], %r4;
    ret;
}
";
const BLOCKS: u32 = 4;
const THREADS: u32 = 64;

/// What the kernel showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuProof {
    /// It ran on the GPU of this name, and its numbers are right.
    Works(String),
    /// There is no driver, or no GPU.
    None(String),
    /// There is one, but it does not work; why, as part of a sentence.
    Fails(String),
}

/// Runs the kernel in this process, on its first GPU.
pub fn prove() -> GpuProof {
    // The library panics where a function of the driver is missing.
    catch_unwind(run).unwrap_or_else(|_| GpuProof::Fails("the driver's library lacks a function".into()))
}

fn run() -> GpuProof {
    // SAFETY: only looks whether the library can be opened.
    if !unsafe { sys::is_culib_present() } {
        return GpuProof::None("libcuda.so.1 can't be loaded".into());
    }
    if let Err(error) = result::init() {
        return match error.0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => GpuProof::None("the driver finds no GPU".into()),
            _ => GpuProof::Fails(format!("cuInit gives {:?}", error.0)),
        };
    }
    match on_first() {
        Ok((name, numbers))
            if numbers.iter().zip(0_u32..).all(|(number, index)| *number == 3 * index + 7) =>
        {
            GpuProof::Works(name)
        }
        Ok((name, _)) => GpuProof::Fails(format!("a kernel on {name} wrote wrong numbers")),
        Err((what, error)) => GpuProof::Fails(format!("{what} gives {:?}", error.0)),
    }
}

fn on_first() -> Result<(String, Vec<u32>), (&'static str, DriverError)> {
    let at = |what: &'static str| move |error| (what, error);
    let device = result::device::get(0).map_err(at("cuDeviceGet"))?;
    let name = result::device::get_name(device).map_err(at("cuDeviceGetName"))?;
    let text = CString::new(KERNEL).unwrap_or_default();
    let mut numbers = vec![0_u32; (BLOCKS * THREADS) as usize];
    // SAFETY: the context is current on this thread; the image ends with a NUL; the kernel writes as many words as the buffer has,
    // and its one parameter is the buffer's address. Everything goes with the process.
    unsafe {
        let context = result::primary_ctx::retain(device).map_err(at("cuDevicePrimaryCtxRetain"))?;
        result::ctx::set_current(context).map_err(at("cuCtxSetCurrent"))?;
        let module = result::module::load_data(text.as_ptr().cast()).map_err(at("cuModuleLoadData"))?;
        let kernel = result::module::get_function(module, CString::new("fill").unwrap_or_default())
            .map_err(at("cuModuleGetFunction"))?;
        let mut buffer = result::malloc_sync(size_of_val(numbers.as_slice())).map_err(at("cuMemAlloc"))?;
        let mut parameters = [(&raw mut buffer).cast::<c_void>()];
        let stream = std::ptr::null_mut();
        result::launch_kernel(kernel, (BLOCKS, 1, 1), (THREADS, 1, 1), 0, stream, &mut parameters)
            .map_err(at("cuLaunchKernel"))?;
        result::ctx::synchronize().map_err(at("cuCtxSynchronize"))?;
        result::memcpy_dtoh_sync(&mut numbers, buffer).map_err(at("cuMemcpyDtoH"))?;
    }
    Ok((name, numbers))
}
