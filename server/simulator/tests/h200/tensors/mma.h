// mma.sync, dense and sparse: registers are filled as they are, whatever element each holds.
#pragma once
#include "line.h"

template <class I>
__global__ void registers(const typename I::Word *a, const typename I::Word *b, const typename I::Word *c, const unsigned *e, typename I::Word *d) {
  using W = typename I::Word;
  const int tile = blockIdx.x, lane = threadIdx.x;
  W ra[I::A], rb[I::B], rc[I::C], rd[I::D];
  for (int i = 0; i < I::A; ++i) ra[i] = a[(tile * I::A + i) * 32 + lane];
  for (int i = 0; i < I::B; ++i) rb[i] = b[(tile * I::B + i) * 32 + lane];
  for (int i = 0; i < I::C; ++i) rc[i] = c[(tile * I::C + i) * 32 + lane];
  I::run(rd, ra, rb, rc, I::Sparse ? e[tile * 32 + lane] : 0);
  for (int i = 0; i < I::D; ++i) d[(tile * I::D + i) * 32 + lane] = rd[i];
}

template <class I> static Line mma_line(const char *text) {
  using W = typename I::Word;
  std::vector<std::string> t = types(text);
  Line line;
  line.name = text;
  line.inputs = {{t[1], I::A * 32 * sizeof(W), false}, {t[2], I::B * 32 * sizeof(W), false}, {t[3], I::C * 32 * sizeof(W), true}};
  if (I::Sparse) line.inputs.push_back({I::Sparse == 32 ? "metadata32" : "metadata", 128, false});
  line.result = I::D * 32 * sizeof(W);
  line.tiles = 256;
  line.kinds = kinds_of(t[1]);
  line.run = [](unsigned char *const *in, unsigned char *out, int tiles) {
    registers<I><<<tiles, 32>>>((const W *)in[0], (const W *)in[1], (const W *)in[2], (const unsigned *)in[3], (W *)out);
  };
  return line;
}

#define IN1(r, x) r(x[0])
#define IN2(r, x) r(x[0]), r(x[1])
#define IN4(r, x) r(x[0]), r(x[1]), r(x[2]), r(x[3])
#define IN8(r, x) IN4(r, x), r(x[4]), r(x[5]), r(x[6]), r(x[7])
#define TEXT_2112 "{%0,%1},{%2},{%3},{%4,%5}"
#define TEXT_2212 "{%0,%1},{%2,%3},{%4},{%5,%6}"
#define TEXT_2422 "{%0,%1},{%2,%3,%4,%5},{%6,%7},{%8,%9}"
#define TEXT_4214 "{%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10}"
#define TEXT_4224 "{%0,%1,%2,%3},{%4,%5},{%6,%7},{%8,%9,%10,%11}"
#define TEXT_4424 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13}"
#define TEXT_4844 "{%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%16,%17,%18,%19}"
#define TEXT_8224 "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},{%12,%13,%14,%15}"
#define TEXT_8228 "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},{%12,%13,%14,%15,%16,%17,%18,%19}"
#define TEXT_2222 "{%0,%1},{%2,%3},{%4,%5},{%6,%7},%8,"
#define TEXT_2442 "{%0,%1},{%2,%3,%4,%5},{%6,%7,%8,%9},{%10,%11},%12,"
#define SPARSE_4224 TEXT_4224 ",%12,"
#define TEXT_4444 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%12,%13,%14,%15},%16,"

