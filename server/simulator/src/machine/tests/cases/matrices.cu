// Multiplications of matrices by the lanes of a warp. Where elements lie in fragments is written as the PTX ISA says it, shape by shape ("Matrix
// Fragments for mma.…"); the host computes what is expected from the matrices alone.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// g: groupID, t: threadID_in_group, i: the element's number.
struct F16K16 {
  static constexpr int M = 16, N = 8, K = 16, A = 8, B = 4, C = 4, Bits = 16;
  static __device__ int ar(int g, int, int i) { return (i < 2 || (i >= 4 && i < 6)) ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8; }
  static __device__ int br(int, int t, int i) { return i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8; }
  static __device__ int bc(int g, int, int) { return g; }
  static __device__ int cr(int g, int, int i) { return i < 2 ? g : g + 8; }
  static __device__ int cc(int, int t, int i) { return t * 2 + (i & 1); }
};
struct F16K8 : F16K16 {
  static constexpr int K = 8, A = 4, B = 2;
  static __device__ int ar(int g, int, int i) { return i < 2 ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return t * 2 + (i & 1); }
  static __device__ int br(int, int t, int i) { return t * 2 + i; }
};
struct Tf32K8 : F16K16 {
  static constexpr int K = 8, A = 4, B = 2, Bits = 32;
  static __device__ int ar(int g, int, int i) { return (i == 0 || i == 2) ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return i < 2 ? t : t + 4; }
  static __device__ int br(int, int t, int i) { return i == 0 ? t : t + 4; }
};
struct Tf32K4 : F16K16 {
  static constexpr int K = 4, A = 2, B = 1, Bits = 32;
  static __device__ int ar(int g, int, int i) { return i == 0 ? g : g + 8; }
  static __device__ int ac(int, int t, int) { return t; }
  static __device__ int br(int, int t, int) { return t; }
};
struct F64K4 : Tf32K4 { static constexpr int Bits = 64; };
struct F64K8 : Tf32K8 { static constexpr int Bits = 64; };
struct F64K16 : F16K16 {
  static constexpr int Bits = 64;
  static __device__ int ar(int g, int, int i) { return i % 2 == 0 ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return i / 2 * 4 + t; }
  static __device__ int br(int, int t, int i) { return i * 4 + t; }
};
struct F64M8 : F16K16 {
  static constexpr int M = 8, K = 4, A = 1, B = 1, C = 2, Bits = 64;
  static __device__ int ar(int g, int, int) { return g; }
  static __device__ int ac(int, int t, int) { return t; }
  static __device__ int br(int, int t, int) { return t; }
  static __device__ int cr(int g, int, int) { return g; }
};
struct I8K32 : F16K16 {
  static constexpr int K = 32, A = 16, B = 8, Bits = 8;
  static __device__ int ar(int g, int, int i) { return (i < 4 || (i >= 8 && i < 12)) ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16; }
  static __device__ int br(int, int t, int i) { return i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16; }
};
struct I8K16 : F16K16 {
  static constexpr int K = 16, A = 8, B = 4, Bits = 8;
  static __device__ int ar(int g, int, int i) { return i < 4 ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return t * 4 + (i & 3); }
  static __device__ int br(int, int t, int i) { return t * 4 + i; }
};
struct I8M8 : F64M8 {
  static constexpr int K = 16, A = 4, B = 4, Bits = 8;
  static __device__ int ac(int, int t, int i) { return t * 4 + i; }
  static __device__ int br(int, int t, int i) { return t * 4 + i; }
};
struct I4K64 : F16K16 {
  static constexpr int K = 64, A = 32, B = 16, Bits = 4;
  static __device__ int ar(int g, int, int i) { return (i < 8 || (i >= 16 && i < 24)) ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32; }
  static __device__ int br(int, int t, int i) { return i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32; }
};
struct I4K32 : F16K16 {
  static constexpr int K = 32, A = 16, B = 8, Bits = 4;
  static __device__ int ar(int g, int, int i) { return i < 8 ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return t * 8 + (i & 7); }
  static __device__ int br(int, int t, int i) { return t * 8 + i; }
};
struct I4M8 : F64M8 {
  static constexpr int K = 32, A = 8, B = 8, Bits = 4;
  static __device__ int ac(int, int t, int i) { return t * 8 + i; }
  static __device__ int br(int, int t, int i) { return t * 8 + i; }
};
struct B1K256 : F16K16 {
  static constexpr int K = 256, A = 128, B = 64, Bits = 1;
  static __device__ int ar(int g, int, int i) { return (i < 32 || (i >= 64 && i < 96)) ? g : g + 8; }
  static __device__ int ac(int, int t, int i) { return i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128; }
  static __device__ int br(int, int t, int i) { return i < 32 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128; }
};
struct B1M8 : F64M8 {
  static constexpr int K = 128, A = 32, B = 32, Bits = 1;
  static __device__ int ac(int, int t, int i) { return t * 32 + i; }
  static __device__ int br(int, int t, int i) { return t * 32 + i; }
};
// Quad pairs: each of the four multiplies matrices of its own, 8 x 4 and 4 x 8, all with .row.col.
struct F16M8 {
  static constexpr int M = 32, N = 8, K = 4, A = 4, B = 4, C = 8, Bits = 16;
  static __device__ int lane() { return threadIdx.x & 31; }
  static __device__ int quad() { return lane() % 16 / 4; }
  static __device__ int ar(int, int, int) { return quad() * 8 + (lane() < 16 ? lane() % 4 : lane() % 4 + 4); }
  static __device__ int ac(int, int, int i) { return i; }
  static __device__ int br(int, int, int i) { return i; }
  static __device__ int bc(int, int, int) { return quad() * 8 + (lane() < 16 ? lane() % 4 : lane() % 4 + 4); }
  static __device__ int cr(int, int, int i) {
    int x = (lane() & 1) + (i & 2);
    return quad() * 8 + (lane() < 16 ? x : x + 4);
  }
  static __device__ int cc(int, int, int i) { return (i & 4) + (lane() & 2) + (i & 1); }
};

