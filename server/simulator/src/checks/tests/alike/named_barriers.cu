// run: pipeline <<<1, 64>>> zeros:32 6
__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__device__ void wait(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
// One warp fills two buffers in turn, the other empties them.
__global__ void pipeline(int* out, int n) {
  __shared__ int buffer[2][32];
  int lane = threadIdx.x & 31, sum = 0;
  if (threadIdx.x < 32) {
    for (int i = 0; i < n; ++i) {
      if (i >= 2) wait(3 + (i & 1));
      buffer[i & 1][lane] = i;
      arrive(1 + (i & 1));
    }
  } else {
    for (int i = 0; i < n; ++i) {
      wait(1 + (i & 1));
      sum += buffer[i & 1][31 - lane];
      if (i + 2 < n) arrive(3 + (i & 1));
    }
    out[lane] = sum;
  }
}
