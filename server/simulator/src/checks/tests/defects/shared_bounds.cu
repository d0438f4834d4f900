// run: reversed <<<1, 32>>> zeros:32 32
__global__ void reversed(int* out, int n) {
  __shared__ int tile[32];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[n - threadIdx.x];  // defect: out-of-bounds
}
