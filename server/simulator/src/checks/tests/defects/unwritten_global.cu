// run: adds <<<1, 32>>> blank:32 32
__global__ void adds(int* a, int n) {
  a[threadIdx.x] += n;  // defect: uninitialised-read
}
