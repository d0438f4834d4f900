// What generated kernels are made of: one meaning on a device and on the host. `F` marks functions of both. Undefined behaviour
// is defined away here: shifts are masked, divisors made odd, signed sums done unsigned, NaN has one pattern.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef long long i64;
typedef float f32;
typedef double f64;
#ifdef __CUDACC__
#include <cuda_fp16.h>
#define F static __device__ __forceinline__
#define N static __device__ __noinline__
typedef __half f16;
#else
#define F static inline
#define N static __attribute__((noinline))
typedef _Float16 f16;
#endif

F u32 bits(f32 x) { u32 b; memcpy(&b, &x, 4); return x != x ? 0x7fffffffu : b; }
F u64 bits(f64 x) { u64 b; memcpy(&b, &x, 8); return x != x ? 0x7fffffffffffffffull : b; }
F f32 as_f32(u32 b) { f32 x; memcpy(&x, &b, 4); return x; }
F f64 as_f64(u64 b) { f64 x; memcpy(&x, &b, 8); return x; }
F u64 mix(u64 h, u64 v) { h ^= v; h *= 0x9e3779b97f4a7c15ull; return h ^ h >> 29; }

// Numbers of a tame size, so that not everything ends as infinity.
F f32 tame(f32 x) { return fabsf(x) < 1e12f ? x : x != x ? 0.5f : 1.25f; }
F f64 tame(f64 x) { return fabs(x) < 1e40 ? x : x != x ? 0.5 : 1.25; }

F i32 sdiv(i32 a, i32 b) { b |= 1; return b == -1 ? (i32)(0u - (u32)a) : a / b; }
F i32 srem(i32 a, i32 b) { b |= 1; return b == -1 ? 0 : a % b; }
F i64 sdiv(i64 a, i64 b) { b |= 1; return b == -1 ? (i64)(0ull - (u64)a) : a / b; }
F i64 srem(i64 a, i64 b) { b |= 1; return b == -1 ? 0 : a % b; }

