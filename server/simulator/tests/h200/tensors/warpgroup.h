// wgmma: factors in shared memory (a also in registers), in every layout; memory is filled without regard to the layout.
#pragma once
#include "line.h"

// A matrix in shared memory: the descriptor without its address, the address, and the bytes that it covers.
struct Placed {
  unsigned long long bits;
  unsigned offset, bytes;
};
enum Swizzle { None, By128, By64, By32 };

// `lines`: rows of a or columns of b. `across`: they lie side by side in memory, not what is summed over.
static Placed place(Swizzle swizzle, bool across, int lines, unsigned offset = 0) {
  const unsigned span[] = {16, 128, 64, 32};
  const unsigned s = span[swizzle];
  unsigned leading = 16, stride = 8 * s, bytes = lines * s;
  if (swizzle == None) leading = 128, stride = 256, bytes = lines / 8 * 256;
  else if (across) leading = 16 * s, bytes = (lines * 2 + s - 1) / s * 16 * s;
  return {(unsigned long long)swizzle << 62 | (unsigned long long)(stride >> 4) << 32 | (unsigned long long)(leading >> 4) << 16, offset, bytes};
}

struct Layout {
  Placed a, b;
  int adds;
};

template <class I>
__global__ void __launch_bounds__(128) group(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d, Layout l) {
  extern __shared__ __align__(1024) unsigned image[];
  const int t = threadIdx.x, tile = blockIdx.x;
  constexpr int Room = 2048;  // words
  for (int i = t; !I::Held && i < int(l.a.bytes / 4); i += 128) image[i] = a[tile * (l.a.bytes / 4) + i];
  for (int i = t; i < int(l.b.bytes / 4); i += 128) image[Room + i] = b[tile * (l.b.bytes / 4) + i];
  unsigned rd[I::D], ra[4];
  for (int i = 0; i < I::D; ++i) rd[i] = c[(tile * I::D + i) * 128 + t];
  for (int i = 0; i < 4; ++i) ra[i] = I::Held ? a[(tile * 4 + i) * 128 + t] : 0;
  const unsigned base = (unsigned)__cvta_generic_to_shared(image);
  const unsigned long long da = l.a.bits | (base + l.a.offset) >> 4, db = l.b.bits | (base + Room * 4 + l.b.offset) >> 4;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  I::run(rd, ra, da, db, l.adds);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < I::D; ++i) d[(tile * I::D + i) * 128 + t] = rd[i];
}

template <class I> static Add group_line(const char *text, const char *more, Placed a, Placed b, std::vector<Kind> kinds, int adds = 1) {
  std::string name = "wgmma." + std::string(text) + more;
  std::vector<std::string> t = types(name);
  size_t size = I::D * 512;
  int tiles = size <= 2048 ? 64 : size <= 16384 ? 8 : 2;
  Layout layout = {a, b, adds};
  return Add({name,
              {{t[1], I::Held ? 2048 : a.bytes, false}, {t[2], b.bytes, false}, {t[0], size, true}},
              size,
              tiles,
              kinds,
              [=](unsigned char *const *in, unsigned char *out, int tiles) {
                group<I><<<tiles, 128, 8192 + 32768>>>((unsigned *)in[0], (unsigned *)in[1], (unsigned *)in[2], (unsigned *)out, layout);
              }});
}

#define TEN(p) "%" p "0,%" p "1,%" p "2,%" p "3,%" p "4,%" p "5,%" p "6,%" p "7,%" p "8,%" p "9"
#define D2 "{%0,%1}"
#define D4 "{%0,%1,%2,%3}"
#define D12 "{" TEN("") ",%10,%11}"
#define D32 "{" TEN("") "," TEN("1") "," TEN("2") ",%30,%31}"
#define D128 "{" TEN("") "," TEN("1") "," TEN("2") "," TEN("3") "," TEN("4") "," TEN("5") "," TEN("6") "," TEN("7") "," TEN("8") "," TEN("9") "," TEN("10") "," TEN("11") ",%120,%121,%122,%123,%124,%125,%126,%127}"
#define IO2(x, i) "+r"(x[i]), "+r"(x[i + 1])
#define IO4(x, i) IO2(x, i), IO2(x, i + 2)
#define IO12(x, i) IO4(x, i), IO4(x, i + 4), IO4(x, i + 8)
#define IO32(x, i) IO12(x, i), IO12(x, i + 12), IO4(x, i + 24), IO4(x, i + 28)
#define IO128(x, i) IO32(x, i), IO32(x, i + 32), IO32(x, i + 64), IO32(x, i + 96)
// a and b, and what says whether the accumulator is added, after so many registers.
#define IN_MEMORY2 "%2,%3,p", "%4"
#define IN_MEMORY4 "%4,%5,p", "%6"
#define IN_MEMORY12 "%12,%13,p", "%14"
#define IN_MEMORY32 "%32,%33,p", "%34"
#define IN_MEMORY128 "%128,%129,p", "%130"
#define IN_REGISTERS2 "{%2,%3,%4,%5},%6,p", "%7"
#define IN_REGISTERS4 "{%4,%5,%6,%7},%8,p", "%9"
#define IN_REGISTERS32 "{%32,%33,%34,%35},%36,p", "%37"

