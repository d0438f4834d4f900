// What came with sm_90: copies in bulk and by tensor maps, and multiplications of warpgroups. The host computes what is expected.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct alignas(64) Map { uint64_t words[16]; };

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(at(bar)), "r"(count) : "memory");
}
__device__ void expect(uint64_t *bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void wait(uint64_t *bar, int phase) {
  asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1, 1000;\n\t@!p bra W;\n\t}" ::"r"(at(bar)), "r"(phase) : "memory");
}

// Boxes of maps of 1 to 5 dimensions, at the coordinates given; the block writes out its shared memory.
extern "C" __global__ void boxes(const __grid_constant__ Map map, int rank, int bytes, int c0, int c1, int c2, int c3, int c4, unsigned char *out) {
  extern __shared__ __align__(1024) unsigned char box[];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    init(&bar, 1);
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    expect(&bar, bytes);
    if (rank == 1)
      asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
          ::"r"(at(box)), "l"(&map), "r"(at(&bar)), "r"(c0) : "memory");
    if (rank == 2)
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;"
          ::"r"(at(box)), "l"(&map), "r"(at(&bar)), "r"(c0), "r"(c1), "l"(0x1000000000000000ull) : "memory");
    if (rank == 3)
      asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
          ::"r"(at(box)), "l"(&map), "r"(at(&bar)), "r"(c0), "r"(c1), "r"(c2) : "memory");
    if (rank == 4)
      asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
          ::"r"(at(box)), "l"(&map), "r"(at(&bar)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
    if (rank == 5)
      asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
          ::"r"(at(box)), "l"(&map), "r"(at(&bar)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
  }
  __syncthreads();
  wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = box[i];
}

// The other way: shared memory holds 0, 1, 2, …, and goes to (how 0), is added to (1), or bounds from above (2) a box of 2 dimensions.
extern "C" __global__ void boxes_back(const __grid_constant__ Map map, int how, int count, int c0, int c1) {
  extern __shared__ __align__(1024) int numbers[];
  for (int i = threadIdx.x; i < count; i += blockDim.x) numbers[i] = i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    if (how == 0)
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(at(numbers)), "r"(c0), "r"(c1) : "memory");
    if (how == 1)
      asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(at(numbers)), "r"(c0), "r"(c1) : "memory");
    if (how == 2)
      asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(at(numbers)), "r"(c0), "r"(c1) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

// Two blocks: the first sends a box and a range of memory to both; each reports the sum of both, and its rank.
extern "C" __global__ void __cluster_dims__(2, 1, 1) both(const __grid_constant__ Map map, const int *range, int *out) {
  __shared__ alignas(128) int box[64], copy[64];
  __shared__ uint64_t bar;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    init(&bar, 1);
    expect(&bar, 512);
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == 0 && threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3}], [%2], %4;"
        ::"r"(at(box)), "l"(&map), "r"(at(&bar)), "r"(0), "h"((unsigned short)3) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;"
        ::"r"(at(copy)), "l"(range), "r"(at(&bar)), "h"((unsigned short)3) : "memory");
  }
  wait(&bar, 0);
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += box[i] + 1000 * copy[i];
    unsigned other, of;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(at(box)), "r"(rank ^ 1));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(of) : "r"(other));
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
    out[rank] = sum + 1000000 * of;
  }
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

// Reductions of ranges: blocks add to global memory; one block adds to the next one's shared memory, whose barrier counts.
extern "C" __global__ void __cluster_dims__(2, 1, 1) sums(unsigned *out, float *floats, unsigned *received) {
  __shared__ alignas(16) unsigned numbers[32];
  __shared__ alignas(16) float halves[32];
  __shared__ alignas(16) unsigned inbox[32];
  __shared__ uint64_t bar;
  unsigned t = threadIdx.x, rank, to, there;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  numbers[t] = t, halves[t] = t * 0.5f, inbox[t] = 100;
  if (t == 0) init(&bar, 1), expect(&bar, 128);
  asm volatile("fence.proxy.async;\n\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;" ::"l"(out), "r"(at(numbers)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(floats), "r"(at(halves)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at(inbox)), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at(&bar)), "r"(rank ^ 1));
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u32 [%0], [%1], 128, [%2];"
        ::"r"(to), "r"(at(numbers)), "r"(there) : "memory");
  }
  wait(&bar, 0);
  received[blockIdx.x * 32 + t] = inbox[t];
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

