// What the CUDA runtime returns, case by case: run on a real device, it says what a stand-in has to return.
// Each case runs in a child of its own, so that errors which stay do not meet. Output: `case -> codes`, one line a case.
// Build: nvcc -arch=sm_90 -cudart shared device_errors.cu -o device_errors
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <cuda_runtime.h>

__device__ int variable[16];
__constant__ int constant[16];
__global__ void nothing() {}
__global__ void write(int *p, int v) { *p = v; }
__global__ void misaligned(char *p) { *(int *)(p + 1) = 1; }
__global__ void fails() { assert(threadIdx.x == 1000); }
__global__ void traps() { __trap(); }
__global__ void __launch_bounds__(64) bounded(int *p) { if (p) *p = threadIdx.x; }
__global__ void stack(int *p, int depth) { volatile int a[64]; a[depth % 64] = depth; if (depth > 0 && p) p[0] = a[depth % 64]; }
__global__ void shared_static() { __shared__ int s[12 * 1024]; s[threadIdx.x] = 1; __syncthreads(); }
__global__ void shared_oob(int i) { __shared__ int s[4]; volatile int *q = s; q[i] = 1; }
__global__ void prints() { printf("hello from %d\n", threadIdx.x); }
static void host_node(void *) {}

#define S(call) printf(" %d", (int)(call))
#define TAKE() printf(" [%d]", (int)cudaGetLastError())

static int *device(size_t n = 1024) { int *p = nullptr; cudaMalloc(&p, n); return p; }
static cudaStream_t stream() { cudaStream_t s; cudaStreamCreate(&s); return s; }
static char host[1 << 16], other[1 << 16];
static void *unregistered = (void *)host;

