// Lanes of a warp, and groups of threads, that do something together. Expected values by hand (in comments).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
namespace cg = cooperative_groups;

extern "C" __global__ void matches() {
  int t = threadIdx.x;
  unsigned any = __match_any_sync(~0u, t / 3), wide = __match_any_sync(~0u, (unsigned long long)(t & 1) << 40);
  int same, other;
  unsigned all = __match_all_sync(~0u, 5ll << 40, &same), none = __match_all_sync(~0u, t / 31, &other);
  if (t == 4) printf("matches %08x %08x %08x %d %08x %d\n", any, wide, all, same, none, other);  // lanes 3 to 5; even; all; none
}

extern "C" __global__ void elects() {
  unsigned leader, is = 0;
  if (threadIdx.x >= 5) {
    asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, 0xffffffe0;\n\tselp.u32 %1, 1, 0, p;\n\t}" : "=r"(leader), "=r"(is));
    if (is) printf("elects %u by %u\n", leader, threadIdx.x);
  }
}

extern "C" __global__ void reductions() {
  int t = threadIdx.x;
  unsigned u[7];
  int v = t - 16;
  u[0] = __reduce_add_sync(~0u, v), u[1] = __reduce_min_sync(~0u, v), u[2] = __reduce_max_sync(~0u, v);
  u[3] = __reduce_max_sync(~0u, (unsigned)v), u[4] = __reduce_and_sync(~0u, t | 64), u[5] = __reduce_or_sync(~0u, 1u << t);
  u[6] = __reduce_xor_sync(~0u, t == 9 ? 0x55u : 0u);
  if (t == 0) printf("reductions %d %d %d %u %u %08x %x\n", (int)u[0], (int)u[1], (int)u[2], u[3], u[4], u[5], u[6]);
  if (t % 4 == 1) {
    unsigned odd = __activemask(), sum = __reduce_add_sync(0x22222222, t);
    if (t == 29) printf("some %08x %u\n", odd, sum);  // 1 + 5 + … + 29 = 120
  }
}

// Producers arrive, consumers wait; counts are explicit.
extern "C" __global__ void named() {
  __shared__ int cell[64];
  int t = threadIdx.x;
  if (t < 64) {
    cell[t] = t * t;
    asm volatile("bar.arrive 3, 128;" ::: "memory");
  } else if (t < 128) {
    asm volatile("bar.sync 3, 128;" ::: "memory");
    if (t == 100) printf("named %d\n", cell[t - 64]);  // 36 * 36
  } else {
    asm volatile("barrier.sync 5, 32;" ::: "memory");
  }
  __syncthreads();
  int n = __syncthreads_count(t % 5 == 0), all = __syncthreads_and(t < 160), any = __syncthreads_or(t == 77), none = __syncthreads_or(t > 500);
  if (t == 31) printf("reduced %d %d %d %d\n", n, all != 0, any != 0, none != 0);  // 32 of 160
}

extern "C" __global__ void partitions() {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int t = block.thread_rank();
  int sum = cg::reduce(tile, t, cg::plus<int>()), low = cg::reduce(tile, -t, cg::less<int>());
  int upto = cg::inclusive_scan(tile, t), before = cg::exclusive_scan(tile, t);
  if (t == 13) printf("tiles %d %d %d %d\n", sum, low, upto, before);  // 8 to 15: 92, -15; 8 to 13: 63; 8 to 12: 50
  auto by = cg::labeled_partition(cg::tiled_partition<32>(block), t % 3);
  int mine = cg::reduce(by, 1, cg::plus<int>());
  if (t == 31) printf("labeled %d %u %u\n", mine, by.size(), by.thread_rank());  // 31 % 3 = 1: 1, 4, …, 31: 11
  auto parts = cg::binary_partition(cg::tiled_partition<32>(block), t < 20);
  if (t == 25) printf("binary %u %u\n", (unsigned)parts.size(), (unsigned)parts.thread_rank());
  if (t % 2 == 1) {
    auto some = cg::coalesced_threads();
    int s = cg::reduce(some, t, cg::plus<int>()), shifted = some.shfl_down(t, 3);
    if (t == 5) printf("coalesced %u %d %d\n", (unsigned)some.size(), s, shifted);  // 1 + 3 + … + 31 = 256; 5 + 6
  }
}

// A tile of several warps, whose scratch lies in reserved shared memory.
extern "C" __global__ void large_tiles() {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  int sum = cg::reduce(tile, (int)threadIdx.x, cg::plus<int>());
  tile.sync();
  if (threadIdx.x == 100) printf("large %d %u\n", sum, (unsigned)tile.meta_group_rank());  // 64 to 127: 6112
}

extern "C" __global__ void shuffles() {
  int t = threadIdx.x;
  double d = __shfl_xor_sync(~0u, t * 1.5, 31);
  long long up = __shfl_up_sync(~0u, (long long)t << 33, 2, 16);
  int down = __shfl_down_sync(~0u, t, 5, 8), idx = __shfl_sync(~0u, t, t * 5);
  if (t == 19) printf("shuffles %.1f %lld %d %d\n", d, up >> 33, down, idx);  // 18; 17; 19 + 5 is outside of 16 to 23; 95 % 32 = 31
}

extern "C" __global__ void lanes(int seed, int *out) {
  int lane = threadIdx.x;
  int v = -1;
  if (lane == 0) v = seed;
  v = __shfl_sync(0xffffffffu, v, 0);
  if (v != seed) atomicAdd(&out[0], 1);
  if (lane < 16) {
    int s = lane;
    for (int d = 8; d > 0; d >>= 1) s += __shfl_down_sync(0x0000ffffu, s, d, 16);
    if (lane == 0) out[1] = s;
  } else {
    int s = lane;
    for (int d = 8; d > 0; d >>= 1) s += __shfl_xor_sync(0xffff0000u, s, d, 16);
    if (lane == 31) out[2] = s;
  }
  __syncwarp();
  int seg = __shfl_sync(0xffffffffu, lane, 5, 8);
  int up = __shfl_up_sync(0xffffffffu, lane, 1);
  atomicAdd(&out[3], seg);
  atomicAdd(&out[4], up);
  unsigned odd = __ballot_sync(0xffffffffu, lane & 1);
  if (lane == 0) out[5] = __popc(odd);
}