// Wrong: nobody waits for the copy that thread 32 reads.
extern "C" __global__ void hasty(const int *range, int *out) {
  __shared__ alignas(16) int copy[64];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) init(&bar, 1), expect(&bar, 256);
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
        ::"r"(at(copy)), "l"(range), "r"(at(&bar)) : "memory");
  if (threadIdx.x == 32) *out = copy[5];
}

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_and_wait() { asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// d (64 x 16) = a b + c. Shared memory is what the host laid out; the descriptors are the host's, relative to its beginning.
template <class T, class F> __device__ void product(const unsigned char *image, int bytes, uint64_t da, uint64_t db, const T *C, T *D, F multiply) {
  extern __shared__ __align__(1024) unsigned char tile[];
  for (int i = threadIdx.x; i < bytes; i += 128) tile[i] = image[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  uint64_t base = at(tile) >> 4;
  int t = threadIdx.x, w = t / 32, g = t % 32 / 4, m = t % 4;
  T c[8];
  auto place = [&](int i) { return (16 * w + g + 8 * (i % 4 / 2)) * 16 + 8 * (i / 4) + 2 * m + i % 2; };
  for (int i = 0; i < 8; ++i) c[i] = C[place(i)];
  fence();
  multiply(c, da + base, db + base);
  commit_and_wait();
  for (int i = 0; i < 8; ++i) D[place(i)] = c[i];
}
#define D8 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define INOUT(reg) "+" reg(c[0]), "+" reg(c[1]), "+" reg(c[2]), "+" reg(c[3]), "+" reg(c[4]), "+" reg(c[5]), "+" reg(c[6]), "+" reg(c[7])
#define ADD ".reg .pred p;\n\tsetp.ne.b32 p, %10, 0;\n\t"
#define GROUP(name, T, reg, text, tail) \
  extern "C" __global__ void __launch_bounds__(128) name(const unsigned char *image, int bytes, uint64_t da, uint64_t db, int add, const T *C, T *D) { \
    product(image, bytes, da, db, C, D, [&](T *c, uint64_t a, uint64_t b) { \
      asm volatile("{\n\t" ADD "wgmma.mma_async.sync.aligned." text " " D8 ", %8, %9, p" tail ";\n\t}" : INOUT(reg) : "l"(a), "l"(b), "r"(add)); \
    }); \
  }
GROUP(group_f16, float, "f", "m64n16k16.f32.f16.f16", ", 1, 1, 0, 0")
GROUP(group_f16_across, float, "f", "m64n16k16.f32.f16.f16", ", 1, 1, 1, 1")
GROUP(group_bf16_negated, float, "f", "m64n16k16.f32.bf16.bf16", ", -1, 1, 0, 0")
GROUP(group_tf32, float, "f", "m64n16k8.f32.tf32.tf32", ", 1, 1")
GROUP(group_e4m3, float, "f", "m64n16k32.f32.e4m3.e4m3", ", 1, 1")
GROUP(group_s8, int, "r", "m64n16k32.s32.s8.s8", "")

// a from registers: each thread holds what the host gives for the fragment of mma.m16n8k16.
extern "C" __global__ void __launch_bounds__(128) group_registers(const unsigned char *image, int bytes, const unsigned *a, uint64_t db, const float *C, float *D) {
  product(image, bytes, 0, db, C, D, [&](float *c, uint64_t, uint64_t b) {
    const unsigned *own = a + threadIdx.x * 4;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, 1, 0;\n\twgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " D8 ", {%8,%9,%10,%11}, %12, p, 1, 1, 0;\n\t}"
        : INOUT("f") : "r"(own[0]), "r"(own[1]), "r"(own[2]), "r"(own[3]), "l"(b));
  });
}

// A warpgroup that produces by TMA, one that consumes: one thread frees each stage for the whole group. Tiles of 64 x 16 of f16 by 16 x 16.
extern "C" __global__ void __launch_bounds__(256) pipeline(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, int steps, float *D) {
  extern __shared__ __align__(1024) unsigned char stages[];
  __shared__ uint64_t full[2], empty[2];
  constexpr int A = 64 * 32, B = 16 * 32, Stage = 3072;
  if (threadIdx.x == 0)
    for (int s = 0; s < 2; ++s) init(&full[s], 1), init(&empty[s], 1);
  __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int k = 0; k < steps; ++k) {
        int s = k % 2;
        if (k >= 2) wait(&empty[s], (k / 2 - 1) & 1);
        expect(&full[s], A + B);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
            ::"r"(at(stages) + s * Stage), "l"(&map_a), "r"(at(&full[s])), "r"(k * 16), "r"(0) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
            ::"r"(at(stages) + s * Stage + A), "l"(&map_b), "r"(at(&full[s])), "r"(k * 16), "r"(0) : "memory");
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int t = threadIdx.x - 128, w = t / 32, g = t % 32 / 4, m = t % 4;
    float c[8] = {};
    for (int k = 0; k < steps; ++k) {
      int s = k % 2;
      wait(&full[s], k / 2 & 1);
      // Swizzled by 32 bytes: rows of 32 bytes, 256 bytes for 8 rows.
      uint64_t desc = 3ull << 62 | (256ull >> 4) << 32 | 1ull << 16;
      uint64_t a = desc | (at(stages) + s * Stage) >> 4, b = desc | (at(stages) + s * Stage + A) >> 4;
      fence();
      asm volatile("{\n\t" ADD "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " D8 ", %8, %9, p, 1, 1, 0, 0;\n\t}" : INOUT("f") : "l"(a), "l"(b), "r"(1));
      commit_and_wait();
      if (t == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&empty[s])) : "memory");
    }
    for (int i = 0; i < 8; ++i) D[(16 * w + g + 8 * (i % 4 / 2)) * 16 + 8 * (i / 4) + 2 * m + i % 2] = c[i];
  }
}
