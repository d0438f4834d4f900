// Copies that end later, and the barriers that tell of it. Expected values by hand: each block sums 0…n-1 in some order.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cstdio>
#include <cstring>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

__device__ alignas(128) int input[1024], output[256];

extern "C" __global__ void fill() { input[threadIdx.x] = threadIdx.x; }

// Two stages of cp.async with commit and wait groups.
extern "C" __global__ void groups() {
  __shared__ int stage[2][128];
  int t = threadIdx.x, sum = 0;
  __pipeline_memcpy_async(&stage[0][t], &input[t], 4);
  __pipeline_commit();
  for (int k = 0; k < 8; ++k) {
    if (k < 7) __pipeline_memcpy_async(&stage[(k + 1) & 1][t], &input[(k + 1) * 128 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += stage[k & 1][127 - t];
    __syncthreads();
  }
  __shared__ int total;
  if (t == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, sum);
  __syncthreads();
  if (t == 0) printf("groups %d\n", total);  // 1023 * 1024 / 2
}

// 16 bytes a thread; the last thread reads 4 of them, zeros above.
extern "C" __global__ void zero_filled() {
  __shared__ int4 row[32];
  int t = threadIdx.x;
  row[t] = make_int4(-1, -1, -1, -1);
  __pipeline_memcpy_async(&row[t], &input[t * 4], 16, t == 31 ? 12 : 0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (t == 0) printf("zero_filled %d %d %d %d %d\n", row[30].w, row[31].x, row[31].y, row[31].z, row[31].w);
}

// cuda::barrier: each phase every thread hands a value to its neighbour.
extern "C" __global__ void phases() {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int cell[96];
  int t = threadIdx.x, v = t;
  if (t == 0) init(&bar, 96);
  __syncthreads();
  for (int k = 0; k < 5; ++k) {
    cell[t] = v;
    auto token = bar.arrive();
    bar.wait(cuda::std::move(token));
    v = cell[(t + 1) % 96];
    bar.arrive_and_wait();
  }
  if (t == 0) printf("phases %d\n", v);  // 5 neighbours further
}

// A producer warp and a consumer warp, by mbarrier in PTX: parity, expect_tx, test_wait, try_wait.
extern "C" __global__ void parity() {
  __shared__ unsigned long long full, empty;
  __shared__ int slot[32];
  unsigned f = (unsigned)__cvta_generic_to_shared(&full), e = (unsigned)__cvta_generic_to_shared(&empty);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(f));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(e));
  }
  __syncthreads();
  auto wait = [](unsigned bar, int phase) {
    asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@p bra D;\n\tbra W;\n\tD:\n\t}"
        ::"r"(bar), "r"(phase));
  };
  int lane = threadIdx.x & 31, sum = 0;
  for (int k = 0; k < 6; ++k) {
    if (threadIdx.x < 32) {
      if (k > 0) wait(e, (k - 1) & 1);
      slot[lane] = k * 100 + lane;
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(f) : "memory");
    } else {
      wait(f, k & 1);
      sum += slot[31 - lane];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(e) : "memory");
    }
  }
  if (threadIdx.x == 32) printf("parity %d\n", sum);  // 1500 + 6 * 31
}

extern "C" __global__ void states() {
  __shared__ unsigned long long bar;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  unsigned long long state;
  int done[5];
  unsigned pending;
  asm volatile("mbarrier.init.shared.b64 [%0], 3;" ::"r"(b));
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(b));
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
  auto test = [&] {
    int r;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\tselp.s32 %0, 1, 0, p;\n\t}" : "=r"(r) : "r"(b), "l"(state));
    return r;
  };
  done[0] = test();
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 64;" ::"r"(b));
  done[1] = test();  // all have arrived, 64 bytes have not
  asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 64;" ::"r"(b));
  done[2] = test();
  asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(state) : "r"(b));
  asm volatile("mbarrier.arrive.shared.b64 _, [%0], 2;" ::"r"(b));
  done[3] = test();
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(b));  // the dropped one is not waited for
  done[4] = test();
  printf("states %u %d %d %d %d %d\n", pending, done[0], done[1], done[2], done[3], done[4]);
}

// A bulk copy in, through a barrier that counts bytes, and one out, by groups.
extern "C" __global__ void bulk() {
  __shared__ alignas(128) int rows[256];
  __shared__ unsigned long long bar;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar), r = (unsigned)__cvta_generic_to_shared(rows);
  int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.proxy.async.shared::cta;" ::"r"(b));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(b));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
        ::"r"(r), "l"(__cvta_generic_to_global(input + 512)), "r"(b) : "memory");
  }
  __syncthreads();
  asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n\t@!p bra W;\n\t}" ::"r"(b) : "memory");
  int v = rows[255 - t];
  __syncthreads();
  rows[t] = v;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\n\tcp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;"
        ::"l"(__cvta_generic_to_global(output)), "r"(r) : "memory");
    printf("bulk %d %d %d\n", output[0], output[1], output[255]);  // 767 766 512
  }
}

extern "C" __global__ void by_groups() {
  __shared__ alignas(16) int tile[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, input + 256, sizeof tile);
  cg::wait(block);
  int v = tile[(block.thread_rank() * 7) % 256];
  int all = __syncthreads_count(v % 2);
  if (block.thread_rank() == 1) printf("by_groups %d %d\n", v, all);
}

extern "C" __global__ void by_barrier() {
  __shared__ alignas(16) int tile[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, input + 128, cuda::aligned_size_t<16>(sizeof tile), bar);
  bar.arrive_and_wait();
  if (block.thread_rank() == 9) printf("by_barrier %d %d\n", tile[9], tile[255]);  // 137 383
}

extern "C" __global__ void by_pipeline() {
  __shared__ int stage[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int k = 0; k < 6; ++k) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, stage[k & 1], input + k * 64, sizeof(int) * 64, pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    sum += stage[k & 1][63 - threadIdx.x];
    pipe.consumer_release();
  }
  if (threadIdx.x == 0) printf("by_pipeline %d\n", sum);  // 6 * 63 + 64 * (0 + … + 5)
}

// What is wrong is found: a barrier outside of shared memory, a bulk copy past the end, one that is not aligned, and an array
// that no stack holds.
extern "C" __global__ void beyond(int how, int n) {
  __shared__ alignas(16) int rows[64];
  __shared__ unsigned long long bar;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar), r = (unsigned)__cvta_generic_to_shared(rows);
  if (threadIdx.x != 2) return;
  if (how == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b + 8 * n));
  if (how == 1 || how == 2)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(r), "l"(__cvta_generic_to_global(input + (how == 1 ? 1020 : 1))), "r"(32), "r"(b) : "memory");
  if (how == 3) {
    char *a = (char *)alloca((size_t)n << 20);
    a[n] = 1;
    printf("%d", a[threadIdx.x]);
  }
}

int main(int argc, char **argv) {
  fill<<<1, 1024>>>();
  groups<<<1, 128>>>(), zero_filled<<<1, 32>>>(), phases<<<1, 96>>>(), parity<<<1, 64>>>(), states<<<1, 1>>>(), bulk<<<1, 256>>>();
  by_groups<<<1, 256>>>(), by_barrier<<<1, 256>>>(), by_pipeline<<<1, 64>>>();
  return cudaDeviceSynchronize();
}
