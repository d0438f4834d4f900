use super::*;

const RELU: &str = "#include <torch/extension.h>\n#include <cuda_runtime.h>\n#include <mma.h>\n\nconstexpr int N = 4;\nstatic int calls = 0;\nnamespace {\ntemplate <typename T>\n__device__ T up(T x) { return x > T(0) ? x : T(0); }\n\ntemplate <typename T, int B>\nstatic __global__ void __launch_bounds__(256) relu(const T* x, T* y, int n) {\n  int i = blockIdx.x * B + threadIdx.x;\n  if (i < n) y[i] = up(x[i]);\n}\n}  // namespace\n\ntorch::Tensor forward(torch::Tensor x) {\n  ++calls;\n  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), \"relu\", ([&] {\n    relu<scalar_t, 256><<<N, 256>>>(x.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), x.numel());\n  }));\n  return x;\n}\n";

fn taken_apart(text: &str) -> Split {
    split(text, 3, &[]).unwrap()
}

fn refused(text: &str) -> String {
    split(text, 3, &[]).unwrap_err()
}

#[test]
fn kernels_and_wrappers_part_and_keep_their_lines() {
    let split = taken_apart(RELU);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (host, device) = (lines(&split.host), lines(&split.device));
    assert_eq!(host.len(), RELU.lines().count());
    assert_eq!(device.len(), RELU.lines().count());
    assert_eq!((&split.templates, &split.kernels), (&vec!["relu".to_owned()], &vec!["relu".to_owned()]));
    // The device sees nothing of torch, nor state of the host's.
    assert_eq!((device[0].trim(), device[5].trim(), device[17].trim()), ("", "", ""));
    assert_eq!(
        device[11].trim_start(),
        "__global__ void __launch_bounds__(256) relu(const T* x, T* y, int n) {"
    );
    assert_eq!(device[6], "inline namespace stitchcuda_unnamed_3 {");
    // The host sees a declaration, and no header of the device's.
    assert_eq!((host[2].trim(), host[8].trim()), ("", ""));
    assert_eq!(host[11].trim(), "__global__ void __launch_bounds__(256) relu(const T* x, T* y, int n) ;");
    assert_eq!(host[5], "static int calls = 0;");
    assert!(host[20].contains("(stitchcuda_push(N, 256) ? (void)0 : relu<scalar_t, 256>(x.data_ptr"));
    assert!(!split.binds);
}

#[test]
fn what_both_need_is_in_both_and_nothing_else() {
    let text = "enum Mode { A, B };\nstruct P { int n; };\nstruct Q { int m; };\nconst int W = 3;\nconst int V = f();\n__host__ __device__ inline int up(int a) { return a; }\n__global__ void k(P p, Q* q) { p.n = W + up(q->m); }\nvoid g(int n) { k<<<up(n), A>>>(P{n}, nullptr); }\n";
    let split = taken_apart(text);
    let at = |text: &str, line: usize| text.lines().nth(line).unwrap_or_default().trim().to_owned();
    for (line, host, device) in [
        (0, true, true),
        (1, true, true),
        (2, true, true),
        (3, true, true),
        (4, true, false),
        (5, true, true),
    ] {
        assert_eq!(
            (!at(&split.host, line).is_empty(), !at(&split.device, line).is_empty()),
            (host, device),
            "line {line}"
        );
    }
    assert_eq!(at(&split.host, 6), "__global__ void k(P p, Q* q) ;");
    assert_eq!(at(&split.device, 7), "");
}

#[test]
fn what_is_not_sure_is_refused() {
    let kernel = "__global__ void k(float* x) { x[0] = 1; }\n";
    for (text, why) in [
        ("__constant__ float c[4];\nvoid f() { cudaMemcpyToSymbol(c, 0, 4); }\n", "names `c`"),
        ("__device__ float up(float);\nfloat f() { return up(1); }\n", "names `up`"),
        ("#include \"mine.cuh\"\n", "mine.cuh"),
        ("#include <ATen/cuda/Atomic.cuh>\n", "Atomic.cuh"),
        ("#ifdef TORCH_VERSION_MAJOR\n#endif\n", "TORCH_VERSION_MAJOR"),
        ("#if defined(__CUDACC__)\n#endif\n", "__CUDACC__"),
        ("void f() { auto g = [] __device__ (int a) { return a; }; }\n", "device code inside"),
        ("#include <thrust/sort.h>\nvoid f(int* a) { thrust::sort(thrust::device, a, a + 4); }\n", "thrust"),
        ("void f() { (*g)<<<1, 1>>>(); }\n", "can't be taken apart"),
        ("int f() { return __LINE__ + __COUNTER__; }\n", "__COUNTER__"),
    ] {
        let said = refused(&format!("{text}{kernel}"));
        assert!(said.contains(why), "{text}: {said}");
    }
    assert_eq!(refused("void f() {}\n"), "it has no kernel");
}

#[test]
fn a_kernel_that_nobody_launches_here_is_no_name_of_the_hosts() {
    let text = "extern \"C\" __global__ void k(float* x) { x[0] = 1; }\ntemplate __global__ void t<float>(float*);\nint f() { return 1; }\n";
    let split = taken_apart(text);
    assert_eq!(split.host.trim(), "int f() { return 1; }");
    assert!(split.device.contains("template __global__ void t<float>"));
}

#[test]
fn namespaces_of_the_devices_stay_there() {
    let text = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\nusing namespace nvcuda;\nusing namespace torch;\nnamespace mine = std;\n__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n";
    let split = taken_apart(text);
    let blank = |text: &str| text.lines().map(|line| line.trim().is_empty()).collect::<Vec<_>>();
    assert_eq!(blank(&split.host), [true, true, true, false, false, false, false]);
    assert_eq!(blank(&split.device), [false, false, false, true, false, false, true]);
}

#[test]
fn own_conditions_and_the_architecture_are_fine() {
    let text = "#define FAST 1\n#if FAST && defined(EXTRA)\n#endif\n__global__ void k() {\n#if __CUDA_ARCH__ >= 900\n  __syncwarp();\n#endif\n}\nvoid f() { k<<<1, 1>>>(); }\n";
    assert!(split(text, 3, &["EXTRA".to_owned()]).is_ok());
    assert!(split(text, 3, &[]).unwrap_err().contains("EXTRA"));
}
