// Integer arithmetic that needs carries, dot products, packed bytes. Each kernel has one thread and prints; the host computes
// the same with 128-bit integers and loops: `integers expected` prints what is expected, no GPU needed.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cstdlib>

typedef unsigned __int128 u128;

__device__ __host__ static uint64_t next(uint64_t &s) { return s = s * 6364136223846793005ull + 1442695040888963407ull; }

#define SAY(x) printf("%016llx%016llx\n", (unsigned long long)((x) >> 64), (unsigned long long)(x))

extern "C" __global__ void wide() {
  uint64_t s = 1;
  for (int i = 0; i < 4; ++i) {
    u128 a = (u128)next(s) << 64 | next(s), b = (u128)next(s) << 64 | next(s);
    SAY(a + b);
    SAY(a - b);
    SAY(a * b);
    SAY((u128)__umul64hi((uint64_t)a, (uint64_t)b) << 64 | (u128)(uint64_t)__mul64hi((int64_t)a, (int64_t)b));
    SAY(a >> (i * 37 + 1));
    SAY(b << (i * 37 + 1));
    SAY(a / (b >> 70));
    SAY(a % (b >> 70));
  }
}

extern "C" __global__ void carries() {
  uint64_t s = 7;
  for (int i = 0; i < 4; ++i) {
    uint32_t a[3], b[3], d[4], e[3];
    for (int k = 0; k < 3; ++k) a[k] = i == 0 ? ~0u : (uint32_t)(next(s) >> 32);
    for (int k = 0; k < 3; ++k) b[k] = i == 0 ? k == 0 : (uint32_t)(next(s) >> 32);
    asm volatile("add.cc.u32 %0, %4, %7;\n\taddc.cc.u32 %1, %5, %8;\n\taddc.cc.u32 %2, %6, %9;\n\taddc.u32 %3, 0, 0;"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
    printf("%u %08x%08x%08x\n", d[3], d[2], d[1], d[0]);
    asm volatile("sub.cc.u32 %0, %3, %6;\n\tsubc.cc.u32 %1, %4, %7;\n\tsubc.u32 %2, %5, %8;"
        : "=r"(e[0]), "=r"(e[1]), "=r"(e[2]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
    printf("%08x%08x%08x\n", e[2], e[1], e[0]);
    // a[1]:a[0] * b[0], 96 bits.
    asm volatile("mul.lo.u32 %0, %3, %5;\n\tmul.hi.u32 %1, %3, %5;\n\tmad.lo.cc.u32 %1, %4, %5, %1;\n\tmadc.hi.u32 %2, %4, %5, 0;"
        : "=r"(e[0]), "=&r"(e[1]), "=r"(e[2]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    printf("%08x%08x%08x\n", e[2], e[1], e[0]);
  }
}

extern "C" __global__ void dots() {
  uint64_t s = 3;
  for (int i = 0; i < 4; ++i) {
    int a = (int)(next(s) >> 32), b = (int)(next(s) >> 32), c = (int)(next(s) >> 32);
    printf("%d %u %d %u %d %u\n", __dp4a(a, b, c), __dp4a((unsigned)a, (unsigned)b, (unsigned)c), __dp2a_lo(a, b, c),
        __dp2a_lo((unsigned)a, (unsigned)b, (unsigned)c), __dp2a_hi(a, b, c), __dp2a_hi((unsigned)a, (unsigned)b, (unsigned)c));
  }
}

extern "C" __global__ void packed() {
  uint64_t s = 5;
  for (int i = 0; i < 4; ++i) {
    unsigned a = (unsigned)(next(s) >> 32), b = (unsigned)(next(s) >> 32), d, e, f, g;
    asm("vadd4.s32.s32.s32.sat %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0));
    asm("vsub2.u32.u32.u32 %0, %1, %2, %3;" : "=r"(e) : "r"(a), "r"(b), "r"(0));
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(f) : "r"(a), "r"(b), "r"(1000));
    asm("vmax4.s32.s32.s32 %0, %1, %2, %3;" : "=r"(g) : "r"(a), "r"(b), "r"(0));
    printf("%08x %08x %u %08x %08x %08x %u\n", d, e, f, g, __vadd4(a, b), __vabsdiffu4(a, b), __vsadu4(a, b));
  }
}

extern "C" __global__ void video() {
  uint64_t s = 11;
  for (int i = 0; i < 4; ++i) {
    unsigned a = (unsigned)(next(s) >> 32), b = (unsigned)(next(s) >> 32), c = (unsigned)(next(s) >> 32), d[7];
    asm("vadd.s32.s32.u32.sat %0, %1.b1, %2.h1;" : "=r"(d[0]) : "r"(a), "r"(b));
    asm("vsub.u32.u32.u32.sat.add %0, %1.h0, %2.h0, %3;" : "=r"(d[1]) : "r"(a), "r"(b), "r"(c));
    asm("vabsdiff.s32.s32.s32.max %0, %1.b3, %2.b0, %3;" : "=r"(d[2]) : "r"(a), "r"(b), "r"(c));
    asm("vmin.s32.s32.s32 %0.h1, %1, %2.b2, %3;" : "=r"(d[3]) : "r"(a), "r"(b), "r"(c));
    asm("vshl.u32.u32.u32.clamp %0, %1.b0, %2.b3;" : "=r"(d[4]) : "r"(a), "r"(b));
    asm("vshr.s32.s32.u32.wrap %0, %1, %2;" : "=r"(d[5]) : "r"(a), "r"(b));
    asm("vset.s32.u32.lt.add %0, %1.h1, %2.b1, %3;" : "=r"(d[6]) : "r"(a), "r"(b), "r"(c));
    printf("%08x %08x %08x %08x %08x %08x %08x\n", d[0], d[1], d[2], d[3], d[4], d[5], d[6]);
  }
}

// What the host expects, without any of the device's functions.
static void expect_wide() {
  uint64_t s = 1;
  for (int i = 0; i < 4; ++i) {
    uint64_t ah = next(s), al = next(s), bh = next(s), bl = next(s);
    u128 a = (u128)ah << 64 | al, b = (u128)bh << 64 | bl;
    SAY(a + b);
    SAY(a - b);
    SAY(a * b);
    uint64_t signed_high = (uint64_t)((__int128)(int64_t)al * (int64_t)bl >> 64);
    SAY((u128)(uint64_t)((u128)al * bl >> 64) << 64 | signed_high);
    SAY(a >> (i * 37 + 1));
    SAY(b << (i * 37 + 1));
    SAY(a / (b >> 70));
    SAY(a % (b >> 70));
  }
}

static void expect_carries() {
  uint64_t s = 7;
  for (int i = 0; i < 4; ++i) {
    u128 a = 0, b = 0, three = ((u128)1 << 96) - 1;
    for (int k = 0; k < 3; ++k) a |= (u128)(i == 0 ? ~0u : (uint32_t)(next(s) >> 32)) << 32 * k;
    for (int k = 0; k < 3; ++k) b |= (u128)(i == 0 ? (uint32_t)(k == 0) : (uint32_t)(next(s) >> 32)) << 32 * k;
    auto say = [](u128 v) { printf("%08x%08x%08x\n", (uint32_t)(v >> 64), (uint32_t)(v >> 32), (uint32_t)v); };
    printf("%u ", (uint32_t)((a + b) >> 96));
    say(a + b);
    say((a - b) & three);
    say((u128)(uint64_t)a * (uint32_t)b);
  }
}

static int part(int v, int k, int bits, bool is_signed) {
  int low = v >> k * bits & ((1 << bits) - 1);
  return is_signed && low >> (bits - 1) ? low - (1 << bits) : low;
}

static void expect_dots() {
  uint64_t s = 3;
  for (int i = 0; i < 4; ++i) {
    int a = (int)(next(s) >> 32), b = (int)(next(s) >> 32), c = (int)(next(s) >> 32);
    unsigned r[6];
    for (int at = 0; at < 6; ++at) {
      bool sign = at % 2 == 0;
      r[at] = (unsigned)c;
      for (int k = 0; k < (at < 2 ? 4 : 2); ++k)
        r[at] += at < 2 ? part(a, k, 8, sign) * part(b, k, 8, sign)
                        : part(a, k, 16, sign) * part(b, at < 4 ? k : k + 2, 8, sign);
    }
    printf("%d %u %d %u %d %u\n", (int)r[0], r[1], (int)r[2], r[3], (int)r[4], r[5]);
  }
}

static void expect_packed() {
  uint64_t s = 5;
  for (int i = 0; i < 4; ++i) {
    int a = (int)(next(s) >> 32), b = (int)(next(s) >> 32);
    unsigned d = 0, e = 0, f = 0, g = 0, h = 0, j = 0;
    for (int k = 0; k < 4; ++k) {
      int x = part(a, k, 8, true), y = part(b, k, 8, true), u = part(a, k, 8, false), v = part(b, k, 8, false);
      int sum = x + y > 127 ? 127 : x + y < -128 ? -128 : x + y;
      d |= (unsigned)(sum & 255) << 8 * k;
      f += u > v ? u - v : v - u;
      g |= (unsigned)((x > y ? x : y) & 255) << 8 * k;
      h |= (unsigned)((x + y) & 255) << 8 * k;
      j |= (unsigned)(u > v ? u - v : v - u) << 8 * k;
    }
    for (int k = 0; k < 2; ++k) e |= (unsigned)((part(a, k, 16, false) - part(b, k, 16, false)) & 65535) << 16 * k;
    printf("%08x %08x %u %08x %08x %08x %u\n", d, e, f + 1000, g, h, j, f);
  }
}

static void expect_video() {
  uint64_t s = 11;
  for (int i = 0; i < 4; ++i) {
    unsigned a = (unsigned)(next(s) >> 32), b = (unsigned)(next(s) >> 32), c = (unsigned)(next(s) >> 32);
    int low = (int)(a & 0xffff) - (int)(b & 0xffff), far = abs((signed char)(a >> 24) - (signed char)b), by = (signed char)(b >> 16);
    int least = (int)a < by ? (int)a : by, shift = b >> 24;
    printf("%08x %08x %08x %08x %08x %08x %08x\n", (signed char)(a >> 8) + (int)(b >> 16), (low < 0 ? 0 : low) + c,
        far > (int)c ? far : (int)c, (unsigned)least << 16 | (c & 0xffff), shift >= 32 ? 0u : (a & 255) << shift,
        (unsigned)((int)a >> (b & 31)), c + ((short)(a >> 16) < (int)(b >> 8 & 255)));
  }
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "expected")) {
    expect_wide(), expect_carries(), expect_dots(), expect_packed(), expect_video();
    return 0;
  }
  wide<<<1, 1>>>(), carries<<<1, 1>>>(), dots<<<1, 1>>>(), packed<<<1, 1>>>(), video<<<1, 1>>>();
  return cudaDeviceSynchronize();
}
