// run: fetch <<<2, 64>>> zeros:128 64
// run: barrier <<<2, 64>>> zeros:128 64
#include <cuda_pipeline.h>
#include <cuda/barrier>
__global__ void fetch(int* a, int n) {
  __shared__ int tile[64];
  int* mine = a + blockIdx.x * 64;
  __pipeline_memcpy_async(&tile[threadIdx.x], &mine[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  mine[threadIdx.x] = tile[63 - threadIdx.x];
}
using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
// One warp produces, the other consumes.
__global__ void barrier(int* a, int n) {
  __shared__ Barrier full, empty;
  __shared__ int tile[32];
  if (threadIdx.x == 0) {
    init(&full, 64);
    init(&empty, 64);
  }
  __syncthreads();
  int lane = threadIdx.x & 31, sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x < 32) {
      if (i > 0) empty.arrive_and_wait();
      tile[lane] = i;
      (void)full.arrive();
    } else {
      full.arrive_and_wait();
      sum += tile[31 - lane];
      if (i < 3) (void)empty.arrive();
    }
  }
  if (threadIdx.x >= 32) a[blockIdx.x * 64 + lane] = sum;
}
