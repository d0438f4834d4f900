// run: sums <<<2, 128>>> zeros:64 128
// run: part <<<2, 128>>> zeros:64 128
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void sums(int* out, int n) {
  __shared__ int tile[128];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  tile[block.thread_rank()] = threadIdx.x;
  cg::sync(block);
  int v = cg::reduce(warp, tile[127 - block.thread_rank()], cg::plus<int>());
  if (warp.thread_rank() == 0) out[blockIdx.x * 4 + warp.meta_group_rank()] = v;
}
__global__ void part(int* out, int n) {
  __shared__ int tile[128];
  cg::thread_block_tile<8> eight = cg::tiled_partition<8>(cg::this_thread_block());
  tile[threadIdx.x] = threadIdx.x;
  eight.sync();
  int first = tile[threadIdx.x & ~7];
  if (threadIdx.x % 3 == 0) {
    cg::coalesced_group some = cg::coalesced_threads();
    first = some.shfl(first, 0);
  }
  if (threadIdx.x == 0) out[32 + blockIdx.x] = first;
}
