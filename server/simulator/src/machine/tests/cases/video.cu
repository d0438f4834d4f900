// Video instructions on one value and vmad: of each form a checksum of its results for 1024 triples of numbers. What is expected was
// printed by an H200, of code that ptxas 13.0 and, all the same, ptxas 12.4 made of this.
#include <cstdio>

__constant__ unsigned numbers[16] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x12345678, 0x7fffffff, 0x80000000, 0xffffffff,
    0x80ff7f01, 0xdeadbeef, 0xfffe8001, 0x00ff00ff};

#define FORM(text) \
  { \
    unsigned sum = 2166136261u; \
    _Pragma("unroll 1") for (int i = 0; i < 1024; i++) { \
      unsigned a = numbers[i & 15], b = numbers[i >> 4 & 15], c = numbers[(i >> 8) * 4 + 1 + (i & 1)], d; \
      asm volatile(text : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
      sum = (sum ^ d) * 16777619u; \
    } \
    printf("%08x %s\n", sum, text); \
  }

extern "C" __global__ void one_value() {
  FORM("vmad.s32.s32.s32 %0, %1, %2, %3;")
  FORM("vmad.u32.u32.u32 %0, %1, %2, %3;")
  FORM("vmad.s32.s32.s32.sat %0, %1, %2, %3;")
  FORM("vmad.u32.u32.u32.sat %0, %1, %2, %3;")
  FORM("vmad.s32.s32.s32 %0, %1.h0, %2.h1, %3;")
  FORM("vmad.s32.u32.s32 %0, %1.b1, %2.h0, %3;")
  FORM("vmad.u32.u32.u32.sat %0, %1.b3, %2.b0, %3;")
  FORM("vmad.s32.s32.u32.sat %0, %1.h1, %2.b2, %3;")
  FORM("vmad.s32.s32.s32 %0, -%1.h0, %2.h0, %3;")
  FORM("vmad.s32.s32.s32 %0, %1.h0, %2.h0, -%3;")
  FORM("vmad.s32.s32.s32.sat %0, %1.h0, -%2.h0, %3;")
  FORM("vmad.s32.u32.u32.sat %0, %1.h0, %2.h0, -%3;")
  FORM("vmad.u32.u32.u32.po %0, %1.h0, %2.h1, %3;")
  FORM("vmad.s32.s32.s32.po.sat %0, %1.h0, %2.h1, %3;")
  FORM("vmad.s32.s32.s32.shr7 %0, %1.h0, %2.h1, %3;")
  FORM("vmad.u32.u32.u32.shr15 %0, %1, %2, %3;")
  FORM("vmad.s32.s32.s32.sat.shr15 %0, %1, %2, %3;")
  FORM("vmad.s32.s32.s32.po.sat.shr7 %0, %1, %2, %3;")
  FORM("vmad.u32.u32.u32.sat.shr7 %0, %1, %2, %3;")
  FORM("vmad.s32.u32.u32.sat %0, -%1.h0, %2.h0, %3;")
  FORM("vmin.s32.s32.s32 %0, %1.h1, %2, %3;")
  FORM("vmin.s32.s32.s32 %0, %1.h1, %2.b0;")
  FORM("vmin.u32.s32.u32.sat %0, %1.b2, %2, %3;")
  FORM("vmin.s32.s32.s32.max %0, %1.h1, %2, %3;")
  FORM("vmin.u32.u32.u32.min %0, %1.h1, %2.b1, %3;")
  FORM("vmin.s32.s32.s32.add %0, %1.h1, %2.h0, %3;")
  FORM("vmin.s32.s32.s32 %0.b2, %1.h1, %2, %3;")
  FORM("vmax.u32.s32.s32 %0.b1, %1, %2.h1, %3;")
  FORM("vadd.s32.u32.u32.sat %0.h0, %1, %2, %3;")
  FORM("vsub.u32.u32.u32.sat %0, %1.h0, %2.h1, %3;")
  FORM("vabsdiff.u32.s32.s32.add %0, %1, %2, %3;")
  FORM("vset.s32.u32.lt %0, %1.h0, %2.h1, %3;")
  FORM("vset.u32.u32.ge.add %0, %1, %2, %3;")
  FORM("vshl.u32.u32.u32.clamp %0, %1, %2.b0, %3;")
  FORM("vshr.s32.u32.u32.wrap.add %0, %1.h1, %2.b0, %3;")
}
