// run: sums <<<1, 32>>> zeros:32 3
__global__ void sums(int* out, int n) {
  int own[8];
  for (int i = 0; i < n; ++i) own[i * 2 % 7] = i;
  out[threadIdx.x] = own[out[0] + 5];  // defect: uninitialised-read
}
