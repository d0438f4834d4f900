// run: pair_up <<<1, 128>>> zeros:128 128
__global__ void pair_up(int* out, int n) {
  __shared__ int tile[128];
  int t = threadIdx.x;
  tile[t] = t;
  // every thread has stored its element here
  out[t] = t >= 64 ? tile[t - 64] : 0;  // defect: shared-race with 5
}