#define GROUP_TEXT(d, ab, adds, text, tail) "{.reg .pred p;\n\tsetp.ne.b32 p," adds ",0;\n\twgmma.mma_async.sync.aligned." text " " d "," ab tail ";}"
#define GROUP_TEXT2(d, pair, text, tail) GROUP_TEXT(d, pair, text, tail)
#define MEMORY(id, d, text, tail) \
  struct id { \
    static constexpr int D = d; \
    static constexpr bool Held = false; \
    static __device__ void run(unsigned *rd, const unsigned *, unsigned long long a, unsigned long long b, int adds) { \
      asm volatile(GROUP_TEXT2(D##d, IN_MEMORY##d, text, tail) : IO##d(rd, 0) : "l"(a), "l"(b), "r"(adds)); \
    } \
  };
#define HELD(id, d, text, tail) \
  struct id { \
    static constexpr int D = d; \
    static constexpr bool Held = true; \
    static __device__ void run(unsigned *rd, const unsigned *ra, unsigned long long, unsigned long long b, int adds) { \
      asm volatile(GROUP_TEXT2(D##d, IN_REGISTERS##d, text, tail) : IO##d(rd, 0) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "l"(b), "r"(adds)); \
    } \
  };

namespace warpgroup {
// Sums, and all kinds of numbers: eight columns, side by side along k.
#define SUMS(d, text, tail) SUMS_AT(JOIN(I, __LINE__), d, text, tail)
#define SUMS_AT(id, d, text, tail) \
  MEMORY(id, d, text, tail) \
  static Add JOIN(add, id) = group_line<id>(text, "", place(None, false, 64), place(None, false, 8), kinds_of(types(text)[1]));
#define SUMS_HELD(d, text, tail) SUMS_HELD_AT(JOIN(I, __LINE__), d, text, tail)
#define SUMS_HELD_AT(id, d, text, tail) \
  HELD(id, d, text, tail) \
  static Add JOIN(add, id) = group_line<id>(text, ".registers", place(None, false, 64), place(None, false, 8), kinds_of(types(text)[1]));
SUMS(4, "m64n8k16.f32.f16.f16", ",1,1,0,0")
SUMS(2, "m64n8k16.f16.f16.f16", ",1,1,0,0")
SUMS(4, "m64n8k16.f32.bf16.bf16", ",1,1,0,0")
SUMS(4, "m64n8k8.f32.tf32.tf32", ",1,1")
SUMS(4, "m64n8k32.f32.e4m3.e4m3", ",1,1")
SUMS(4, "m64n8k32.f32.e4m3.e5m2", ",1,1")
SUMS(4, "m64n8k32.f32.e5m2.e4m3", ",1,1")
SUMS(4, "m64n8k32.f32.e5m2.e5m2", ",1,1")
SUMS(2, "m64n8k32.f16.e4m3.e4m3", ",1,1")
SUMS(2, "m64n8k32.f16.e4m3.e5m2", ",1,1")
SUMS(2, "m64n8k32.f16.e5m2.e4m3", ",1,1")
SUMS(2, "m64n8k32.f16.e5m2.e5m2", ",1,1")
SUMS(4, "m64n8k32.s32.s8.s8", "")
SUMS(4, "m64n8k32.s32.s8.u8", "")
SUMS(4, "m64n8k32.s32.u8.s8", "")
SUMS(4, "m64n8k32.s32.u8.u8", "")
SUMS(4, "m64n8k32.s32.s8.s8.satfinite", "")
SUMS(4, "m64n8k32.s32.u8.u8.satfinite", "")
SUMS_HELD(4, "m64n8k16.f32.f16.f16", ",1,1,0")
SUMS_HELD(2, "m64n8k16.f16.f16.f16", ",1,1,0")
SUMS_HELD(4, "m64n8k16.f32.bf16.bf16", ",1,1,0")
SUMS_HELD(4, "m64n8k8.f32.tf32.tf32", ",1,1")
SUMS_HELD(4, "m64n8k32.f32.e4m3.e4m3", ",1,1")
SUMS_HELD(2, "m64n8k32.f16.e5m2.e4m3", ",1,1")
SUMS_HELD(4, "m64n8k32.s32.u8.s8", "")

// Signs, and no accumulator.
MEMORY(Both, 4, "m64n8k16.f32.f16.f16", ",-1,-1,0,0")
MEMORY(OfA, 4, "m64n8k16.f32.f16.f16", ",-1,1,0,0")
MEMORY(OfB, 4, "m64n8k32.f32.e4m3.e4m3", ",1,-1")
HELD(OfHeld, 4, "m64n8k8.f32.tf32.tf32", ",-1,1")
static Add both = group_line<Both>("m64n8k16.f32.f16.f16", ".negated.both", place(None, false, 64), place(None, false, 8), {Uniform, Special});
static Add of_a = group_line<OfA>("m64n8k16.f32.f16.f16", ".negated.a", place(None, false, 64), place(None, false, 8), {Uniform, Special});
static Add of_b = group_line<OfB>("m64n8k32.f32.e4m3.e4m3", ".negated.b", place(None, false, 64), place(None, false, 8), {Uniform, Special});
static Add of_held = group_line<OfHeld>("m64n8k8.f32.tf32.tf32", ".negated.registers", place(None, false, 64), place(None, false, 8), {Uniform, Special});
static Add alone = group_line<OfA>("m64n8k16.f32.f16.f16", ".negated.a.alone", place(None, false, 64), place(None, false, 8), {Uniform, Few, Special}, 0);
MEMORY(Alone, 4, "m64n8k32.s32.s8.s8", "")
static Add integers_alone = group_line<Alone>("m64n8k32.s32.s8.s8", ".alone", place(None, false, 64), place(None, false, 8), {Uniform}, 0);

// Layouts: f16 in all of them.
#define LAYOUTS(n, d, ta, tb) LAYOUTS_AT(F##n##_##ta##tb, n, d, ta, tb)
#define LAYOUTS_AT(id, n, d, ta, tb) \
  MEMORY(id, d, "m64n" #n "k16.f32.f16.f16", ",1,1," #ta "," #tb) \
  LAYOUT(id, n, ta, tb, None) LAYOUT(id, n, ta, tb, By128) LAYOUT(id, n, ta, tb, By64) LAYOUT(id, n, ta, tb, By32)
#define LAYOUT(id, n, ta, tb, by) \
  static Add id##by = group_line<id>("m64n" #n "k16.f32.f16.f16", ".across" #ta #tb "." #by, place(by, ta, 64), place(by, tb, n), PLACES);
LAYOUTS(8, 4, 0, 0) LAYOUTS(8, 4, 0, 1) LAYOUTS(8, 4, 1, 0) LAYOUTS(8, 4, 1, 1)
LAYOUTS(24, 12, 0, 0) LAYOUTS(24, 12, 0, 1) LAYOUTS(24, 12, 1, 0) LAYOUTS(24, 12, 1, 1)
LAYOUTS(64, 32, 0, 0) LAYOUTS(64, 32, 0, 1) LAYOUTS(64, 32, 1, 0) LAYOUTS(64, 32, 1, 1)
LAYOUTS(256, 128, 0, 0) LAYOUTS(256, 128, 0, 1) LAYOUTS(256, 128, 1, 0) LAYOUTS(256, 128, 1, 1)
// Later steps along k within a swizzled row, and layouts that differ.
static Add step1 = group_line<F64_00>("m64n64k16.f32.f16.f16", ".across00.By128.step1", place(By128, false, 64, 32), place(By128, false, 64, 32), PLACES);
static Add step3 = group_line<F64_00>("m64n64k16.f32.f16.f16", ".across00.By128.step3", place(By128, false, 64, 96), place(By128, false, 64, 96), PLACES);
static Add step64 = group_line<F64_00>("m64n64k16.f32.f16.f16", ".across00.By64.step1", place(By64, false, 64, 32), place(By64, false, 64, 32), PLACES);
static Add mixed = group_line<F64_00>("m64n64k16.f32.f16.f16", ".across00.None.By128", place(None, false, 64), place(By128, false, 64), PLACES);
static Add mixed2 = group_line<F64_01>("m64n64k16.f32.f16.f16", ".across01.By32.By64", place(By32, false, 64), place(By64, true, 64), PLACES);

// The same of other elements.
#define OTHERS(id, n, d, text, tail, by) OTHERS_AT(JOIN(id, by), n, d, text, tail, by)
#define OTHERS_AT(id, n, d, text, tail, by) \
  MEMORY(id, d, text, tail) \
  static Add JOIN(add, id) = group_line<id>(text, "." #by, place(by, false, 64), place(by, false, n), format(types(text)[1]).exponent ? PLACES : std::vector<Kind>{Uniform});
OTHERS(Tf32, 64, 32, "m64n64k8.f32.tf32.tf32", ",1,1", By128)
OTHERS(Tf32, 64, 32, "m64n64k8.f32.tf32.tf32", ",1,1", By32)
OTHERS(E4m3, 64, 32, "m64n64k32.f32.e4m3.e5m2", ",1,1", By128)
OTHERS(S8, 64, 32, "m64n64k32.s32.s8.u8", "", By128)
OTHERS(S8, 64, 32, "m64n64k32.s32.s8.u8", "", By64)
OTHERS(S8wide, 256, 128, "m64n256k32.s32.s8.s8", "", By128)
OTHERS(F16, 128, 32, "m64n128k16.f16.f16.f16", ",1,1,0,0", By128)
HELD(HeldAcross, 32, "m64n64k16.f32.bf16.bf16", ",1,1,1")
static Add held_across = group_line<HeldAcross>("m64n64k16.f32.bf16.bf16", ".registers.across1.By128", place(None, false, 64), place(By128, true, 64), PLACES);
}  // namespace warpgroup