// Matrices hold an element in a cell of 8 bytes: a is M x K by rows, b is K x N (the quad pairs': K x 32) by rows.
template <class S> struct Fragments {
  static constexpr int Wide = S::K == 4 && S::M == 32 ? 32 : S::N;
  unsigned a[S::A * S::Bits / 32 ? S::A * S::Bits / 32 : 1], b[S::B * S::Bits / 32 ? S::B * S::Bits / 32 : 1];
  double da[S::A], db[S::B];
  int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
  __device__ Fragments(const uint64_t *A, const uint64_t *B) {
    for (unsigned &w : a) w = 0;
    for (unsigned &w : b) w = 0;
    for (int i = 0; i < S::A; ++i) {
      uint64_t v = A[S::ar(g, t, i) * S::K + S::ac(g, t, i)];
      if (S::Bits == 64) da[i] = __longlong_as_double(v);
      else a[i * S::Bits / 32] |= (unsigned)v << (i * S::Bits % 32);
    }
    for (int i = 0; i < S::B; ++i) {
      uint64_t v = B[S::br(g, t, i) * Wide + S::bc(g, t, i)];
      if (S::Bits == 64) db[i] = __longlong_as_double(v);
      else b[i * S::Bits / 32] |= (unsigned)v << (i * S::Bits % 32);
    }
  }
  template <class T> __device__ void load(const T *C, T *c) {
    for (int i = 0; i < S::C; ++i) c[i] = C[S::cr(g, t, i) * S::N + S::cc(g, t, i)];
  }
  template <class T> __device__ void store(T *D, const T *d) {
    for (int i = 0; i < S::C; ++i) D[S::cr(g, t, i) * S::N + S::cc(g, t, i)] = d[i];
  }
};

#define KERNEL(name, S, T) \
  extern "C" __global__ void name(const uint64_t *A, const uint64_t *B, const T *C, T *D) { \
    Fragments<S> f(A, B); \
    T c[S::C]; \
    f.load(C, c); \
    multiply_##name(f.a, f.b, f.da, f.db, c); \
    f.store(D, c); \
  }
#define MULTIPLY(name, T) \
  __device__ void multiply_##name(const unsigned *a, const unsigned *b, const double *da, const double *db, T *c)

