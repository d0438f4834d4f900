// run: badsync <<<1, 32>>> zeros:32 16
__global__ void badsync(int* a, int n) {
  if (threadIdx.x < n) __syncthreads();  // defect: divergent-barrier
  a[threadIdx.x] = 1;
}
