// Stand-ins for what the headers of torch declare and kernels use. Only types are needed here: none of this runs.
#pragma once
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <type_traits>

#define STITCH_BOTH __host__ __device__ __forceinline__

namespace c10 {
template <class Bits, int Kind>
struct alignas(2) SmallFloat {
  unsigned short x;
  SmallFloat() = default;
  STITCH_BOTH SmallFloat(float value) : x(static_cast<unsigned short>(value)) {}
  STITCH_BOTH SmallFloat(const Bits& value) : x(reinterpret_cast<const unsigned short&>(value)) {}
  STITCH_BOTH operator float() const { return static_cast<float>(x); }
  STITCH_BOTH operator Bits() const { return reinterpret_cast<const Bits&>(x); }
  STITCH_BOTH SmallFloat& operator+=(const SmallFloat& o) { return *this = SmallFloat(float(*this) + float(o)); }
  STITCH_BOTH SmallFloat& operator-=(const SmallFloat& o) { return *this = SmallFloat(float(*this) - float(o)); }
  STITCH_BOTH SmallFloat& operator*=(const SmallFloat& o) { return *this = SmallFloat(float(*this) * float(o)); }
  STITCH_BOTH SmallFloat& operator/=(const SmallFloat& o) { return *this = SmallFloat(float(*this) / float(o)); }
};
using Half = SmallFloat<__half, 0>;
using BFloat16 = SmallFloat<__nv_bfloat16, 1>;
template <class T> using OptionalRef = T;
}  // namespace c10

namespace at {
using c10::BFloat16;
using c10::Half;
template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <> struct OpMathType<__half> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T, bool is_cuda> using acc_type = opmath_type<T>;

template <class T> struct DefaultPtrTraits { typedef T* PtrType; };
template <class T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };

template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
struct TensorAccessor {
  typename P<T>::PtrType data_;
  const I* sizes_;
  const I* strides_;
  STITCH_BOTH TensorAccessor<T, N - 1, P, I> operator[](I i) const {
    return TensorAccessor<T, N - 1, P, I>{data_ + strides_[0] * i, sizes_ + 1, strides_ + 1};
  }
  STITCH_BOTH I size(I i) const { return sizes_[i]; }
  STITCH_BOTH I stride(I i) const { return strides_[i]; }
  STITCH_BOTH typename P<T>::PtrType data() const { return data_; }
};
template <class T, template <class> class P, class I>
struct TensorAccessor<T, 1, P, I> {
  typename P<T>::PtrType data_;
  const I* sizes_;
  const I* strides_;
  STITCH_BOTH T& operator[](I i) const { return data_[strides_[0] * i]; }
  STITCH_BOTH I size(I i) const { return sizes_[i]; }
  STITCH_BOTH I stride(I i) const { return strides_[i]; }
  STITCH_BOTH typename P<T>::PtrType data() const { return data_; }
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
struct GenericPackedTensorAccessor {
  typename P<T>::PtrType data_;
  I sizes_[N];
  I strides_[N];
  STITCH_BOTH decltype(auto) operator[](I i) const { return TensorAccessor<T, N, P, I>{data_, sizes_, strides_}[i]; }
  STITCH_BOTH I size(I i) const { return sizes_[i]; }
  STITCH_BOTH I stride(I i) const { return strides_[i]; }
  STITCH_BOTH typename P<T>::PtrType data() const { return data_; }
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;

template <class T> STITCH_BOTH T ceil_div(T a, T b) { return (a + b - 1) / b; }
}  // namespace at

namespace torch {
using at::DefaultPtrTraits;
using at::GenericPackedTensorAccessor;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
using c10::BFloat16;
using c10::Half;
}  // namespace torch

#ifdef __CUDACC__
template <class T> __device__ __forceinline__ T gpuAtomicAdd(T* address, T value) { return atomicAdd(address, value); }
template <class T> __device__ __forceinline__ void gpuAtomicAddNoReturn(T* address, T value) { atomicAdd(address, value); }
__device__ __forceinline__ c10::Half gpuAtomicAdd(c10::Half*, c10::Half value) { return value; }
__device__ __forceinline__ c10::BFloat16 gpuAtomicAdd(c10::BFloat16*, c10::BFloat16 value) { return value; }
template <class T> __device__ __forceinline__ T WARP_SHFL(T v, int lane, int w = 32, unsigned m = 0xffffffffu) { return __shfl_sync(m, v, lane, w); }
template <class T> __device__ __forceinline__ T WARP_SHFL_DOWN(T v, unsigned d, int w = 32, unsigned m = 0xffffffffu) { return __shfl_down_sync(m, v, d, w); }
template <class T> __device__ __forceinline__ T WARP_SHFL_XOR(T v, int d, int w = 32, unsigned m = 0xffffffffu) { return __shfl_xor_sync(m, v, d, w); }
#endif

#define C10_DEVICE __device__
#define C10_HOST_DEVICE __host__ __device__
#define C10_HOST __host__
#define C10_UNUSED
#define C10_ALWAYS_INLINE inline
#define C10_RESTRICT __restrict__
#define C10_WARP_SIZE 32
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__(a)
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__(a, b)
#define CUDA_KERNEL_LOOP_TYPE(i, n, type) \
  for (type i = blockIdx.x * (type)blockDim.x + threadIdx.x; i < (n); i += (type)blockDim.x * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_1D_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_KERNEL_ASSERT(x)