#define MMA(d, a, b, c, reg, W, text) MMA_AT(JOIN(I, __LINE__), d, a, b, c, reg, W, text)
#define MMA_AT(id, d, a, b, c, reg, W, text) \
  struct id { \
    using Word = W; \
    static constexpr int D = d, A = a, B = b, C = c, Sparse = 0; \
    static __device__ void run(W *rd, const W *ra, const W *rb, const W *rc, unsigned) { \
      asm volatile("mma.sync.aligned." text " " TEXT_##d##a##b##c ";" : IN##d("=" reg, rd) : IN##a(reg, ra), IN##b(reg, rb), IN##c(reg, rc)); \
    } \
  }; \
  static Add JOIN(add, id)(mma_line<id>(text));
#define WORDS(d, a, b, c, text) MMA(d, a, b, c, "r", unsigned, text)
#define DOUBLES(d, a, b, c, text) MMA(d, a, b, c, "l", unsigned long long, text)

namespace dense {
WORDS(4, 4, 2, 4, "m16n8k16.row.col.f32.f16.f16.f32")
WORDS(4, 2, 1, 4, "m16n8k8.row.col.f32.f16.f16.f32")
WORDS(2, 4, 2, 2, "m16n8k16.row.col.f16.f16.f16.f16")
WORDS(2, 2, 1, 2, "m16n8k8.row.col.f16.f16.f16.f16")
WORDS(8, 2, 2, 8, "m8n8k4.row.col.f32.f16.f16.f32")
WORDS(8, 2, 2, 8, "m8n8k4.row.row.f32.f16.f16.f32")
WORDS(8, 2, 2, 8, "m8n8k4.col.col.f32.f16.f16.f32")
WORDS(8, 2, 2, 8, "m8n8k4.col.row.f32.f16.f16.f32")
WORDS(8, 2, 2, 4, "m8n8k4.row.col.f32.f16.f16.f16")
WORDS(4, 2, 2, 4, "m8n8k4.row.col.f16.f16.f16.f16")
WORDS(4, 2, 2, 4, "m8n8k4.col.row.f16.f16.f16.f16")
WORDS(4, 4, 2, 4, "m16n8k16.row.col.f32.bf16.bf16.f32")
WORDS(4, 2, 1, 4, "m16n8k8.row.col.f32.bf16.bf16.f32")
WORDS(4, 4, 2, 4, "m16n8k8.row.col.f32.tf32.tf32.f32")
WORDS(4, 2, 1, 4, "m16n8k4.row.col.f32.tf32.tf32.f32")
DOUBLES(2, 1, 1, 2, "m8n8k4.row.col.f64.f64.f64.f64")
DOUBLES(4, 2, 1, 4, "m16n8k4.row.col.f64.f64.f64.f64")
DOUBLES(4, 4, 2, 4, "m16n8k8.row.col.f64.f64.f64.f64")
DOUBLES(4, 8, 4, 4, "m16n8k16.row.col.f64.f64.f64.f64")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.f32.e4m3.e5m2.f32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.f32.e5m2.e4m3.f32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.f32.e5m2.e5m2.f32")
WORDS(4, 2, 1, 4, "m16n8k16.row.col.f32.e4m3.e4m3.f32")
WORDS(4, 2, 1, 4, "m16n8k16.row.col.f32.e5m2.e5m2.f32")
WORDS(2, 1, 1, 2, "m8n8k16.row.col.s32.s8.s8.s32")
WORDS(2, 1, 1, 2, "m8n8k16.row.col.satfinite.s32.u8.s8.s32")
WORDS(4, 2, 1, 4, "m16n8k16.row.col.s32.s8.s8.s32")
WORDS(4, 2, 1, 4, "m16n8k16.row.col.satfinite.s32.s8.u8.s32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.s32.s8.s8.s32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.s32.s8.u8.s32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.s32.u8.s8.s32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.s32.u8.u8.s32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.satfinite.s32.s8.s8.s32")
WORDS(4, 4, 2, 4, "m16n8k32.row.col.satfinite.s32.u8.u8.s32")
WORDS(2, 1, 1, 2, "m8n8k32.row.col.s32.s4.s4.s32")
WORDS(2, 1, 1, 2, "m8n8k32.row.col.satfinite.s32.u4.s4.s32")
WORDS(4, 2, 1, 4, "m16n8k32.row.col.s32.s4.u4.s32")
WORDS(4, 4, 2, 4, "m16n8k64.row.col.s32.s4.s4.s32")
WORDS(4, 4, 2, 4, "m16n8k64.row.col.satfinite.s32.u4.u4.s32")
WORDS(2, 1, 1, 2, "m8n8k128.row.col.s32.b1.b1.s32.xor.popc")
WORDS(2, 1, 1, 2, "m8n8k128.row.col.s32.b1.b1.s32.and.popc")
WORDS(4, 2, 1, 4, "m16n8k128.row.col.s32.b1.b1.s32.xor.popc")
WORDS(4, 2, 1, 4, "m16n8k128.row.col.s32.b1.b1.s32.and.popc")
WORDS(4, 4, 2, 4, "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
WORDS(4, 4, 2, 4, "m16n8k256.row.col.s32.b1.b1.s32.and.popc")
}  // namespace dense

#undef TEXT_4224
#define TEXT_4224 "{%0,%1,%2,%3},{%4,%5},{%6,%7},{%8,%9,%10,%11},%12,"
// wide: bits of an element of a.
#define SPARSE(d, a, b, c, wide, selector, text) SPARSE_AT(JOIN(I, __LINE__), d, a, b, c, wide, selector, text)
#define SPARSE_AT(id, d, a, b, c, wide, selector, text) \
  struct id { \
    using Word = unsigned; \
    static constexpr int D = d, A = a, B = b, C = c, Sparse = wide; \
    static __device__ void run(unsigned *rd, const unsigned *ra, const unsigned *rb, const unsigned *rc, unsigned e) { \
      asm volatile("mma.sp::ordered_metadata.sync.aligned." text " " TEXT_##d##a##b##c selector ";" \
                   : IN##d("=r", rd) : IN##a("r", ra), IN##b("r", rb), IN##c("r", rc), "r"(e)); \
    } \
  }; \
  static Add JOIN(add, id)(mma_line<id>("sp." text "." selector));

namespace sparse {
SPARSE(4, 4, 4, 4, 16, "0", "m16n8k32.row.col.f32.f16.f16.f32")
SPARSE(4, 4, 4, 4, 16, "1", "m16n8k32.row.col.f32.f16.f16.f32")
SPARSE(2, 4, 4, 2, 16, "0", "m16n8k32.row.col.f16.f16.f16.f16")
SPARSE(4, 2, 2, 4, 16, "0", "m16n8k16.row.col.f32.f16.f16.f32")
SPARSE(4, 2, 2, 4, 16, "1", "m16n8k16.row.col.f32.f16.f16.f32")
SPARSE(4, 2, 2, 4, 16, "2", "m16n8k16.row.col.f32.f16.f16.f32")
SPARSE(4, 2, 2, 4, 16, "3", "m16n8k16.row.col.f32.f16.f16.f32")
SPARSE(2, 2, 2, 2, 16, "0", "m16n8k16.row.col.f16.f16.f16.f16")
SPARSE(4, 4, 4, 4, 16, "0", "m16n8k32.row.col.f32.bf16.bf16.f32")
SPARSE(4, 2, 2, 4, 16, "2", "m16n8k16.row.col.f32.bf16.bf16.f32")
SPARSE(4, 4, 4, 4, 32, "0", "m16n8k16.row.col.f32.tf32.tf32.f32")
SPARSE(4, 4, 4, 4, 32, "1", "m16n8k16.row.col.f32.tf32.tf32.f32")
SPARSE(4, 2, 2, 4, 32, "0", "m16n8k8.row.col.f32.tf32.tf32.f32")
SPARSE(4, 2, 2, 4, 32, "3", "m16n8k8.row.col.f32.tf32.tf32.f32")
SPARSE(4, 4, 4, 4, 8, "0", "m16n8k64.row.col.f32.e4m3.e4m3.f32")
SPARSE(4, 4, 4, 4, 8, "0", "m16n8k64.row.col.f32.e5m2.e4m3.f32")
SPARSE(4, 4, 4, 4, 8, "0", "m16n8k64.row.col.s32.s8.s8.s32")
SPARSE(4, 4, 4, 4, 8, "0", "m16n8k64.row.col.satfinite.s32.u8.s8.s32")
SPARSE(4, 2, 2, 4, 8, "0", "m16n8k32.row.col.s32.s8.u8.s32")
SPARSE(4, 2, 2, 4, 8, "1", "m16n8k32.row.col.s32.s8.s8.s32")
SPARSE(4, 4, 4, 4, 4, "0", "m16n8k128.row.col.s32.s4.s4.s32")
SPARSE(4, 2, 2, 4, 4, "1", "m16n8k64.row.col.s32.u4.s4.s32")
}  // namespace sparse