#define M16(name, S, T, k, reg, text) \
  MULTIPLY(name, T) { \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
        : "+" reg(c[0]), "+" reg(c[1]), "+" reg(c[2]), "+" reg(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
  } \
  KERNEL(name, S, T)
#define M16HALF(name, S, T, k, reg, text) \
  MULTIPLY(name, T) { \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" \
        : "+" reg(c[0]), "+" reg(c[1]), "+" reg(c[2]), "+" reg(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0])); \
  } \
  KERNEL(name, S, T)
#define M8(name, S, T, reg, text) \
  MULTIPLY(name, T) { \
    asm volatile("mma.sync.aligned." text " {%0,%1}, {%2}, {%3}, {%0,%1};" : "+" reg(c[0]), "+" reg(c[1]) : "r"(a[0]), "r"(b[0])); \
  } \
  KERNEL(name, S, T)

M16(f16_k16, F16K16, float, 16, "f", "m16n8k16.row.col.f32.f16.f16.f32")
M16HALF(f16_k8, F16K8, float, 8, "f", "m16n8k8.row.col.f32.f16.f16.f32")
M16(bf16_k16, F16K16, float, 16, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
M16HALF(bf16_k8, F16K8, float, 8, "f", "m16n8k8.row.col.f32.bf16.bf16.f32")
M16(tf32_k8, Tf32K8, float, 8, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
M16HALF(tf32_k4, Tf32K4, float, 4, "f", "m16n8k4.row.col.f32.tf32.tf32.f32")
M16(e4m3_k32, I8K32, float, 32, "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")
M16(e5m2_k32, I8K32, float, 32, "f", "m16n8k32.row.col.f32.e5m2.e5m2.f32")
M16(s8_k32, I8K32, int, 32, "r", "m16n8k32.row.col.s32.s8.s8.s32")
M16(u8_s8_k32, I8K32, int, 32, "r", "m16n8k32.row.col.s32.u8.s8.s32")
M16(s8_k32_sat, I8K32, int, 32, "r", "m16n8k32.row.col.satfinite.s32.s8.s8.s32")
M16HALF(s8_k16, I8K16, int, 16, "r", "m16n8k16.row.col.s32.s8.s8.s32")
M8(s8_m8, I8M8, int, "r", "m8n8k16.row.col.s32.s8.s8.s32")
M16(s4_k64, I4K64, int, 64, "r", "m16n8k64.row.col.s32.s4.s4.s32")
M16HALF(u4_k32, I4K32, int, 32, "r", "m16n8k32.row.col.s32.u4.u4.s32")
M8(s4_m8, I4M8, int, "r", "m8n8k32.row.col.s32.s4.s4.s32")
M16(b1_xor, B1K256, int, 256, "r", "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
M16(b1_and, B1K256, int, 256, "r", "m16n8k256.row.col.s32.b1.b1.s32.and.popc")
M8(b1_m8, B1M8, int, "r", "m8n8k128.row.col.s32.b1.b1.s32.xor.popc")

MULTIPLY(f16_half, __half) {
  unsigned *w = (unsigned *)c;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
      : "+r"(w[0]), "+r"(w[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
KERNEL(f16_half, F16K16, __half)
MULTIPLY(f16_m8, float) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
KERNEL(f16_m8, F16M8, float)
MULTIPLY(f64_m8, double) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[0]), "+d"(c[1]) : "d"(da[0]), "d"(db[0]));
}
KERNEL(f64_m8, F64M8, double)
MULTIPLY(f64_k4, double) {
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(da[0]), "d"(da[1]), "d"(db[0]));
}
KERNEL(f64_k4, F64K4, double)
MULTIPLY(f64_k8, double) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(da[0]), "d"(da[1]), "d"(da[2]), "d"(da[3]), "d"(db[0]), "d"(db[1]));
}
KERNEL(f64_k8, F64K8, double)
MULTIPLY(f64_k16, double) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(da[0]), "d"(da[1]), "d"(da[2]), "d"(da[3]), "d"(da[4]), "d"(da[5]), "d"(da[6]), "d"(da[7]), "d"(db[0]), "d"(db[1]), "d"(db[2]), "d"(db[3]));
}
KERNEL(f64_k16, F64K16, double)

