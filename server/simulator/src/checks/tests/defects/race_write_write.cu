// run: last <<<1, 128>>> zeros:128 128
__global__ void last(int* out, int n) {
  __shared__ int one;
  one = threadIdx.x;  // defect: shared-race with 4
  __syncthreads();
  out[threadIdx.x] = one;
}
