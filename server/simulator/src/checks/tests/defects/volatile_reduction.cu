// run: sums <<<1, 64>>> zeros:1 64
__global__ void sums(int* out, int n) {
  __shared__ volatile int tile[64];
  int t = threadIdx.x;
  tile[t] = t;
  __syncthreads();
  if (t < 32) {
    tile[t] += tile[t + 32];
    tile[t] += tile[t + 16];  // defect: shared-race with 8 // defect: shared-race with 9
    tile[t] += tile[t + 8];  // defect: shared-race with 9 // defect: shared-race with 10
  }
  if (t == 0) out[0] = tile[0];
}
