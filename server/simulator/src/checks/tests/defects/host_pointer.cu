// run: host <<<1, 32>>> host:32 32
__global__ void host(const int* a, int n) {
  if (a[threadIdx.x] == 7) asm volatile("trap;");  // defect: host-pointer
}