// Sparse: a has half of its columns. E holds 4 bits for each chunk of a row (2 columns of a). Of four lanes, those that the selector names hold
// the bits: of row g in the lower half, of row g + 8 in the upper; one lane for four chunks.
#define SPARSE(name, S, Dense, k, selector, text, ...) \
  extern "C" __global__ void name(const uint64_t *A, const unsigned *E, const uint64_t *B, const float *C, float *D) { \
    Fragments<S> f(A, A); \
    Fragments<Dense> whole(B, B); \
    unsigned e = 0xbad00bad, b[4] = {whole.b[0], whole.b[1], 0, 0}; \
    int g = f.g, part = k == 2 ? f.t - 2 * selector : f.t == selector ? 0 : -1; \
    if (part >= 0 && part < k) e = (E[g] >> (16 * part) & 0xffff) | (E[g + 8] >> (16 * part)) << 16; \
    if (k == 2) { \
      Fragments<Dense> upper(B, B + Dense::K * 8); \
      b[2] = upper.b[0], b[3] = upper.b[1]; \
    } \
    float c[4]; \
    f.load(C, c); \
    asm volatile("mma.sp" text : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(e), __VA_ARGS__); \
    f.store(D, c); \
  }
// The first fragment's b is not used: its places lie within A.
SPARSE(sparse_f16_k32, F16K16, F16K16, 2, 1, ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%5,%6,%7,%8}, {%9,%10,%11,%12}, {%0,%1,%2,%3}, %4, 0x1;",
       "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]))
SPARSE(sparse_f16_k16, F16K8, F16K16, 1, 3, "::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%5,%6}, {%7,%8}, {%0,%1,%2,%3}, %4, 0x3;",
       "r"(f.a[0]), "r"(f.a[1]), "r"(b[0]), "r"(b[1]))
