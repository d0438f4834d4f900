// ---- What every harness needs -------------------------------------------------------------------------------------------

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

namespace stitch {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

// splitmix64: a small generator whose numbers depend on the seed and their index alone.
inline uint64_t draw(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// What the bytes of an element are: an element type, and how many of it.
template <typename Scalar, int Lanes = 1> struct Parts { using scalar = Scalar; static constexpr int lanes = Lanes; };
template <typename T> struct Element : Parts<T> {
  static_assert(std::is_arithmetic<T>::value, "This harness can't fill arrays of this type: add a line for it below.");
};
#define STITCH_VECTOR(type, scalar, lanes) template <> struct Element<type> : Parts<scalar, lanes> {}
STITCH_VECTOR(__half, __half, 1); STITCH_VECTOR(__half2, __half, 2);
STITCH_VECTOR(__nv_bfloat16, __nv_bfloat16, 1); STITCH_VECTOR(__nv_bfloat162, __nv_bfloat16, 2);
STITCH_VECTOR(float1, float, 1); STITCH_VECTOR(float2, float, 2); STITCH_VECTOR(float3, float, 3); STITCH_VECTOR(float4, float, 4);
STITCH_VECTOR(double1, double, 1); STITCH_VECTOR(double2, double, 2); STITCH_VECTOR(double3, double, 3);
STITCH_VECTOR(int1, int, 1); STITCH_VECTOR(int2, int, 2); STITCH_VECTOR(int3, int, 3); STITCH_VECTOR(int4, int, 4);
STITCH_VECTOR(uint1, unsigned, 1); STITCH_VECTOR(uint2, unsigned, 2); STITCH_VECTOR(uint3, unsigned, 3); STITCH_VECTOR(uint4, unsigned, 4);
STITCH_VECTOR(char2, signed char, 2); STITCH_VECTOR(char4, signed char, 4);
STITCH_VECTOR(uchar2, unsigned char, 2); STITCH_VECTOR(uchar3, unsigned char, 3); STITCH_VECTOR(uchar4, unsigned char, 4);
STITCH_VECTOR(short2, short, 2); STITCH_VECTOR(short4, short, 4); STITCH_VECTOR(ushort2, unsigned short, 2); STITCH_VECTOR(ushort4, unsigned short, 4);

template <typename T> constexpr bool is_real() {
  return std::is_floating_point<T>::value || std::is_same<T, __half>::value || std::is_same<T, __nv_bfloat16>::value;
}

// As the files of outputs are named: f32, i64, u8, bf16.
template <typename T> std::string type_name() {
  if (std::is_same<T, __nv_bfloat16>::value) return "bf16";
  char kind = is_real<T>() ? 'f' : std::is_signed<T>::value ? 'i' : 'u';
  return kind + std::to_string(8 * sizeof(T));
}

inline double as_double(__half v) { return __half2float(v); }
inline double as_double(__nv_bfloat16 v) { return __bfloat162float(v); }
template <typename T> double as_double(T v) { return static_cast<double>(v); }

inline void set(__half& to, double v) { to = __float2half(static_cast<float>(v)); }
inline void set(__nv_bfloat16& to, double v) { to = __float2bfloat16(static_cast<float>(v)); }
template <typename T> void set(T& to, double v) { to = static_cast<T>(v); }

// Functions are called by their full names from here on: in a template, one of the same name in the kernel's file would be found as well.

// An array in device memory, filled with numbers drawn from a seed: reals from -1 to 1, integers from 0 up to `limit`.
template <typename T> struct Array {
  using Scalar = typename Element<T>::scalar;
  static constexpr int lanes = Element<T>::lanes;
  std::string name;
  std::vector<T> host;
  T* device = nullptr;

  Array(const char* name, size_t count, uint64_t seed, uint64_t limit) : name(name), host(count) {
    Scalar* to = reinterpret_cast<Scalar*>(host.data());
    double most = sizeof(Scalar) == 1 && limit > 128 ? 128.0 : sizeof(Scalar) == 2 && limit > 32768 ? 32768.0 : double(limit);
    if (std::is_same<Scalar, bool>::value) most = 2;
    for (size_t i = 0; i < count * lanes; ++i) {
      double unit = static_cast<double>(stitch::draw(seed, i) >> 11) / 9007199254740992.0;  // 2^53
      stitch::set(to[i], is_real<Scalar>() ? 2 * unit - 1 : static_cast<double>(static_cast<uint64_t>(unit * most)));
    }
    stitch::check(cudaMalloc(reinterpret_cast<void**>(&device), count * sizeof(T)), "cudaMalloc");
    fill();
  }

  // Puts the drawn numbers into device memory.
  void fill() {
    stitch::check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy to the device");
  }

  // Copies the array back, prints a summary of it and, where there is a folder, writes all of it there.
  void finish(const char* folder) const {
    std::vector<T> left(host.size());
    stitch::check(cudaMemcpy(left.data(), device, left.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
    const Scalar* from = reinterpret_cast<const Scalar*>(left.data());
    size_t count = left.size() * lanes;
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += stitch::as_double(from[i]);
    printf("%s: %zu x %s, mean %.6g, first", name.c_str(), count, type_name<Scalar>().c_str(), count ? sum / count : 0.0);
    for (size_t i = 0; i < count && i < 4; ++i) printf(" %.6g", stitch::as_double(from[i]));
    printf("\n");
    if (!folder) return;
    std::string path = std::string(folder) + "/" + name + "." + type_name<Scalar>();
    FILE* file = fopen(path.c_str(), "wb");
    bool written = file && fwrite(left.data(), sizeof(T), left.size(), file) == left.size();
    if (!file || fclose(file) != 0 || !written) {
      fprintf(stderr, "%s could not be written\n", path.c_str());
      exit(1);
    }
  }
};

}  // namespace stitch
