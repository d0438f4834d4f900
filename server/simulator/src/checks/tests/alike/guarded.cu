// run: guarded <<<4, 256>>> zeros:1000 1000
// run: early <<<4, 256>>> zeros:1000 1000
// run: busy <<<4, 256>>> zeros:1000 900
__global__ void guarded(int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += 1;
}
// Threads that have nothing to do exit before the barrier.
__global__ void early(int* a, int n) {
  __shared__ int tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = a[i];
  __syncthreads();
  a[i] = tile[threadIdx.x ^ 1] + 1;
}
// The same, after a little work.
__global__ void busy(int* a, int n) {
  __shared__ int tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) {
    if (i < 1000) a[i] = 7;
    return;
  }
  tile[threadIdx.x] = a[i];
  __syncthreads();
  a[i] = tile[threadIdx.x ^ 1] + 1;
}
