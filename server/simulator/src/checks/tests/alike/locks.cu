// run: turns <<<2, 64>>> zeros:4 64
// run: within <<<1, 64>>> zeros:4 64
// run: last_block <<<8, 64>>> zeros:16 64
// A lock in global memory, with fences.
__global__ void turns(int* a, int n) {
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&a[0], 0, 1) != 0) {}
    __threadfence();
    a[1] += 1;
    __threadfence();
    atomicExch(&a[0], 0);
  }
}
// A lock in shared memory, taken by every lane in turn.
__global__ void within(int* a, int n) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence_block();
      sum += threadIdx.x;
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) a[2] = sum;
}
// The block that comes last adds up what the others left.
__global__ void last_block(int* a, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    a[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicAdd(&a[15], 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += static_cast<volatile int*>(a)[i];
    a[14] = sum;
  }
}
