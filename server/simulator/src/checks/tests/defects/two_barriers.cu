// run: either <<<1, 64>>> zeros:64 5
__global__ void either(int* a, int n) {
  if (threadIdx.x % 8 < n) {
    a[threadIdx.x] = 1;
    __syncthreads();  // defect: divergent-barrier
  } else {
    a[threadIdx.x] = 2;
  }
  a[threadIdx.x] += n;
  __syncthreads();
}
