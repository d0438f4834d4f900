// Kernels for the simulator's tests: scheduling, synchronisation, calls, faults. One statement a line where a line is tested.
#include <cassert>
#include <cstdio>
#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;

__device__ int lock_word;
__device__ volatile int flag;
__device__ int ticket;
__constant__ float coefficients[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__global__ void spin_lock_in_warp(int *counter) {
  while (atomicCAS(&lock_word, 0, 1) != 0) {
  }
  int old = *(volatile int *)counter;
  *(volatile int *)counter = old + 1;
  __threadfence();
  atomicExch(&lock_word, 0);
}

__global__ void wait_for_last_block(int *out) {
  if (blockIdx.x == gridDim.x - 1) {
    if (threadIdx.x == 0) flag = 1;
  } else {
    while (flag == 0) {
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = flag;
}

__global__ void divergent_barrier() {
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1;");
  else
    asm volatile("bar.sync 2;");
}

__global__ void out_of_bounds(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n)
    out[i] = i;
}

__global__ void misaligned(char *out) {
  *(int *)(out + threadIdx.x * 4 + (threadIdx.x == 5)) = 1;
}

__global__ void shared_out_of_bounds(int *out, int at) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x + at];
}

__global__ void asserts(int n) {
  assert((int)threadIdx.x < n);
}

__global__ void traps() {
  if (threadIdx.x == 7) __trap();
}

__global__ void endless(int *out) {
  while (*(volatile int *)out == 0) {
  }
}

__device__ __noinline__ int depth(int n) {
  return n == 0x7fffffff ? 0 : depth(n + 1) + 1;
}
__global__ void recursion(int *out) {
  out[0] = depth(threadIdx.x);
}

__global__ void float_atomics(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, in[i]);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void fibonaccis(int *out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

typedef float (*function)(float);
__device__ float twice(float x) { return x * 2; }
__device__ float plus2(float x) { return x + 2; }
__device__ function functions[2] = {twice, plus2};
__global__ void through_pointers(float *out) {
  out[threadIdx.x] = functions[threadIdx.x % 2](coefficients[threadIdx.x % 8]);
}

__global__ void prints(int n) {
  if (threadIdx.x < 2) printf("%d|%5.2f|%-4s|%x|%lld|%c%%\n", n + threadIdx.x, 1.5 * n, "ab", 255, 1ll << 40, 'z');
}

__global__ void heap(int **out) {
  int *p = (int *)malloc(16);
  p[threadIdx.x % 4] = threadIdx.x;
  out[threadIdx.x] = p;
  if (threadIdx.x & 1) free(p);
}

__global__ void warp_functions(int *out) {
  int lane = threadIdx.x;
  int v = lane * lane;
  out[lane] = __shfl_down_sync(~0u, v, 4);
  out[32 + lane] = __shfl_xor_sync(~0u, v, 3, 8);
  out[64 + lane] = __ballot_sync(~0u, v & 4);
  out[96 + lane] = __match_any_sync(~0u, lane % 5);
  out[128 + lane] = __reduce_add_sync(~0u, v);
  int w = 0;
  if (lane % 2) {
    w = __shfl_sync(0xaaaaaaaa, v, 1);
  } else {
    w = __shfl_sync(0x55555555, v, 2);
  }
  out[160 + lane] = w;
  out[192 + lane] = __any_sync(~0u, lane == 9) + 2 * __all_sync(~0u, lane < 31);
}

__global__ void tiles(int *out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = threadIdx.x;
  for (int d = 4; d > 0; d /= 2) v += tile.shfl_down(v, d);
  if (threadIdx.x % 3 == 0) {
    auto now = cg::coalesced_threads();
    v += 1000 * now.size();
  }
  out[threadIdx.x] = v;
}

__global__ void grid_barrier(int *data, int *out) {
  auto grid = cg::this_grid();
  int i = grid.thread_rank();
  data[i] = i;
  grid.sync();
  out[i] = data[(i + 33) % grid.size()];
}

__global__ void __cluster_dims__(4, 1, 1) cluster(int *out) {
  auto c = cg::this_cluster();
  __shared__ int s[32];
  s[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  c.sync();
  out[blockIdx.x * 32 + threadIdx.x] = *c.map_shared_rank(&s[threadIdx.x], (c.block_rank() + 1) % 4);
  c.sync();
}

__global__ void last_block_sums(const int *in, int *partial, int *out) {
  __shared__ bool last;
  int sum = __reduce_add_sync(~0u, in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc((unsigned *)&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    int total = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += 32) total += ((volatile int *)partial)[b];
    total = __reduce_add_sync(~0u, total);
    if (threadIdx.x == 0) *out = total;
  }
}

__global__ void producer_consumer(cuda::atomic<int, cuda::thread_scope_device> *a, int *out) {
  if (blockIdx.x == 1) {
    out[0] = 42;
    a->store(1, cuda::memory_order_release);
  } else {
    while (a->load(cuda::memory_order_acquire) == 0) {
    }
    out[1] = out[0];
  }
}

__global__ void counts(int *out) {
  int n = __syncthreads_count(threadIdx.x % 3 == 0);
  int all = __syncthreads_and(threadIdx.x < 64);
  int any = __syncthreads_or(threadIdx.x == 63);
  out[threadIdx.x] = n * 4 + all * 2 + any;
}

__global__ void select(int *out) {
  int i = threadIdx.x, v;
  switch (i % 7) {
    case 0: v = out[i] + 3; break;
    case 1: v = i * 5; break;
    case 2: v = i - 9; break;
    case 3: v = i ^ 77; break;
    case 4: v = i << 3; break;
    case 5: v = -i; break;
    default: v = 1000;
  }
  out[i] = v;
}

struct Pair { long long a; int b[3]; };
__device__ __noinline__ Pair shift(Pair p, int by) {
  p.a += by;
  for (int i = 0; i < 3; ++i) p.b[i] *= by;
  return p;
}
__global__ void structures(Pair *out) {
  Pair p = {(long long)threadIdx.x << 33, {1, 2, (int)threadIdx.x}};
  out[threadIdx.x] = shift(p, threadIdx.x + 1);
}

extern __shared__ int dynamic[];
__global__ void dynamic_shared(int *out) {
  __shared__ int fixed[3];
  fixed[threadIdx.x % 3] = -1;
  dynamic[threadIdx.x] = threadIdx.x * 3;
  __syncthreads();
  out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}
