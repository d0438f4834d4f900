// run: beyond <<<1, 32>>> zeros:32 100000
__global__ void beyond(int* out, int n) {
  int own[4] = {1, 2, 3, 4};
  for (int i = 0; i < 4; ++i) own[(i + out[0]) & 3] += i;
  out[threadIdx.x] = own[n];  // defect: out-of-bounds
}
