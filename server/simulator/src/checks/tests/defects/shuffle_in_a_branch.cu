// run: sums <<<1, 32>>> zeros:32 16
__global__ void sums(int* a, int n) {
  int v = threadIdx.x;
  if (threadIdx.x < n) v += __shfl_xor_sync(0xffffffffu, v, 1);  // defect: missing-lanes
  a[threadIdx.x] = v;
}
