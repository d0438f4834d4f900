// ldmatrix, stmatrix, movmatrix: addresses of rows are random, values are bytes.
#pragma once
#include "line.h"

template <class I> __global__ void rows(const unsigned *image, const unsigned *places, const unsigned *values, unsigned *d) {
  __shared__ __align__(128) unsigned tile[1024];
  const int lane = threadIdx.x;
  for (int i = lane; i < 1024; i += 32) tile[i] = image[blockIdx.x * 1024 + i];
  __syncwarp();
  // A multiple of 16 bytes; those of a store all differ.
  unsigned chunk = I::Stores ? (places[blockIdx.x * 32] + lane * 37) % 256 : places[blockIdx.x * 32 + lane] % 256;
  // What movmatrix moves: on the H200 the tile began at 1024, and addresses were taken.
  unsigned r[4] = {(chunk * 16 + 1024) * 2654435761u};
  if (I::Stores) for (int i = 0; i < 4; ++i) r[i] = values[(blockIdx.x * 4 + i) * 32 + lane];
  I::run((unsigned)__cvta_generic_to_shared(tile) + chunk * 16, r);
  __syncwarp();
  if (I::Stores) for (int i = lane; i < 1024; i += 32) d[blockIdx.x * 1024 + i] = tile[i];
  else for (int i = 0; i < 4; ++i) d[(blockIdx.x * 4 + i) * 32 + lane] = r[i];
}

template <class I> static Line rows_line(const char *text) {
  return {text, {{"raw", 4096, false}, {"raw", 128, false}, {"raw", 512, false}}, I::Stores ? size_t(4096) : size_t(512), 16, {Uniform},
          [](unsigned char *const *in, unsigned char *out, int tiles) {
            rows<I><<<tiles, 32>>>((unsigned *)in[0], (unsigned *)in[1], (unsigned *)in[2], (unsigned *)out);
          }};
}

#define ROWS(stores, text, ...) ROWS_AT(JOIN(I, __LINE__), stores, text, __VA_ARGS__)
#define ROWS_AT(id, stores, text, ...) \
  struct id { \
    static constexpr bool Stores = stores; \
    static __device__ void run(unsigned at, unsigned *r) { __VA_ARGS__ } \
  }; \
  static Add JOIN(add, id)(rows_line<id>(text));
namespace moved {
#define LD1(t) ROWS(false, t, asm volatile(t " {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");)
#define LD2(t) ROWS(false, t, asm volatile(t " {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");)
#define LD4(t) ROWS(false, t, asm volatile(t " {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");)
#define ST1(t) ROWS(true, t, asm volatile(t " [%1], {%0};" ::"r"(r[0]), "r"(at) : "memory");)
#define ST2(t) ROWS(true, t, asm volatile(t " [%2], {%0,%1};" ::"r"(r[0]), "r"(r[1]), "r"(at) : "memory");)
#define ST4(t) ROWS(true, t, asm volatile(t " [%4], {%0,%1,%2,%3};" ::"r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(at) : "memory");)
LD1("ldmatrix.sync.aligned.m8n8.x1.shared.b16")
LD2("ldmatrix.sync.aligned.m8n8.x2.shared.b16")
LD4("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
LD1("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16")
LD2("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16")
LD4("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16")
ST1("stmatrix.sync.aligned.m8n8.x1.shared.b16")
ST2("stmatrix.sync.aligned.m8n8.x2.shared.b16")
ST4("stmatrix.sync.aligned.m8n8.x4.shared.b16")
ST1("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16")
ST2("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16")
ST4("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16")
ROWS(false, "movmatrix.sync.aligned.m8n8.trans.b16", asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[0]) : "r"(r[0]));)
}  // namespace moved
