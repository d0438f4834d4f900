// run: votes <<<1, 32>>> zeros:32 16
__global__ void votes(int* a, int n) {
  a[threadIdx.x] = __shfl_sync(0x0000ffffu, n, 0);  // defect: missing-lanes
}
