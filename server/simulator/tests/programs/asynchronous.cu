// Kernels that wait for what others do while they run: the host, host functions, other streams.
#include <chrono>
#include <cstdio>
#include <thread>
#include <unistd.h>
#include <cuda_runtime.h>

__global__ void waits(volatile int *flag, int value) {
  while (*flag != value) {
  }
}
__global__ void waits_politely(volatile int *flag, int value) {
  while (*flag != value) __nanosleep(1000);
}
__global__ void waits_atomically(int *flag, int value) {
  while (atomicAdd(flag, 0) != value) {
  }
}
__global__ void releases(volatile int *flag, int value) { *flag = value; }
__global__ void counts(int *count) { atomicAdd(count, 1); }

static int *flag_of(bool managed) {
  int *flag;
  if (managed) cudaMallocManaged(&flag, sizeof *flag); else cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped);
  *(volatile int *)flag = 0;
  return flag;
}
static void set(void *flag) { *(volatile int *)flag = 1; }
static void say(const char *what, cudaError_t before, cudaError_t after) { printf("%s: %d %d\n", what, before, after); }

int main() {
  cudaStream_t s, t;
  cudaEvent_t e;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  cudaEventCreate(&e);
  for (bool managed : {false, true}) {
    int *flag = flag_of(managed);
    waits<<<1, 32, 0, s>>>(flag, 1);
    cudaEventRecord(e, s);
    cudaError_t stream = cudaStreamQuery(s), event = cudaEventQuery(e);
    set(flag);
    cudaStreamSynchronize(s);
    say(managed ? "managed" : "mapped", stream, cudaStreamQuery(s));
    say("event", event, cudaEventQuery(e));
  }
  int *flag = flag_of(false);
  waits_politely<<<2, 32, 0, s>>>(flag, 1);
  std::thread([=] { usleep(50000); set(flag); }).join();
  say("released by a thread, awaited by an event", cudaEventRecord(e, s), cudaEventSynchronize(e));

  // Another thread waits for the device; this one goes on using it.
  *(volatile int *)flag = 0;
  waits_atomically<<<1, 1, 0, s>>>(flag, 1);
  cudaError_t waited = cudaErrorUnknown;
  std::thread waiter([&] { waited = cudaStreamSynchronize(s); });
  int *count, result = -1;
  cudaMalloc(&count, sizeof *count);
  cudaMemsetAsync(count, 0, sizeof *count, t);
  counts<<<4, 32, 0, t>>>(count);
  cudaMemcpyAsync(&result, count, sizeof result, cudaMemcpyDeviceToHost, t);
  say("beside a waiting kernel", cudaStreamSynchronize(t), cudaStreamQuery(s));
  printf("counted %d\n", result);
  set(flag);
  waiter.join();
  say("thread that waited", waited, cudaSuccess);

  // Released by a kernel, a copy, and a host function of another stream.
  int *device, one = 1;
  cudaMalloc(&device, sizeof *device);
  cudaMemset(device, 0, sizeof *device);
  waits<<<1, 1, 0, s>>>(device, 1);
  releases<<<1, 1, 0, t>>>(device, 1);
  say("released by a kernel", cudaStreamSynchronize(s), cudaGetLastError());
  cudaMemset(device, 0, sizeof *device);
  waits<<<1, 1, 0, s>>>(device, 1);
  cudaMemcpyAsync(device, &one, sizeof one, cudaMemcpyHostToDevice, t);
  say("released by a copy", cudaStreamSynchronize(s), cudaGetLastError());
  *(volatile int *)flag = 0;
  waits<<<1, 1, 0, s>>>(flag, 1);
  cudaLaunchHostFunc(t, set, flag);
  say("released by a host function", cudaStreamSynchronize(s), cudaGetLastError());

  // What a stream is still to copy may be changed once the call returned.
  *(volatile int *)flag = 0;
  int value = 5, back = 0;
  waits<<<1, 1, 0, s>>>(flag, 1);
  cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, s);
  value = 6;
  set(flag);
  cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, s);
  printf("put aside: %d\n", back);

  // The legacy stream waits for blocking streams, and they for it.
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  *(volatile int *)flag = 0;
  waits<<<1, 1, 0, blocking>>>(flag, 1);
  releases<<<1, 1>>>(device, 7);
  cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, t);
  printf("behind a blocking stream: %d\n", back);
  cudaError_t busy = cudaStreamQuery(0);
  set(flag);
  say("legacy", busy, cudaStreamSynchronize(0));
  cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost);
  printf("after it: %d\n", back);

  // Faults come with the next call that waits.
  releases<<<1, 1, 0, t>>>(nullptr, 1);
  cudaError_t launched = cudaGetLastError();
  say("fault", launched, cudaDeviceSynchronize());
}