#ifdef __CUDACC__
F f32 rooted(f32 x) { return sqrtf(fabsf(x)); }
F f64 rooted(f64 x) { return sqrt(fabs(x)); }
F f32 least(f32 a, f32 b) { return fminf(a, b); }
F f32 most(f32 a, f32 b) { return fmaxf(a, b); }
F f64 least(f64 a, f64 b) { return fmin(a, b); }
F f64 most(f64 a, f64 b) { return fmax(a, b); }
F i32 to_i32(f32 x) { return __float2int_rz(x); }
F u32 to_u32(f32 x) { return __float2uint_rz(x); }
F i64 to_i64(f64 x) { return __double2ll_rz(x); }
F i32 nearest(f32 x) { return __float2int_rn(x); }
F i32 below(f64 x) { return __double2int_rd(x); }
F u32 ones(u32 x) { return __popc(x); }
F u32 ones(u64 x) { return __popcll(x); }
F u32 zeros(u32 x) { return __clz(x); }
F u32 zeros(u64 x) { return __clzll(x); }
F u32 turned(u32 x) { return __brev(x); }
F u64 turned(u64 x) { return __brevll(x); }
F u32 first(u32 x) { return __ffs(x); }
F u32 high(u32 a, u32 b) { return __umulhi(a, b); }
F i32 high(i32 a, i32 b) { return __mulhi(a, b); }
F u64 high(u64 a, u64 b) { return __umul64hi(a, b); }
F u32 permute(u32 a, u32 b, u32 s) { return __byte_perm(a, b, s); }
F u32 funnel(u32 a, u32 b, u32 s) { return __funnelshift_l(a, b, s); }
F u32 sum_of_differences(i32 a, i32 b, u32 c) { return __sad(a, b, c); }
#ifdef __CUDACC_DEBUG__  // nvcc refuses `__dp4a` with -G.
F i32 dot(i32 a, i32 b, i32 c) {
  u32 y = c;
  for (int i = 0; i < 4; ++i) y += (u32)((i32)(i8)((u32)a >> 8 * i) * (i32)(i8)((u32)b >> 8 * i));
  return y;
}
#else
F i32 dot(i32 a, i32 b, i32 c) { return __dp4a(a, b, c); }
#endif
F u32 bytes_sum(u32 a, u32 b) { return __vadd4(a, b); }
F u32 bytes_most(u32 a, u32 b) { return __vmaxu4(a, b); }
F u32 halves_difference(u32 a, u32 b) { return __vabsdiffs2(a, b); }
F f16 half_of(f32 x) { return __float2half_rn(x); }
F f32 single_of(f16 x) { return __half2float(x); }
F f16 half_sum(f16 a, f16 b) { return __hadd_rn(a, b); }
F f16 half_product(f16 a, f16 b) { return __hmul_rn(a, b); }
#else
F f32 rooted(f32 x) { return sqrtf(fabsf(x)); }
F f64 rooted(f64 x) { return sqrt(fabs(x)); }
template <class T> static T least_of(T a, T b) { return a != a ? b : b != b ? a : a < b ? a : b < a ? b : std::signbit(a) ? a : b; }
template <class T> static T most_of(T a, T b) { return a != a ? b : b != b ? a : a > b ? a : b > a ? b : std::signbit(a) ? b : a; }
F f32 least(f32 a, f32 b) { return least_of(a, b); }
F f32 most(f32 a, f32 b) { return most_of(a, b); }
F f64 least(f64 a, f64 b) { return least_of(a, b); }
F f64 most(f64 a, f64 b) { return most_of(a, b); }
F i32 to_i32(f32 x) { return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (i32)x; }
F u32 to_u32(f32 x) { return x != x ? 0 : x >= 0x1p32f ? UINT32_MAX : x <= 0 ? 0 : (u32)x; }
F i64 to_i64(f64 x) { return x != x ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (i64)x; }
F i32 nearest(f32 x) { return to_i32(nearbyintf(x)); }
// A device makes of NaN in f32 a zero, of NaN in f64 the least number.
F i32 below(f64 x) { f64 y = floor(x); return x != x ? INT32_MIN : y >= 0x1p31 ? INT32_MAX : y <= -0x1p31 ? INT32_MIN : (i32)y; }
F u32 ones(u32 x) { return __builtin_popcount(x); }
F u32 ones(u64 x) { return __builtin_popcountll(x); }
F u32 zeros(u32 x) { return x ? __builtin_clz(x) : 32; }
F u32 zeros(u64 x) { return x ? __builtin_clzll(x) : 64; }
F u32 turned(u32 x) { u32 y = 0; for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i); return y; }
F u64 turned(u64 x) { u64 y = 0; for (int i = 0; i < 64; ++i) y |= (x >> i & 1) << (63 - i); return y; }
F u32 first(u32 x) { return __builtin_ffs((int)x); }
F u32 high(u32 a, u32 b) { return (u64)a * b >> 32; }
F i32 high(i32 a, i32 b) { return (i64)a * b >> 32; }
F u64 high(u64 a, u64 b) { return (unsigned __int128)a * b >> 64; }
F u32 permute(u32 a, u32 b, u32 s) {
  u64 all = (u64)b << 32 | a;
  u32 y = 0;
  for (int i = 0; i < 4; ++i) y |= (u32)(all >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
  return y;
}
F u32 funnel(u32 a, u32 b, u32 s) { return ((u64)b << 32 | a) << (s & 31) >> 32; }
F u32 sum_of_differences(i32 a, i32 b, u32 c) { return c + (u32)(a > b ? (u32)a - (u32)b : (u32)b - (u32)a); }
F i32 dot(i32 a, i32 b, i32 c) {
  u32 y = c;
  for (int i = 0; i < 4; ++i) y += (u32)((i32)(i8)((u32)a >> 8 * i) * (i32)(i8)((u32)b >> 8 * i));
  return y;
}
F u32 bytes_sum(u32 a, u32 b) { u32 y = 0; for (int i = 0; i < 32; i += 8) y |= ((a >> i) + (b >> i) & 255) << i; return y; }
F u32 bytes_most(u32 a, u32 b) { u32 y = 0; for (int i = 0; i < 32; i += 8) { u32 p = a >> i & 255, q = b >> i & 255; y |= (p > q ? p : q) << i; } return y; }
F u32 halves_difference(u32 a, u32 b) { u32 y = 0; for (int i = 0; i < 32; i += 16) { i32 d = (i32)(i16)(a >> i) - (i32)(i16)(b >> i); y |= ((u32)(d < 0 ? -d : d) & 65535) << i; } return y; }
F f16 half_of(f32 x) { return (f16)x; }
F f32 single_of(f16 x) { return (f32)x; }
F f16 half_sum(f16 a, f16 b) { return (f16)((f32)a + (f32)b); }
F f16 half_product(f16 a, f16 b) { return (f16)((f32)a * (f32)b); }
#endif

// A thread's variables.
struct State {
  u32 a0, a1, a2, a3;
  i32 b0, b1;
  u64 c0, c1;
  i64 d0;
  f32 e0, e1, e2;
  f64 g0, g1;
  u8 m0;
  i8 m1;
  u16 m2;
  i16 m3;
  f16 n0, n1;
};

F State begin(u32 id, u32 seed) {
  State s;
  u64 h = mix(seed, id);
#define NEXT (h = mix(h, 0x1234567))
  s.a0 = NEXT; s.a1 = NEXT; s.a2 = NEXT; s.a3 = NEXT >> 20;
  s.b0 = (i32)(u32)NEXT; s.b1 = (i32)(NEXT >> 40) - 1000;
  s.c0 = NEXT; s.c1 = NEXT; s.d0 = (i64)NEXT;
  s.e0 = (f32)(i32)(NEXT >> 40) * 0.001f; s.e1 = (f32)(i32)(u32)NEXT * 1e-6f; s.e2 = (f32)(NEXT & 1023) * 0.25f - 100.0f;
  s.g0 = (f64)(i64)NEXT * 1e-12; s.g1 = (f64)(i32)(u32)NEXT * 0.125;
  s.m0 = (u8)NEXT; s.m1 = (i8)(u8)NEXT; s.m2 = (u16)NEXT; s.m3 = (i16)(u16)NEXT;
  s.n0 = half_of((f32)(NEXT & 255) * 0.03125f); s.n1 = half_of((f32)(NEXT & 4095) - 2048.0f);
  return s;
}

F u64 finish(const State &s) {
  u64 h = mix(1, s.a0);
  h = mix(h, s.a1); h = mix(h, s.a2); h = mix(h, s.a3); h = mix(h, (u32)s.b0); h = mix(h, (u32)s.b1);
  h = mix(h, s.c0); h = mix(h, s.c1); h = mix(h, (u64)s.d0);
  h = mix(h, bits(s.e0)); h = mix(h, bits(s.e1)); h = mix(h, bits(s.e2)); h = mix(h, bits(s.g0)); h = mix(h, bits(s.g1));
  h = mix(h, s.m0); h = mix(h, (u8)s.m1); h = mix(h, s.m2); h = mix(h, (u16)s.m3);
  return mix(mix(h, bits(single_of(s.n0))), bits(single_of(s.n1)));
}
