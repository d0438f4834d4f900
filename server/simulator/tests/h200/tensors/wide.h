// wmma: matrices in memory, and the registers of fragments as they were loaded.
#pragma once
#include "line.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <type_traits>

namespace wide {
using namespace nvcuda::wmma;
using nvcuda::wmma::experimental::precision::b1;
using nvcuda::wmma::experimental::precision::s4;
using nvcuda::wmma::experimental::precision::u4;

// Elements as they lie in memory.
template <class T> struct Stored { using Type = T; };
template <> struct Stored<precision::tf32> { using Type = float; };
template <> struct Stored<s4> { using Type = void; };
template <> struct Stored<u4> { using Type = void; };
template <> struct Stored<b1> { using Type = void; };

enum How { Sum, Saturated, Xor, And, Fragments };

template <class F> __device__ unsigned *dump(const F &f, unsigned *to) {
  const unsigned *words = (const unsigned *)f.x;
  for (int i = 0; i < int(sizeof f.x / 4); ++i, to += 32) to[threadIdx.x] = words[i];
  return to;
}

template <int M, int N, int K, class TA, class TB, class TC, class LA, class LB, int C, How H, int BA, int BB, int BC, int Result>
__global__ void product(const unsigned char *a, const unsigned char *b, const unsigned char *c, unsigned char *d) {
  fragment<matrix_a, M, N, K, TA, LA> fa;
  fragment<matrix_b, M, N, K, TB, LB> fb;
  fragment<accumulator, M, N, K, TC> fc, fd;
  const layout_t by = C ? mem_col_major : mem_row_major;
  load_matrix_sync(fa, (const typename Stored<TA>::Type *)(a + blockIdx.x * BA), std::is_same<LA, row_major>::value ? K : M);
  load_matrix_sync(fb, (const typename Stored<TB>::Type *)(b + blockIdx.x * BB), std::is_same<LB, row_major>::value ? N : K);
  load_matrix_sync(fc, (const TC *)(c + blockIdx.x * BC), C ? M : N, by);
  if constexpr (H == Fragments) {
    unsigned *to = (unsigned *)(d + blockIdx.x * Result);
    dump(fc, dump(fb, dump(fa, to)));
  } else {
    if constexpr (H == Xor) bmma_sync(fd, fa, fb, fc, experimental::bmmaBitOpXOR);
    else if constexpr (H == And) bmma_sync(fd, fa, fb, fc, experimental::bmmaBitOpAND);
    else if constexpr (H == Saturated) mma_sync(fd, fa, fb, fc, true);
    else mma_sync(fd, fa, fb, fc);
    store_matrix_sync((TC *)(d + blockIdx.x * Result), fd, C ? M : N, by);
  }
}

template <int M, int N, int K, class TA, class TB, class TC, class LA, class LB, int C, How H>
static Line line(const char *name) {
  std::vector<std::string> t = types(name);
  constexpr int Bits = std::is_same<TA, b1>::value ? 1 : std::is_same<TA, s4>::value || std::is_same<TA, u4>::value ? 4 : sizeof(typename std::conditional<std::is_void<typename Stored<TA>::Type>::value, char, typename Stored<TA>::Type>::type) * 8;
  constexpr int BA = M * K * Bits / 8, BB = K * N * Bits / 8, BC = M * N * sizeof(TC);
  constexpr int Held = 128 * int(sizeof(fragment<matrix_a, M, N, K, TA, LA>::x) + sizeof(fragment<matrix_b, M, N, K, TB, LB>::x) + sizeof(fragment<accumulator, M, N, K, TC>::x)) / 4;
  constexpr int Result = H == Fragments ? Held : BC;
  std::vector<Kind> kinds = H == Fragments ? std::vector<Kind>{Uniform} : kinds_of(t[1]);
  return {name, {{t[1], BA, false}, {t[2], BB, false}, {t[0], BC, true}}, Result, H == Fragments ? 2 : 64, kinds,
          [](unsigned char *const *in, unsigned char *out, int tiles) {
            product<M, N, K, TA, TB, TC, LA, LB, C, H, BA, BB, BC, Result><<<tiles, 32>>>(in[0], in[1], in[2], out);
          }};
}

using row = row_major;
using col = col_major;
#define WIDE(name, ...) static Add JOIN(add, __LINE__)(line<__VA_ARGS__>("wmma." name));
#define EACH(text, ta, tb, tc, how) \
  static Add JOIN(add0, __LINE__)(line<16, 16, 16, ta, tb, tc, row, col, 0, how>("wmma.m16n16k16.row.col.row." text)); \
  static Add JOIN(add1, __LINE__)(line<16, 16, 16, ta, tb, tc, col, row, 1, how>("wmma.m16n16k16.col.row.col." text)); \
  static Add JOIN(add2, __LINE__)(line<32, 8, 16, ta, tb, tc, row, row, 0, how>("wmma.m32n8k16.row.row.row." text)); \
  static Add JOIN(add3, __LINE__)(line<32, 8, 16, ta, tb, tc, col, col, 1, how>("wmma.m32n8k16.col.col.col." text)); \
  static Add JOIN(add4, __LINE__)(line<8, 32, 16, ta, tb, tc, row, col, 1, how>("wmma.m8n32k16.row.col.col." text)); \
  static Add JOIN(add5, __LINE__)(line<8, 32, 16, ta, tb, tc, col, row, 0, how>("wmma.m8n32k16.col.row.row." text));
EACH("f32.f16.f16", __half, __half, float, Sum)
EACH("f16.f16.f16", __half, __half, __half, Sum)
EACH("f32.bf16.bf16", __nv_bfloat16, __nv_bfloat16, float, Sum)
EACH("s32.s8.s8", signed char, signed char, int, Sum)
EACH("s32.u8.u8.satfinite", unsigned char, unsigned char, int, Saturated)
EACH("f32.f16.f16.fragments", __half, __half, float, Fragments)
EACH("f16.f16.f16.fragments", __half, __half, __half, Fragments)
EACH("f32.bf16.bf16.fragments", __nv_bfloat16, __nv_bfloat16, float, Fragments)
EACH("s32.s8.s8.fragments", signed char, signed char, int, Fragments)
WIDE("m16n16k8.row.col.row.f32.tf32.tf32", 16, 16, 8, precision::tf32, precision::tf32, float, row, col, 0, Sum)
WIDE("m16n16k8.col.row.col.f32.tf32.tf32", 16, 16, 8, precision::tf32, precision::tf32, float, col, row, 1, Sum)
WIDE("m16n16k8.row.col.row.f32.tf32.tf32.fragments", 16, 16, 8, precision::tf32, precision::tf32, float, row, col, 0, Fragments)
WIDE("m16n16k8.col.row.col.f32.tf32.tf32.fragments", 16, 16, 8, precision::tf32, precision::tf32, float, col, row, 1, Fragments)
WIDE("m8n8k4.row.col.row.f64.f64.f64", 8, 8, 4, double, double, double, row, col, 0, Sum)
WIDE("m8n8k4.col.row.col.f64.f64.f64", 8, 8, 4, double, double, double, col, row, 1, Sum)
WIDE("m8n8k4.row.col.row.f64.f64.f64.fragments", 8, 8, 4, double, double, double, row, col, 0, Fragments)
WIDE("m8n8k32.row.col.row.s32.s4.s4", 8, 8, 32, s4, s4, int, row, col, 0, Sum)
WIDE("m8n8k32.row.col.col.s32.u4.u4.satfinite", 8, 8, 32, u4, u4, int, row, col, 1, Saturated)
WIDE("m8n8k128.row.col.row.s32.b1.b1.xor", 8, 8, 128, b1, b1, int, row, col, 0, Xor)
WIDE("m8n8k128.row.col.row.s32.b1.b1.and", 8, 8, 128, b1, b1, int, row, col, 0, And)
}  // namespace wide
