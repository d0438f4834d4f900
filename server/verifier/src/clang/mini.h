// What small CUDA programs use of the CUDA headers, for a type check in a fraction of the time of the real ones. Only
// declarations: nothing of this is run, and what is missing here is looked for in the real headers before anything is reported.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__ __attribute__((grid_constant))
#define CUDART_CB
#define STITCH_HD __host__ __device__
struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  STITCH_HD constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  STITCH_HD constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  STITCH_HD constexpr operator uint3() const { return uint3{x, y, z}; }
};
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
extern const __device__ int warpSize;
#define STITCH_VECTORS(T, N) \
  struct N##1 { T x; }; struct __align__(2 * sizeof(T)) N##2 { T x, y; }; struct N##4 { T x, y, z, w; }; \
  STITCH_HD N##2 make_##N##2(T, T); STITCH_HD N##4 make_##N##4(T, T, T, T);
#define STITCH_VECTOR3(T, N) struct N##3 { T x, y, z; }; STITCH_HD N##3 make_##N##3(T, T, T);
STITCH_VECTORS(float, float) STITCH_VECTOR3(float, float)
STITCH_VECTORS(double, double) STITCH_VECTOR3(double, double)
STITCH_VECTORS(int, int) STITCH_VECTOR3(int, int)
STITCH_VECTORS(unsigned, uint)
STITCH_VECTORS(signed char, char) STITCH_VECTORS(unsigned char, uchar) STITCH_VECTORS(short, short)
__device__ void __syncthreads();
__device__ int __syncthreads_count(int); __device__ int __syncthreads_and(int); __device__ int __syncthreads_or(int);
__device__ void __syncwarp(unsigned = 0xffffffffu);
__device__ void __threadfence(); __device__ void __threadfence_block(); __device__ void __threadfence_system();
template <class T> __device__ T __shfl_sync(unsigned, T, int, int = 32);
template <class T> __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
__device__ unsigned __ballot_sync(unsigned, int); __device__ int __any_sync(unsigned, int); __device__ int __all_sync(unsigned, int);
__device__ unsigned __activemask();
template <class T> __device__ T __ldg(const T*);
#define STITCH_ATOMIC(T) \
  __device__ T atomicAdd(T*, T); __device__ T atomicExch(T*, T);
#define STITCH_ATOMIC_INTEGER(T) \
  STITCH_ATOMIC(T) __device__ T atomicSub(T*, T); __device__ T atomicMin(T*, T); __device__ T atomicMax(T*, T); \
  __device__ T atomicCAS(T*, T, T); __device__ T atomicAnd(T*, T); __device__ T atomicOr(T*, T); __device__ T atomicXor(T*, T);
STITCH_ATOMIC(float) STITCH_ATOMIC(double) STITCH_ATOMIC_INTEGER(int) STITCH_ATOMIC_INTEGER(unsigned)
STITCH_ATOMIC_INTEGER(unsigned long long)
#define STITCH_MATH1(name) __device__ double name(double); __device__ float name##f(float);
#define STITCH_MATH2(name) __device__ double name(double, double); __device__ float name##f(float, float);
extern "C" {
STITCH_MATH1(sqrt) STITCH_MATH1(rsqrt) STITCH_MATH1(exp) STITCH_MATH1(exp2) STITCH_MATH1(log) STITCH_MATH1(log2) STITCH_MATH1(log10)
STITCH_MATH1(sin) STITCH_MATH1(cos) STITCH_MATH1(tan) STITCH_MATH1(tanh) STITCH_MATH1(erf) STITCH_MATH1(fabs) STITCH_MATH1(floor)
STITCH_MATH1(ceil) STITCH_MATH1(round) STITCH_MATH2(pow) STITCH_MATH2(fmax) STITCH_MATH2(fmin) STITCH_MATH2(fmod)
__device__ float __expf(float); __device__ float __logf(float); __device__ float __sinf(float); __device__ float __cosf(float);
__device__ float __fdividef(float, float); __device__ float __frcp_rn(float); __device__ float __fsqrt_rn(float);
__device__ int printf(const char*, ...);
}
extern "C" { __device__ float fmaf(float, float, float); __device__ double fma(double, double, double); }
#define STITCH_MINMAX(T) STITCH_HD T min(T, T); STITCH_HD T max(T, T);
STITCH_MINMAX(int) STITCH_MINMAX(unsigned) STITCH_MINMAX(float) STITCH_MINMAX(double) STITCH_MINMAX(long) STITCH_MINMAX(unsigned long)
__device__ int abs(int);
__device__ int __popc(unsigned); __device__ int __clz(int); __device__ int __ffs(int);
__device__ long long clock64();
__device__ float __int_as_float(int); __device__ int __float_as_int(float);
typedef enum cudaError { cudaSuccess = 0 } cudaError_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
extern "C" {
int cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, cudaStream_t = 0);
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaMalloc(void**, size_t); cudaError_t cudaFree(void*); cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaMemset(void*, int, size_t); cudaError_t cudaDeviceSynchronize(); cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError(); const char* cudaGetErrorString(cudaError_t); const char* cudaGetErrorName(cudaError_t);
cudaError_t cudaStreamCreate(cudaStream_t*); cudaError_t cudaStreamDestroy(cudaStream_t); cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaEventCreate(cudaEvent_t*); cudaError_t cudaEventDestroy(cudaEvent_t); cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t); cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t = 0); cudaError_t cudaDeviceReset();
cudaError_t cudaSetDevice(int); cudaError_t cudaGetDevice(int*); cudaError_t cudaGetDeviceCount(int*);
}
template <class T> cudaError_t cudaMalloc(T**, size_t);
template <class T> cudaError_t cudaMallocManaged(T**, size_t, unsigned = 1);
template <class T> cudaError_t cudaMallocHost(T**, size_t, unsigned = 0);
template <class T> cudaError_t cudaMemcpyToSymbol(const T&, const void*, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice);
cudaError_t cudaFreeHost(void*);
