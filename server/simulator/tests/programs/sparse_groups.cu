// Sparse rows of warpgroups: of each chunk of four elements (of f32, two) one half is there, and metadata says which. Whole numbers, beside the host's.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Lines of `bytes`, in columns of 16 bytes: no swizzle.
__device__ uint64_t describe(const void *start, int lines) {
  unsigned at = (unsigned)__cvta_generic_to_shared(start);
  return (uint64_t)(at >> 4) | (uint64_t)lines << 16 | (uint64_t)(128 >> 4) << 32;
}

#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define SP(shape, kind, a, trans)                                                                                                          \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, 1, 0;\n\twgmma.mma_async.sp.sync.aligned." shape " {%0, %1, %2, %3}, " a ", p" trans ";\n\t}" \
               : kind(d[0]), kind(d[1]), kind(d[2]), kind(d[3])

// kind: 0 f16 (selector 0), 1 f16 (selector 1, a in registers), 2 s8, 3 tf32.
template <class D>
__global__ void multiply(int kind, const char *a, const char *b, const uint32_t *metadata, D *out) {
  __shared__ alignas(128) char as[64 * 32], bs[8 * 64];
  int t = threadIdx.x;
  // 2 columns of 64 rows, 4 of 8.
  for (int i = t; i < 64 * 2; i += 128) memcpy(as + i * 16, a + i % 64 * 32 + i / 64 * 16, 16);
  for (int i = t; i < 8 * 4; i += 128) memcpy(bs + i * 16, b + i % 8 * 64 + i / 8 * 16, 16);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  D d[4];
  for (int i = 0; i < 4; ++i) d[i] = t + i;
  uint64_t da = describe(as, 64), db = describe(bs, 8);
  uint32_t e = metadata[t];
  int w = t / 32, g = t % 32 / 4, q = t % 4;
  FENCE;
  if constexpr (sizeof(D) == 4 && D(0.5f) == D(0)) {
    SP("m64n8k64.s32.s8.s8", "+r", "%4, %5, %6, 0", "") : "l"(da), "l"(db), "r"(e) : "memory");
  } else if (kind == 0) {
    SP("m64n8k32.f32.f16.f16", "+f", "%4, %5, %6, 0", ", 1, 1, 0, 0") : "l"(da), "l"(db), "r"(e) : "memory");
  } else if (kind == 1) {
    uint32_t r[4];
    for (int i = 0; i < 4; ++i) memcpy(&r[i], a + (16 * w + g + 8 * (i % 2)) * 32 + (2 * q + 8 * (i / 2)) * 2, 4);
    SP("m64n8k32.f32.f16.f16", "+f", "{%4, %5, %6, %7}, %8, %9, 1", ", 1, -1, 0") : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(db), "r"(e) : "memory");
  } else {
    SP("m64n8k16.f32.tf32.tf32", "+f", "%4, %5, %6, 0", ", 1, 1") : "l"(da), "l"(db), "r"(e) : "memory");
  }
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) out[(16 * w + g + 8 * (i / 2)) * 8 + 2 * q + i % 2] = d[i];
}

static unsigned state = 1;
static int draw(int most) { return (state = state * 1664525 + 1013904223) >> 16 & 0xffff, (int)((state >> 16) % most); }

static void put(char *to, int kind, int at, int value) {
  if (kind == 2) to[at] = (char)value;
  else if (kind == 3) ((float *)to)[at] = (float)value;
  else ((__half *)to)[at] = __half((float)value);
}

template <class D>
static int run(int kind) {
  int wide = kind == 3 ? 2 : 4, k = kind == 2 ? 64 : kind == 3 ? 16 : 32;
  char *a, *b;
  uint32_t *metadata;
  D *out;
  cudaMallocManaged(&a, 64 * 32), cudaMallocManaged(&b, 8 * 64), cudaMallocManaged(&metadata, 512), cudaMallocManaged(&out, 64 * 8 * 4);
  static int dense[64][64], columns[8][64];
  memset(dense, 0, sizeof dense);
  for (int i = 0; i < 128; ++i) metadata[i] = 0xdeadbeef;
  // Lanes that hold metadata have none of the above.
  for (int i = 0; i < 128; ++i)
    if (kind == 2 || i % 4 / 2 == (kind == 1)) metadata[i] = 0;
  for (int row = 0; row < 64; ++row)
    for (int chunk = 0; chunk < k / wide; ++chunk) {
      int first = wide == 2 ? draw(2) : draw(3), second = wide == 2 ? 0 : first + 1 + draw(3 - first);
      uint32_t bits = wide == 2 ? (first ? 0xe : 0x4) : first | second << 2;
      for (int i = 0; i < wide / 2; ++i) {
        int value = draw(15) - 7;
        dense[row][chunk * wide + (i ? second : first)] = value;
        put(a + row * 32, kind, chunk * wide / 2 + i, value);
      }
      int lane = row / 16 * 32 + row % 8 * 4, upper = row % 16 / 8;
      if (kind == 2) metadata[lane + 2 * (chunk / 8) + upper] |= bits << 4 * (chunk % 8);
      else metadata[lane + 2 * (kind == 1) + chunk / 4] |= bits << (16 * upper + 4 * (chunk % 4));
    }
  for (int n = 0; n < 8; ++n)
    for (int i = 0; i < k; ++i) put(b + n * 64, kind, i, columns[n][i] = draw(15) - 7);
  multiply<D><<<1, 128>>>(kind, a, b, metadata, out);
  cudaError_t error = cudaDeviceSynchronize();
  int wrong = 0;
  for (int row = 0; row < 64; ++row)
    for (int n = 0; n < 8; ++n) {
      int t = row / 16 * 32 + row % 8 * 4 + n / 2, sum = 0;
      for (int i = 0; i < k; ++i) sum += dense[row][i] * columns[n][i];
      wrong += out[row * 8 + n] != D(t + row % 16 / 8 * 2 + n % 2 + (kind == 1 ? -sum : sum));
    }
  printf("%d: %s, %d wrong\n", kind, cudaGetErrorName(error), wrong);
  return wrong;
}

int main() { return run<float>(0) + run<float>(1) + run<int>(2) + run<float>(3); }
