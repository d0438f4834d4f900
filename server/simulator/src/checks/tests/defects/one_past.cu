// run: one_past <<<1, 32>>> zeros:31 31
__global__ void one_past(int* a, int n) {
  if (threadIdx.x <= n) a[threadIdx.x] = 1;  // defect: out-of-bounds
}
