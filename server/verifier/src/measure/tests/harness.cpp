// A harness whose device is the host: the first argument says what its kernel does, and how it misbehaves.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum { cudaMemcpyDeviceToDevice, cudaMemcpyHostToDevice };
static const char* cudaGetErrorString(cudaError_t) { return "an error"; }
static cudaError_t cudaGetLastError() { return cudaSuccess; }
static cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
static cudaError_t cudaMemGetInfo(size_t* unused, size_t* total) {
  *unused = *total = getenv("SMALL") ? 0 : 1 << 30;
  return cudaSuccess;
}
template <typename T> cudaError_t cudaMalloc(T** to, size_t bytes) { return (*to = static_cast<T*>(malloc(bytes))) ? cudaSuccess : cudaErrorMemoryAllocation; }
static cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  memcpy(to, from, bytes);
  return cudaSuccess;
}

namespace stitch {
static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

template <typename T> struct Array {
  std::string name;
  std::vector<T> host;
  T* device = nullptr;
  Array(const char* name, size_t count, unsigned long long seed) : name(name), host(count) {
    // What `y` holds at first is never what a kernel that works leaves there.
    for (size_t i = 0; i < count; ++i) host[i] = static_cast<T>((seed + i * 7919) % 1000 + 1) * (this->name == "y" ? -1 : 1);
    check(cudaMalloc(&device, count * sizeof(T)), "cudaMalloc");
    fill();
  }
  void fill() { check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "fill"); }
  void finish(const char* folder) const {
    FILE* file = fopen((std::string(folder) + "/" + name + ".f32").c_str(), "wb");
    if (!file || fwrite(device, sizeof(T), host.size(), file) != host.size() || fclose(file)) exit(1);
  }
};
}  // namespace stitch

#include "timed.cuh"

static const char* behaviour;
static bool is(const char* what) { return strcmp(behaviour, what) == 0; }

// The connection, as one finds it who looks for it.
static int connection() {
  struct stat about;
  for (int file = 3; file < 64; ++file)
    if (fstat(file, &about) == 0 && S_ISSOCK(about.st_mode)) return file;
  return -1;
}

static void kernel(float* y, const float* x, int n) {
  static int calls = 0;
  ++calls;
  usleep(100);
  const bool is_late = calls > 20;
  if (is("lazy") && is_late) return;
  if (is("hang") && is_late) sleep(1000);
  if (is("crash") && is_late) abort();
  if (is("leave") && is_late) exit(0);
  if (is("print")) for (int i = 0; i < 200; ++i) printf("%1000000d\n", i);
  if (is("close") && is_late) { close(connection()); sleep(1000); }
  if (is("talk") && is_late) { (void)!write(connection(), "0123456789abcdef\n", 17); }
  if (is("grow")) for (int i = 0; i < n; ++i) y[i] = y[i] * 3.0f;
  else if (is("grow otherwise")) for (int i = 0; i < n; ++i) y[i] = y[i] + 2.0f * y[i] * 1.0000001f;
  else for (int i = 0; i < n; ++i) y[i] = is("wrong") ? x[i] * 1.01f : x[i];
}

int main(int, char** argv) {
  behaviour = argv[1];
  FILE* own = fopen("../process", "w");
  fprintf(own, "%d", getpid());
  fclose(own);
  if (is("early")) { fprintf(stderr, "no device\n"); return 3; }
  if (is("deaf")) sleep(1000);
  // Room for one process.
  if (is("large") && flock(open(argv[2], O_RDWR), LOCK_EX | LOCK_NB) != 0) { fprintf(stderr, "out of memory\n"); return 1; }
  stitch::Array<float> x("x", 1000, strtoull(argv[3], nullptr, 0)), y("y", 1000, 5);
  stitch::First<float> first_x(x), first_y(y);
  auto fill = [&] { first_x.back(); first_y.back(); };
  auto call = [&] { kernel(y.device, x.device, 1000); };
  auto save = [&](const char* folder) { y.finish(folder); };
  const int status = stitch::Timed::obey(argv[4], fill, call, save);
  if (is("stay")) sleep(1000);
  return status;
}