SPARSE(sparse_tf32_k16, Tf32K8, Tf32K8, 2, 0, "::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%5,%6,%7,%8}, {%9,%10,%11,%12}, {%0,%1,%2,%3}, %4, 0x0;",
       "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]))

// Of 8 and 4 bits a lane holds eight chunks: of row g, or of row g + 8. E has 64 bits a row.
#define SPARSE_INTEGERS(name, S, wide, selector, text) \
  extern "C" __global__ void name(const uint64_t *A, const unsigned *E, const uint64_t *B, const int *C, int *D) { \
    Fragments<S> f(A, B), upper(A, B + S::K * 8); \
    int g = f.g, t = f.t, row = g + 8 * (t % 2); \
    unsigned e = wide ? E[row * 2 + t / 2] : t / 2 == selector ? E[row * 2] : 0xbad00bad; \
    int c[4]; \
    f.load(C, c); \
    asm volatile("mma.sp::ordered_metadata.sync.aligned." text : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) \
        : "r"(e), "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2 % (sizeof f.a / 4)]), "r"(f.a[3 % (sizeof f.a / 4)]), "r"(f.b[0]), "r"(f.b[1 % (sizeof f.b / 4)]), "r"(upper.b[0]), "r"(upper.b[1 % (sizeof f.b / 4)])); \
    f.store(D, c); \
  }
SPARSE_INTEGERS(sparse_s8_k64, I8K32, 1, 0, "m16n8k64.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%5,%6,%7,%8}, {%9,%10,%11,%12}, {%0,%1,%2,%3}, %4, 0x0;")
SPARSE_INTEGERS(sparse_s8_k32, I8K16, 0, 1, "m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%5,%6}, {%9,%11}, {%0,%1,%2,%3}, %4, 0x1;")
SPARSE_INTEGERS(sparse_s4_k128, I4K64, 1, 0, "m16n8k128.row.col.s32.s4.s4.s32 {%0,%1,%2,%3}, {%5,%6,%7,%8}, {%9,%10,%11,%12}, {%0,%1,%2,%3}, %4, 0x0;")

// wmma: matrices as they are in memory; d = a b + c, and then every element of d is doubled in its fragment.
#define WMMA(name, M, N, K, T, TC, LA, LB, LC, lda, ldb) \
  extern "C" __global__ void name(const T *A, const T *B, const TC *C, TC *D) { \
    wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::LA> a; \
    wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::LB> b; \
    wmma::fragment<wmma::accumulator, M, N, K, TC> c; \
    wmma::load_matrix_sync(a, A, lda); \
    wmma::load_matrix_sync(b, B, ldb); \
    wmma::load_matrix_sync(c, C, N, wmma::LC); \
    wmma::mma_sync(c, a, b, c); \
    for (int i = 0; i < c.num_elements; ++i) c.x[i] = c.x[i] + c.x[i]; \
    wmma::store_matrix_sync(D, c, N, wmma::LC); \
  }
WMMA(wmma_f16_16, 16, 16, 16, __half, float, row_major, col_major, mem_row_major, 16, 16)
WMMA(wmma_f16_32, 32, 8, 16, __half, float, row_major, row_major, mem_row_major, 16, 8)
WMMA(wmma_f16_8, 8, 32, 16, __half, float, col_major, col_major, mem_row_major, 8, 16)
WMMA(wmma_bf16_32, 32, 8, 16, __nv_bfloat16, float, row_major, col_major, mem_row_major, 16, 16)
WMMA(wmma_half, 16, 16, 16, __half, __half, row_major, row_major, mem_row_major, 16, 16)
WMMA(wmma_s8_8, 8, 32, 16, signed char, int, row_major, col_major, mem_row_major, 16, 16)
WMMA(wmma_u8_32, 32, 8, 16, unsigned char, int, row_major, row_major, mem_row_major, 16, 8)
WMMA(wmma_f64, 8, 8, 4, double, double, row_major, col_major, mem_row_major, 4, 4)
// tf32 is another type than its memory's.
extern "C" __global__ void wmma_tf32(const float *A, const float *B, const float *C, float *D) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  wmma::load_matrix_sync(a, A, 8);
  wmma::load_matrix_sync(b, B, 16);
  wmma::load_matrix_sync(c, C, 16, wmma::mem_row_major);
  wmma::mma_sync(c, a, b, c);
  for (int i = 0; i < c.num_elements; ++i) c.x[i] = c.x[i] + c.x[i];
  wmma::store_matrix_sync(D, c, 16, wmma::mem_row_major);
}

// Each matrix of 8 x 8 holds 64 m + 8 row + column. The lanes write what they hold.
extern "C" __global__ void rows(unsigned *out) {
  __shared__ alignas(128) uint16_t tile[4][8][8], back[4][8][8];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) ((uint16_t *)tile)[i] = i;
  for (int i = t; i < 256; i += 32) ((uint16_t *)back)[i] = 0xffff;
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(&tile[t / 8][t % 8][0]), r[4];
  unsigned to = (unsigned)__cvta_generic_to_shared(&back[t / 8][t % 8][0]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  for (int j = 0; j < 4; ++j) out[j * 32 + t] = r[j];
  // Stored transposed: back[m] is the transpose of tile[m].
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%4], {%0,%1,%2,%3};" ::"r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(to) : "memory");
  __syncwarp();
  for (int i = t; i < 256; i += 32) out[128 + i] = ((uint16_t *)back)[i];
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  out[384 + t] = r[0], out[416 + t] = r[1];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[1]) : "r"(r[0]));
  out[448 + t] = r[1];
}

// Half of the lanes go round so long that the others come to the instruction before them.
extern "C" __global__ void late(unsigned *out) {
  unsigned t = threadIdx.x, v = 2 * t | (2 * t + 1) << 16, n = 0;
  if (t < 16)
    for (int i = 0; i < 5000; ++i) asm volatile("add.u32 %0, %0, %1;" : "+r"(n) : "r"(i));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(v) : "r"(v));
  out[t] = v, out[32 + t] = n;
}

// Wrong: how 0 reads beyond shared memory, 1 at an address that is no multiple of 16, 2 what nobody wrote.
extern "C" __global__ void wrong_rows(int how, unsigned *out) {
  __shared__ alignas(16) uint16_t tile[8][8];
  int t = threadIdx.x;
  if (how != 2) ((unsigned *)tile)[t] = t;
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(&tile[t % 8][0]) + (how == 0 ? 4096 : how == 1 ? 2 : 0), r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(at));
  out[t] = r;
}
