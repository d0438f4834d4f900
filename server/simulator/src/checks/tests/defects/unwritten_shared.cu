// run: half <<<1, 64>>> zeros:64 32
__global__ void half(int* out, int n) {
  __shared__ int tile[64];
  if (threadIdx.x < n) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // defect: uninitialised-read
}
