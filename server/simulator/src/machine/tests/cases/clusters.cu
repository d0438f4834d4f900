// Blocks of a cluster that use each other's shared memory. Launched as 2 clusters of 4 blocks. Expected values by hand.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__device__ int results[8];

extern "C" __global__ void __cluster_dims__(4, 1, 1) shares() {
  __shared__ int total;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) total = 0;
  cluster.sync();
  // Every thread of the cluster adds to the next block's total.
  unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  int *remote = cluster.map_shared_rank(&total, next);
  atomicAdd(remote, (int)cluster.block_rank() * 100 + 1);
  cluster.sync();
  unsigned asked = cluster.query_shared_rank(remote);
  if (threadIdx.x == 0) results[blockIdx.x] = total * 10 + (int)asked;  // 32 * (100 * previous + 1)
  cluster.sync();
}

// Block 0 of each cluster waits on its barrier for an arrival of each block, and for a copy from the last.
extern "C" __global__ void __cluster_dims__(4, 1, 1) arrives() {
  __shared__ alignas(16) int inbox[64];
  __shared__ alignas(16) int outbox[64];
  __shared__ unsigned long long bar;
  auto cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), b = (unsigned)__cvta_generic_to_shared(&bar), i = (unsigned)__cvta_generic_to_shared(inbox);
  unsigned o = (unsigned)__cvta_generic_to_shared(outbox), remote, target;
  if (threadIdx.x == 0 && rank == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 5;\n\tfence.mbarrier_init.release.cluster;" ::"r"(b));
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], 256;" ::"r"(b));
  }
  for (int k = threadIdx.x; k < 64; k += 32) outbox[k] = (int)blockIdx.x * 1000 + k;
  cluster.sync();
  asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(b));
  asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(target) : "r"(i));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
    if (rank == 3)
      asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
          ::"r"(target), "r"(o), "r"(remote) : "memory");
  }
  if (rank == 0) {
    asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n\t@!p bra W;\n\t}" ::"r"(b) : "memory");
    if (threadIdx.x == 5) results[blockIdx.x] = inbox[63];  // 3063, 7063
  }
  cluster.sync();
}

// Each block stores 8 bytes into the next block's memory and adds to a sum there; the barrier there counts the bytes.
extern "C" __global__ void __cluster_dims__(4, 1, 1) stores() {
  __shared__ alignas(16) int pair[2];
  __shared__ unsigned sum;
  __shared__ unsigned long long bar;
  auto cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), b = (unsigned)__cvta_generic_to_shared(&bar), p = (unsigned)__cvta_generic_to_shared(pair);
  unsigned s = (unsigned)__cvta_generic_to_shared(&sum), next = (rank + 1) % 4;
  if (threadIdx.x == 0) {
    sum = 7;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 12;" ::"r"(b));
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(b) : "r"(next));
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(p) : "r"(next));
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(s) : "r"(next));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];"
        ::"r"(p), "r"((int)rank), "r"((int)rank * 10), "r"(b) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
        ::"r"(s), "r"(rank * 100), "r"(b) : "memory");
    b = (unsigned)__cvta_generic_to_shared(&bar);
    asm volatile("{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n\t@!p bra W;\n\t}" ::"r"(b) : "memory");
    results[blockIdx.x] = pair[0] * 100000 + pair[1] * 1000 + (int)sum;  // previous * 110000 + previous * 100 + 7
  }
  cluster.sync();
}

extern "C" __global__ void report() {
  for (int k = 0; k < 8; ++k) printf("%d%c", results[k], k == 7 ? '\n' : ' ');
}
