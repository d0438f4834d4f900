// run: odd <<<1, 32>>> zeros:32 1
__global__ void odd(char* a, int n) {
  *reinterpret_cast<int*>(a + n) = 1;  // defect: misaligned
}
