// run: sums <<<1, 24>>> zeros:24 24
__global__ void sums(int* a, int n) {
  int v = threadIdx.x;
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);  // defect: missing-lanes
  a[threadIdx.x] = v;
}
