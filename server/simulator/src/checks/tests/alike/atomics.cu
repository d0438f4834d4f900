// run: histogram <<<4, 128>>> zeros:64 512
// run: flags <<<1, 128>>> zeros:64 512
__global__ void histogram(int* out, int n) {
  __shared__ int bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[i * 7 & 63], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
// All threads store the same.
__global__ void flags(int* out, int n) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  if (threadIdx.x * 3 % 5 == 1) any = 1;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = any;
}