struct Case { const char *name; void (*run)(); };
static Case cases[] = {
  {"malloc 0", [] { void *p = (void *)1; S(cudaMalloc(&p, 0)); printf(" null %d", p == nullptr); }},
  {"malloc huge", [] { void *p; S(cudaMalloc(&p, 1ull << 50)); TAKE(); TAKE(); }},
  {"malloc into null", [] { S(cudaMalloc((void **)nullptr, 4)); }},
  {"malloc managed 0", [] { void *p; S(cudaMallocManaged(&p, 0)); }},
  {"malloc managed bad flags", [] { void *p; S(cudaMallocManaged(&p, 4, 99)); }},
  {"malloc host 0", [] { void *p = (void *)1; S(cudaMallocHost(&p, 0)); printf(" null %d", p == nullptr); }},
  {"malloc host bad flags", [] { void *p; S(cudaHostAlloc(&p, 4, 99)); }},
  {"malloc pitch 0", [] { void *p; size_t n = 0; S(cudaMallocPitch(&p, &n, 0, 10)); printf(" pitch %zu", n); }},
  {"malloc pitch 100", [] { void *p; size_t n = 0; S(cudaMallocPitch(&p, &n, 100, 10)); printf(" pitch %zu", n); }},
  {"malloc async 0", [] { void *p = (void *)1; S(cudaMallocAsync(&p, 0, nullptr)); printf(" null %d", p == nullptr); }},
  {"alignment of two small", [] { char *a = (char *)device(1), *b = (char *)device(1); printf(" %d %d", (int)((size_t)a % 512), (int)(b - a)); }},
  {"free twice", [] { int *p = device(); S(cudaFree(p)); S(cudaFree(p)); TAKE(); }},
  {"free inner", [] { int *p = device(); S(cudaFree(p + 1)); }},
  {"free host memory", [] { S(cudaFree(unregistered)); }},
  {"free pinned with cudaFree", [] { void *p; cudaMallocHost(&p, 64); S(cudaFree(p)); }},
  {"free device with cudaFreeHost", [] { S(cudaFreeHost(device())); }},
  {"free plain with cudaFreeHost", [] { S(cudaFreeHost(unregistered)); }},
  {"free null", [] { S(cudaFree(nullptr)); S(cudaFreeHost(nullptr)); S(cudaFreeAsync(nullptr, nullptr)); }},
  {"free async twice", [] { void *p; cudaMallocAsync(&p, 64, nullptr); S(cudaFreeAsync(p, nullptr)); S(cudaFreeAsync(p, nullptr)); }},
  {"free async of cudaMalloc", [] { S(cudaFreeAsync(device(), nullptr)); }},
  {"free of pool memory", [] { void *p; cudaMallocAsync(&p, 64, nullptr); S(cudaFree(p)); }},
  {"memcpy beyond destination", [] { S(cudaMemcpy(device(64), host, 65, cudaMemcpyHostToDevice)); }},
  {"memcpy beyond by 512", [] { S(cudaMemcpy(device(64), host, 64 + 512, cudaMemcpyHostToDevice)); }},
  {"memcpy far beyond", [] { S(cudaMemcpy(device(64), host, 1 << 16, cudaMemcpyHostToDevice)); }},
  {"memcpy beyond source", [] { S(cudaMemcpy(host, device(64), 65, cudaMemcpyDeviceToHost)); }},
  {"memcpy freed", [] { int *p = device(4 << 20); cudaFree(p); S(cudaMemcpy(p, host, 16, cudaMemcpyHostToDevice)); }},
  {"memcpy null destination", [] { S(cudaMemcpy(nullptr, host, 16, cudaMemcpyHostToDevice)); }},
  {"memcpy null source", [] { S(cudaMemcpy(device(), nullptr, 16, cudaMemcpyHostToDevice)); }},
  {"memcpy nothing to null", [] { S(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice)); }},
  {"memcpy kind 5", [] { S(cudaMemcpy(device(), host, 16, (cudaMemcpyKind)5)); }},
  {"memcpy kind 5 of nothing", [] { S(cudaMemcpy(device(), host, 0, (cudaMemcpyKind)5)); }},
  {"memcpy h2d between hosts", [] { S(cudaMemcpy(host, other, 16, cudaMemcpyHostToDevice)); }},
  {"memcpy d2h between hosts", [] { S(cudaMemcpy(host, other, 16, cudaMemcpyDeviceToHost)); }},
  {"memcpy d2d between hosts", [] { S(cudaMemcpy(host, other, 16, cudaMemcpyDeviceToDevice)); }},
  {"memcpy h2d between devices", [] { int *a = device(), *b = device(); S(cudaMemcpy(a, b, 16, cudaMemcpyHostToDevice)); }},
  {"memcpy d2h between devices", [] { int *a = device(), *b = device(); S(cudaMemcpy(a, b, 16, cudaMemcpyDeviceToHost)); }},
  {"memcpy d2h into device from host", [] { S(cudaMemcpy(device(), host, 16, cudaMemcpyDeviceToHost)); }},
  {"memcpy h2d into host from device", [] { S(cudaMemcpy(host, device(), 16, cudaMemcpyHostToDevice)); }},
  {"memcpy d2d into host", [] { S(cudaMemcpy(host, device(), 16, cudaMemcpyDeviceToDevice)); }},
  {"memcpy default between hosts", [] { S(cudaMemcpy(host, other, 16, cudaMemcpyDefault)); }},
  {"memcpy h2d pinned to pinned", [] { void *a, *b; cudaMallocHost(&a, 64); cudaMallocHost(&b, 64); S(cudaMemcpy(a, b, 16, cudaMemcpyHostToDevice)); }},
  {"memcpy async bad stream after destroy", [] { cudaStream_t s = stream(); cudaStreamDestroy(s); S(cudaMemcpyAsync(device(), host, 16, cudaMemcpyHostToDevice, s)); }},
  {"memcpy2d pitch too small", [] { S(cudaMemcpy2D(device(), 8, host, 16, 16, 4, cudaMemcpyHostToDevice)); }},
  {"memcpy2d too many rows", [] { S(cudaMemcpy2D(device(64), 16, host, 16, 16, 5, cudaMemcpyHostToDevice)); }},
  {"memcpy2d nothing", [] { S(cudaMemcpy2D(device(64), 16, host, 16, 0, 5, cudaMemcpyHostToDevice)); }},
  {"memset beyond", [] { S(cudaMemset(device(64), 0, 65)); }},
  {"memset far beyond", [] { S(cudaMemset(device(64), 0, 64 << 20)); }},
  {"memset host", [] { S(cudaMemset(unregistered, 0, 16)); }},
  {"memset null", [] { S(cudaMemset(nullptr, 0, 16)); }},
  {"memset nothing", [] { S(cudaMemset(nullptr, 0, 0)); }},
  {"memset2d pitch too small", [] { S(cudaMemset2D(device(), 8, 0, 16, 4)); }},
  {"symbol copies", [] { S(cudaMemcpyToSymbol(variable, host, 64)); S(cudaMemcpyToSymbol(constant, host, 64)); S(cudaMemcpyFromSymbol(host, variable, 64)); }},
  {"symbol beyond", [] { S(cudaMemcpyToSymbol(variable, host, 65)); S(cudaMemcpyToSymbol(variable, host, 64, 1)); }},
  {"symbol unknown", [] { S(cudaMemcpyToSymbol(host, other, 4)); void *p; S(cudaGetSymbolAddress(&p, host)); size_t n; S(cudaGetSymbolSize(&n, host)); }},
  {"symbol wrong kind", [] { S(cudaMemcpyToSymbol(variable, host, 4, 0, cudaMemcpyDeviceToHost)); S(cudaMemcpyFromSymbol(host, variable, 4, 0, cudaMemcpyHostToDevice)); }},
  {"launch 1025 threads", [] { nothing<<<1, 1025>>>(); TAKE(); TAKE(); }},
  {"launch 0 threads", [] { nothing<<<1, 0>>>(); TAKE(); }},
  {"launch 0 blocks", [] { nothing<<<0, 1>>>(); TAKE(); }},
  {"launch z 65 threads", [] { nothing<<<1, dim3(1, 1, 65)>>>(); TAKE(); }},
  {"launch y 65536 blocks", [] { nothing<<<dim3(1, 65536), 1>>>(); TAKE(); }},
  {"launch 49153 bytes", [] { nothing<<<1, 1, 49153>>>(); TAKE(); }},
  {"launch 1 MiB shared", [] { nothing<<<1, 1, 1 << 20>>>(); TAKE(); }},
  {"launch static 48 KiB and 1 dynamic", [] { shared_static<<<1, 32, 1>>>(); TAKE(); }},
  {"launch beyond bounds", [] { bounded<<<1, 128>>>(nullptr); TAKE(); S(cudaDeviceSynchronize()); }},
  {"opt in 100 KiB", [] { S(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10)); nothing<<<1, 1, 100 << 10>>>(); TAKE(); S(cudaDeviceSynchronize()); }},
  {"opt in too much", [] { S(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10)); TAKE(); }},
  {"function attribute unknown", [] { S(cudaFuncSetAttribute(nothing, (cudaFuncAttribute)77, 1)); }},
  {"launch of no kernel", [] { S(cudaLaunchKernel((const void *)host_node, dim3(1), dim3(1), nullptr, 0, nullptr)); TAKE(); }},
  {"launch of null", [] { S(cudaLaunchKernel((const void *)nullptr, dim3(1), dim3(1), nullptr, 0, nullptr)); }},
  {"attributes of no kernel", [] { cudaFuncAttributes a; S(cudaFuncGetAttributes(&a, (const void *)host_node)); }},
  {"cooperative too large", [] { void *none[1]; S(cudaLaunchCooperativeKernel((const void *)nothing, dim3(1 << 20), dim3(32), none, 0, nullptr)); }},
  {"cluster of 3 in 4 blocks", [] { cudaLaunchConfig_t c = {}; cudaLaunchAttribute a[1]; a[0].id = cudaLaunchAttributeClusterDimension; a[0].val.clusterDim.x = 3; a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1; c.gridDim = dim3(4); c.blockDim = dim3(32); c.attrs = a; c.numAttrs = 1; S(cudaLaunchKernelExC(&c, (const void *)nothing, nullptr)); }},
  {"cluster of 16", [] { cudaLaunchConfig_t c = {}; cudaLaunchAttribute a[1]; a[0].id = cudaLaunchAttributeClusterDimension; a[0].val.clusterDim.x = 16; a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1; c.gridDim = dim3(16); c.blockDim = dim3(32); c.attrs = a; c.numAttrs = 1; S(cudaLaunchKernelExC(&c, (const void *)nothing, nullptr)); }},
  {"fault null", [] { write<<<1, 1>>>(nullptr, 1); TAKE(); S(cudaDeviceSynchronize()); TAKE(); TAKE(); void *p; S(cudaMalloc(&p, 4)); S(cudaFree(nullptr)); S(cudaDeviceReset()); S(cudaMalloc(&p, 4)); }},
  {"fault far", [] { write<<<1, 1>>>(device(64) + (1ll << 36), 1); S(cudaDeviceSynchronize()); }},
  {"fault misaligned", [] { misaligned<<<1, 1>>>((char *)device()); S(cudaDeviceSynchronize()); TAKE(); }},
  {"fault assert", [] { fails<<<1, 1>>>(); S(cudaDeviceSynchronize()); TAKE(); }},
  {"fault trap", [] { traps<<<1, 1>>>(); S(cudaDeviceSynchronize()); TAKE(); }},
  {"fault shared", [] { shared_oob<<<1, 1>>>(1 << 20); S(cudaDeviceSynchronize()); }},
  {"fault host pointer", [] { write<<<1, 1>>>((int *)unregistered, 1); S(cudaDeviceSynchronize()); }},
  {"fault seen by memcpy", [] { write<<<1, 1>>>(nullptr, 1); S(cudaMemcpy(host, device(64), 4, cudaMemcpyDeviceToHost)); TAKE(); }},
  {"fault then stream calls", [] { cudaStream_t s = stream(); write<<<1, 1, 0, s>>>(nullptr, 1); S(cudaStreamSynchronize(s)); S(cudaStreamQuery(s)); S(cudaStreamDestroy(s)); int n; S(cudaGetDevice(&n)); S(cudaGetDeviceCount(&n)); S(cudaSetDevice(0)); cudaEvent_t e; S(cudaEventCreate(&e)); int v; S(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 0)); size_t a, b; S(cudaMemGetInfo(&a, &b)); nothing<<<1, 1>>>(); TAKE(); }},
  {"stream after destroy", [] { cudaStream_t s = stream(); S(cudaStreamDestroy(s)); S(cudaStreamSynchronize(s)); }},
  {"stream null destroy", [] { S(cudaStreamDestroy(nullptr)); S(cudaStreamQuery(nullptr)); }},
  {"stream bad flags", [] { cudaStream_t s; S(cudaStreamCreateWithFlags(&s, 7)); S(cudaStreamCreate(nullptr)); }},
  {"stream priorities", [] { int a, b, c; cudaStream_t s; S(cudaDeviceGetStreamPriorityRange(&a, &b)); printf(" %d %d", a, b); S(cudaStreamCreateWithPriority(&s, 0, -99)); S(cudaStreamGetPriority(s, &c)); printf(" %d", c); }},
  {"event never recorded", [] { cudaEvent_t a, b; float t; cudaEventCreate(&a); cudaEventCreate(&b); S(cudaEventQuery(a)); S(cudaEventSynchronize(a)); S(cudaEventElapsedTime(&t, a, b)); }},
  {"event without timing", [] { cudaEvent_t a, b; float t; cudaEventCreateWithFlags(&a, cudaEventDisableTiming); cudaEventCreate(&b); cudaEventRecord(a); cudaEventRecord(b); cudaDeviceSynchronize(); S(cudaEventElapsedTime(&t, a, b)); }},
  {"event bad flags", [] { cudaEvent_t a; S(cudaEventCreateWithFlags(&a, 64)); S(cudaEventCreateWithFlags(&a, cudaEventInterprocess)); }},
  {"event null", [] { S(cudaEventRecord(nullptr)); S(cudaEventDestroy(nullptr)); S(cudaEventQuery(nullptr)); }},
  {"device 1 of 1", [] { int n; cudaGetDeviceCount(&n); S(cudaSetDevice(n)); S(cudaSetDevice(-1)); cudaDeviceProp p; S(cudaGetDeviceProperties(&p, n)); int v; S(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, n)); S(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)0, 0)); S(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)9999, 0)); }},
  {"limits", [] { size_t n; for (int i = 0; i < 8; i++) { n = 0; S(cudaDeviceGetLimit(&n, (cudaLimit)i)); printf("=%zu", n); } S(cudaDeviceGetLimit(&n, (cudaLimit)99)); S(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20)); S(cudaDeviceGetLimit(&n, cudaLimitMallocHeapSize)); printf("=%zu", n); S(cudaDeviceSetLimit(cudaLimitStackSize, 5000)); S(cudaDeviceGetLimit(&n, cudaLimitStackSize)); printf("=%zu", n); }},
  {"flags", [] { unsigned f = 77; S(cudaGetDeviceFlags(&f)); printf("=%u", f); S(cudaSetDeviceFlags(1 << 20)); S(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync)); S(cudaGetDeviceFlags(&f)); printf("=%u", f); }},
  {"peer to self", [] { int c = 7; S(cudaDeviceCanAccessPeer(&c, 0, 0)); printf("=%d", c); S(cudaDeviceEnablePeerAccess(0, 0)); S(cudaDeviceDisablePeerAccess(0)); S(cudaDeviceEnablePeerAccess(99, 0)); int *a = device(), *b = device(); S(cudaMemcpyPeer(a, 0, b, 0, 16)); }},
  {"pointer attributes", [] { cudaPointerAttributes a; void *pinned, *managed; cudaMallocHost(&pinned, 64); cudaMallocManaged(&managed, 64); void *list[] = {unregistered, device(), pinned, managed, nullptr}; for (void *p : list) { memset(&a, 9, sizeof a); S(cudaPointerGetAttributes(&a, p)); printf("=%d,%d,%d,%d", a.type, a.device, a.devicePointer != nullptr, a.hostPointer != nullptr); } }},
  {"register", [] { void *p = aligned_alloc(4096, 8192), *d; unsigned f; S(cudaHostRegister(p, 8192, 0)); S(cudaHostRegister(p, 8192, 0)); S(cudaHostGetDevicePointer(&d, p, 0)); printf(" same %d", d == p); S(cudaHostGetFlags(&f, p)); printf("=%u", f); S(cudaHostUnregister((char *)p + 1)); S(cudaHostUnregister(p)); S(cudaHostUnregister(p)); S(cudaHostRegister(nullptr, 8, 0)); S(cudaHostRegister(p, 0, 0)); }},
  {"host flags and pointers", [] { void *p, *d; unsigned f; cudaHostAlloc(&p, 64, cudaHostAllocMapped); S(cudaHostGetFlags(&f, p)); printf("=%u", f); S(cudaHostGetFlags(&f, unregistered)); S(cudaHostGetDevicePointer(&d, unregistered, 0)); S(cudaHostGetDevicePointer(&d, p, 1)); cudaMallocHost(&p, 64); S(cudaHostGetFlags(&f, p)); printf("=%u", f); }},
  {"occupancy", [] { int n; S(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, nothing, 256, 0)); printf("=%d", n); S(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, nothing, 0, 0)); S(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, nothing, 2048, 0)); printf("=%d", n); S(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, bounded, 128, 0)); printf("=%d", n); size_t b; S(cudaOccupancyAvailableDynamicSMemPerBlock(&b, nothing, 2, 256)); printf("=%zu", b); }},
  {"function attributes", [] { cudaFuncAttributes a; S(cudaFuncGetAttributes(&a, shared_static)); printf("=%zu,%d,%d,%d,%d", a.sharedSizeBytes, a.maxThreadsPerBlock, a.ptxVersion, a.binaryVersion, a.maxDynamicSharedSizeBytes); S(cudaFuncGetAttributes(&a, bounded)); printf("=%d,%d", a.maxThreadsPerBlock, a.maxDynamicSharedSizeBytes); }},
  {"capture of the legacy stream", [] { S(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal)); }},
  {"capture twice", [] { cudaStream_t s = stream(); S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); cudaGraph_t g; S(cudaStreamEndCapture(s, &g)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then malloc", [] { cudaStream_t s = stream(); cudaGraph_t g; void *p; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaMalloc(&p, 4)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then malloc relaxed", [] { cudaStream_t s = stream(); cudaGraph_t g; void *p; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)); S(cudaMalloc(&p, 4)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then stream sync", [] { cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaStreamSynchronize(s)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then stream query", [] { cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaStreamQuery(s)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then device sync", [] { cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaDeviceSynchronize()); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then device sync relaxed", [] { cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)); S(cudaDeviceSynchronize()); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then legacy launch", [] { cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); nothing<<<1, 1>>>(); TAKE(); S(cudaStreamEndCapture(s, &g)); }},
  {"capture then memcpy", [] { int *p = device(); cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaMemcpy(p, host, 4, cudaMemcpyHostToDevice)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture unjoined", [] { cudaStream_t s = stream(), t = stream(); cudaEvent_t e; cudaEventCreate(&e); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaEventRecord(e, s)); S(cudaStreamWaitEvent(t, e)); nothing<<<1, 1, 0, t>>>(); TAKE(); S(cudaStreamEndCapture(s, &g)); }},
  {"capture ended elsewhere", [] { cudaStream_t s = stream(), t = stream(); cudaEvent_t e; cudaEventCreate(&e); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaEventRecord(e, s)); S(cudaStreamWaitEvent(t, e)); S(cudaStreamEndCapture(t, &g)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture waits outside", [] { cudaStream_t s = stream(), t = stream(); cudaEvent_t e; cudaEventCreate(&e); cudaEventRecord(e, t); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaStreamWaitEvent(s, e)); S(cudaStreamEndCapture(s, &g)); }},
  {"captured event used", [] { cudaStream_t s = stream(); cudaEvent_t e; cudaEventCreate(&e); cudaGraph_t g; S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaEventRecord(e, s)); S(cudaEventSynchronize(e)); S(cudaEventQuery(e)); S(cudaStreamEndCapture(s, &g)); }},
  {"capture destroyed stream", [] { cudaStream_t s = stream(); S(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); S(cudaStreamDestroy(s)); int *p = device(); TAKE(); printf(" %d", p != nullptr); }},
  {"end without begin", [] { cudaStream_t s = stream(); cudaGraph_t g; S(cudaStreamEndCapture(s, &g)); }},
  {"graph cycle", [] { cudaGraph_t g; cudaGraphNode_t a, b; cudaGraphExec_t x; cudaGraphCreate(&g, 0); cudaGraphAddEmptyNode(&a, g, nullptr, 0); cudaGraphAddEmptyNode(&b, g, &a, 1); cudaGraphNode_t from[] = {b}, to[] = {a}; S(cudaGraphAddDependencies(g, from, to, nullptr, 1)); S(cudaGraphInstantiate(&x, g, 0)); }},
  {"graph edge twice", [] { cudaGraph_t g; cudaGraphNode_t a, b; cudaGraphCreate(&g, 0); cudaGraphAddEmptyNode(&a, g, nullptr, 0); cudaGraphAddEmptyNode(&b, g, &a, 1); S(cudaGraphAddDependencies(g, &a, &b, nullptr, 1)); cudaGraphNode_t same[] = {a, a}; S(cudaGraphAddEmptyNode(&b, g, same, 2)); }},
  {"graph bad kernel node", [] { cudaGraph_t g; cudaGraphNode_t n; cudaGraphCreate(&g, 0); cudaKernelNodeParams p = {}; p.func = (void *)nothing; p.gridDim = dim3(1); p.blockDim = dim3(2000); S(cudaGraphAddKernelNode(&n, g, nullptr, 0, &p)); p.blockDim = dim3(1); p.func = nullptr; S(cudaGraphAddKernelNode(&n, g, nullptr, 0, &p)); }},
  {"graph update shape", [] { cudaGraph_t g, h; cudaGraphNode_t a, b; cudaGraphExec_t x; cudaGraphCreate(&g, 0); cudaGraphCreate(&h, 0); cudaGraphAddEmptyNode(&a, g, nullptr, 0); cudaGraphAddEmptyNode(&a, h, nullptr, 0); cudaGraphAddEmptyNode(&b, h, &a, 1); S(cudaGraphInstantiate(&x, g, 0)); cudaGraphExecUpdateResultInfo i; S(cudaGraphExecUpdate(x, h, &i)); printf("=%d", i.result); TAKE(); }},
  {"graph destroyed twice", [] { cudaGraph_t g; cudaGraphCreate(&g, 0); S(cudaGraphDestroy(g)); }},
  {"graph launch null", [] { S(cudaGraphLaunch(nullptr, nullptr)); S(cudaGraphCreate(nullptr, 0)); cudaGraph_t g; S(cudaGraphCreate(&g, 5)); }},
  {"host function null", [] { S(cudaLaunchHostFunc(nullptr, nullptr, nullptr)); }},
  {"call in host function", [] { S(cudaLaunchHostFunc(nullptr, [](void *) { void *p; printf(" inside %d", (int)cudaMalloc(&p, 4)); }, nullptr)); S(cudaDeviceSynchronize()); }},
  {"pools", [] { cudaMemPool_t p, q; S(cudaDeviceGetDefaultMemPool(&p, 0)); S(cudaDeviceGetMemPool(&q, 0)); printf(" same %d", p == q); S(cudaMemPoolDestroy(p)); unsigned long long v = 0; S(cudaMemPoolGetAttribute(p, cudaMemPoolAttrReleaseThreshold, &v)); printf("=%llu", v); S(cudaMemPoolGetAttribute(p, (cudaMemPoolAttr)99, &v)); S(cudaDeviceGetDefaultMemPool(&p, 5)); }},
  {"prefetch", [] { void *m; cudaMallocManaged(&m, 4096); cudaMemLocation l = {cudaMemLocationTypeDevice, 0}; S(cudaMemPrefetchAsync(m, 4096, l, 0, 0)); S(cudaMemPrefetchAsync(m, 8192, l, 0, 0)); S(cudaMemPrefetchAsync(device(), 16, l, 0, 0)); S(cudaMemPrefetchAsync(unregistered, 16, l, 0, 0)); S(cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, l)); }},
  {"last error across good calls", [] { void *p; cudaMalloc(&p, 1ull << 50); cudaMalloc(&p, 4); S(cudaPeekAtLastError()); TAKE(); TAKE(); }},
  {"launch error and sync", [] { nothing<<<1, 2000>>>(); S(cudaDeviceSynchronize()); TAKE(); }},
  {"fork after use", [] { device(); fflush(stdout); if (!fork()) { void *p; S(cudaMalloc(&p, 4)); int n; S(cudaGetDeviceCount(&n)); fflush(stdout); _exit(0); } wait(nullptr); }},
  {"printf", [] { prints<<<1, 2>>>(); printf(" before sync\n"); S(cudaDeviceSynchronize()); }},
  {"reset then use", [] { int *p = device(); S(cudaDeviceReset()); S(cudaMemcpy(p, host, 4, cudaMemcpyHostToDevice)); S(cudaFree(p)); TAKE(); device(); nothing<<<1, 1>>>(); TAKE(); }},
  {"null out pointers", [] { S(cudaGetDeviceCount(nullptr)); S(cudaGetDevice(nullptr)); S(cudaMemGetInfo(nullptr, nullptr)); S(cudaEventCreate(nullptr)); S(cudaRuntimeGetVersion(nullptr)); S(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0)); }},
};

int main(int count, char **arguments) {
  setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
  for (const Case &one : cases) {
    if (count > 1 && strcmp(arguments[1], one.name)) continue;
    printf("%s ->", one.name);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
      alarm(20);
      one.run();
      fflush(stdout);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf(" signal %d", WTERMSIG(status));
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
