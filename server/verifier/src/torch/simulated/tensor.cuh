// Stands in for torch's C++ tensors in an extension that runs without torch: shapes, strides, memory, and no arithmetic. What an extension
// needs beyond this does not compile, and its wrapper is then told to be beyond what is understood.
#pragma once
// Lists in braces live until the end of the call that they are written in, which is as long as they are read.
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace c10 {

// The numbers are torch's own (c10/core/ScalarType.h); the runner writes them too.
enum class ScalarType : int8_t { Byte = 0, Char = 1, Short = 2, Int = 3, Long = 4, Half = 5, Float = 6, Double = 7, Bool = 11, BFloat16 = 15 };
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
enum class Layout : int8_t { Strided };
enum class MemoryFormat : int8_t { Contiguous, Preserve };
using Half = __half;
using BFloat16 = __nv_bfloat16;
using DeviceIndex = int8_t;

class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... T>
std::string str(const T&... parts) {
  std::ostringstream text;
  (void)(text << ... << parts);
  return text.str();
}

inline void cuda_check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Error(str("CUDA error: ", cudaGetErrorString(error), " (", what, ")"));
}

inline const char* toString(ScalarType type) {
  switch (type) {
    case ScalarType::Byte: return "Byte";
    case ScalarType::Char: return "Char";
    case ScalarType::Short: return "Short";
    case ScalarType::Int: return "Int";
    case ScalarType::Long: return "Long";
    case ScalarType::Half: return "Half";
    case ScalarType::Float: return "Float";
    case ScalarType::Double: return "Double";
    case ScalarType::Bool: return "Bool";
    case ScalarType::BFloat16: return "BFloat16";
  }
  return "Undefined";
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }

inline size_t elementSize(ScalarType type) {
  switch (type) {
    case ScalarType::Byte: case ScalarType::Char: case ScalarType::Bool: return 1;
    case ScalarType::Short: case ScalarType::Half: case ScalarType::BFloat16: return 2;
    case ScalarType::Int: case ScalarType::Float: return 4;
    default: return 8;
  }
}
inline bool isFloatingType(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::BFloat16;
}
inline bool isIntegralType(ScalarType type, bool with_bool) { return type == ScalarType::Bool ? with_bool : !isFloatingType(type); }

template <typename T> struct CppTypeToScalarType;
#define STITCH_TYPE(T, NAME) template <> struct CppTypeToScalarType<T> { static constexpr ScalarType value = ScalarType::NAME; };
STITCH_TYPE(uint8_t, Byte) STITCH_TYPE(int8_t, Char) STITCH_TYPE(int16_t, Short) STITCH_TYPE(int32_t, Int) STITCH_TYPE(long, Long)
STITCH_TYPE(long long, Long) STITCH_TYPE(Half, Half) STITCH_TYPE(float, Float) STITCH_TYPE(double, Double) STITCH_TYPE(bool, Bool)
STITCH_TYPE(BFloat16, BFloat16)
#undef STITCH_TYPE

class Device {
 public:
  Device(DeviceType type, int index = -1) : type_(type), index_(index) {}
  Device(const std::string& name) : type_(name.rfind("cuda", 0) == 0 ? DeviceType::CUDA : DeviceType::CPU), index_(-1) {}
  Device(const char* name) : Device(std::string(name)) {}
  DeviceType type() const { return type_; }
  int index() const { return type_ == DeviceType::CUDA && index_ < 0 ? 0 : index_; }
  bool has_index() const { return true; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  std::string str() const { return is_cuda() ? "cuda:0" : "cpu"; }
  bool operator==(const Device& other) const { return type_ == other.type_; }
  bool operator!=(const Device& other) const { return type_ != other.type_; }

 private:
  DeviceType type_;
  int index_;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }

template <typename T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), length_(1) {}
  ArrayRef(const T* data, size_t length) : data_(data), length_(length) {}
  ArrayRef(const std::vector<T>& list) : data_(list.data()), length_(list.size()) {}
  template <size_t N> ArrayRef(const std::array<T, N>& list) : data_(list.data()), length_(N) {}
  ArrayRef(const std::initializer_list<T>& list) : data_(list.begin()), length_(list.size()) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + length_; }
  const T* data() const { return data_; }
  size_t size() const { return length_; }
  bool empty() const { return length_ == 0; }
  const T& operator[](size_t at) const { return data_[at]; }
  const T& at(size_t at) const { if (at >= length_) throw Error("index out of range"); return data_[at]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[length_ - 1]; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  ArrayRef slice(size_t from, size_t length) const { return ArrayRef(data_ + from, length); }
  ArrayRef slice(size_t from) const { return slice(from, length_ - from); }
  bool equals(ArrayRef other) const { return length_ == other.length_ && std::equal(begin(), end(), other.begin()); }
  bool operator==(ArrayRef other) const { return equals(other); }
  bool operator!=(ArrayRef other) const { return !equals(other); }

 private:
  const T* data_ = nullptr;
  size_t length_ = 0;
};
template <typename T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  out << "[";
  for (size_t at = 0; at < list.size(); ++at) out << (at ? ", " : "") << list[at];
  return out << "]";
}
using IntArrayRef = ArrayRef<int64_t>;
using std::optional;
using std::nullopt;

class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  Scalar(T value) : real_(double(value)), whole_(int64_t(value)), is_whole_(std::is_integral<T>::value) {}
  template <typename T> T to() const { return is_whole_ ? T(whole_) : T(real_); }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool isFloatingPoint() const { return !is_whole_; }

 private:
  double real_;
  int64_t whole_;
  bool is_whole_;
};

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : type_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}
  TensorOptions dtype(ScalarType type) const { TensorOptions next = *this; next.type_ = type; return next; }
  template <typename T> TensorOptions dtype() const { return dtype(CppTypeToScalarType<T>::value); }
  TensorOptions device(Device device) const { TensorOptions next = *this; next.device_ = device; return next; }
  TensorOptions device(DeviceType type, int index) const { return device(Device(type, index)); }
  TensorOptions requires_grad(bool = true) const { return *this; }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  ScalarType dtype() const { return type_; }
  Device device() const { return device_; }

 private:
  ScalarType type_ = ScalarType::Float;
  Device device_{DeviceType::CPU};
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions().dtype(type); }
inline TensorOptions device(Device device) { return TensorOptions().device(device); }
inline TensorOptions device(DeviceType device) { return TensorOptions().device(device); }

// What `x.type()` of old code gives.
struct DeprecatedTypeProperties {
  ScalarType type;
  bool on_device;
  bool is_cuda() const { return on_device; }
  ScalarType scalarType() const { return type; }
  operator ScalarType() const { return type; }
};

// Memory of the device, or of the host.
struct Storage {
  Storage(size_t bytes, bool on_device) : bytes(bytes), on_device(on_device) {
    // What was not written is no number: torch's memory holds anything, and here it must not look like an answer.
    if (on_device) {
      cuda_check(cudaMalloc(&data, bytes ? bytes : 1), "cudaMalloc");
      if (bytes) cuda_check(cudaMemset(data, 0xFF, bytes), "cudaMemset");
    } else {
      data = malloc(bytes ? bytes : 1);
      if (!data) throw Error("out of memory");
      memset(data, 0xFF, bytes);
    }
  }
  ~Storage() { if (on_device) cudaFree(data); else free(data); }
  Storage(const Storage&) = delete;
  void read(void* to, size_t from, size_t count) const {
    if (!count) return;
    if (on_device) cuda_check(cudaMemcpy(to, (char*)data + from, count, cudaMemcpyDeviceToHost), "cudaMemcpy");
    else memcpy(to, (char*)data + from, count);
  }
  void write(const void* from, size_t to, size_t count) {
    if (!count) return;
    if (on_device) cuda_check(cudaMemcpy((char*)data + to, from, count, cudaMemcpyHostToDevice), "cudaMemcpy");
    else memcpy((char*)data + to, from, count);
  }
  void* data = nullptr;
  size_t bytes;
  bool on_device;
};

template <typename T> struct DefaultPtrTraits { typedef T* PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };

template <typename T, size_t N, template <typename U> class Traits, typename Index>
class PackedAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  __host__ __device__ PackedAccessor(PtrType data, const Index* sizes, const Index* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) { sizes_[d] = sizes[d]; strides_[d] = strides[d]; }
  }
  __host__ __device__ Index size(size_t d) const { return sizes_[d]; }
  __host__ __device__ Index stride(size_t d) const { return strides_[d]; }
  __host__ __device__ PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](Index at) const {
    if constexpr (N == 1) return (data_[at * strides_[0]]);
    else return PackedAccessor<T, N - 1, Traits, Index>(data_ + at * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  PtrType data_;
  Index sizes_[N], strides_[N];
};
template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits> using PackedTensorAccessor32 = PackedAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits> using PackedTensorAccessor64 = PackedAccessor<T, N, Traits, int64_t>;

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, ScalarType type, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset = 0)
      : impl_(std::make_shared<Impl>(Impl{std::move(storage), type, std::move(sizes), std::move(strides), offset})) {}
  bool defined() const { return bool(impl_); }
  int64_t dim() const { return int64_t(impl().sizes.size()); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { int64_t count = 1; for (int64_t size : impl().sizes) count *= size; return count; }
  int64_t size(int64_t d) const { return impl().sizes[place(d)]; }
  int64_t stride(int64_t d) const { return impl().strides[place(d)]; }
  IntArrayRef sizes() const { return impl().sizes; }
  IntArrayRef strides() const { return impl().strides; }
  int64_t storage_offset() const { return impl().offset; }
  size_t element_size() const { return elementSize(impl().type); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return size_t(numel()) * element_size(); }
  ScalarType scalar_type() const { return impl().type; }
  ScalarType dtype() const { return impl().type; }
  DeprecatedTypeProperties type() const { return {impl().type, is_cuda()}; }
  Device device() const { return Device(is_cuda() ? DeviceType::CUDA : DeviceType::CPU); }
  int get_device() const { return is_cuda() ? 0 : -1; }
  Layout layout() const { return Layout::Strided; }
  TensorOptions options() const { return TensorOptions(impl().type).device(device()); }
  bool is_cuda() const { return impl().storage->on_device; }
  bool is_cpu() const { return !is_cuda(); }
  bool is_floating_point() const { return isFloatingType(impl().type); }
  bool is_sparse() const { return false; }
  bool requires_grad() const { return false; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  Tensor detach() const { return *this; }
  Tensor alias(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset) const {
    return Tensor(impl().storage, impl().type, std::move(sizes), std::move(strides), offset);
  }

  static std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size());
    int64_t step = 1;
    for (size_t d = sizes.size(); d-- > 0;) { strides[d] = step; step *= sizes[d] > 0 ? sizes[d] : 1; }
    return strides;
  }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    const std::vector<int64_t> wanted = row_major(impl().sizes);
    for (size_t d = 0; d < wanted.size(); ++d)
      if (impl().sizes[d] != 1 && impl().strides[d] != wanted[d] && numel()) return false;
    return true;
  }
  bool is_non_overlapping_and_dense() const { return is_contiguous(); }
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return is_contiguous() ? *this : clone(); }
  Tensor clone() const { return made(bytes(), impl().type, impl().sizes, is_cuda()); }

  void* data_ptr() const { return (char*)impl().storage->data + impl().offset * int64_t(element_size()); }
  template <typename T> T* data_ptr() const {
    using Plain = std::remove_const_t<T>;
    if constexpr (!std::is_void<Plain>::value) {
      if (CppTypeToScalarType<Plain>::value != impl().type)
        throw Error(str("expected scalar type ", CppTypeToScalarType<Plain>::value, " but found ", impl().type));
    }
    return static_cast<T*>(data_ptr());
  }
  template <typename T> T* data() const { return data_ptr<T>(); }
  template <typename T> T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <typename T> const T* const_data_ptr() const { return data_ptr<T>(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits>
  PackedAccessor<T, N, Traits, int32_t> packed_accessor32() const { return packed<T, N, Traits, int32_t>(); }
  template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits>
  PackedAccessor<T, N, Traits, int64_t> packed_accessor64() const { return packed<T, N, Traits, int64_t>(); }

  Tensor view(IntArrayRef sizes) const {
    if (!is_contiguous()) throw Error("view size is not compatible with input tensor's size and stride; use .reshape(...) instead");
    std::vector<int64_t> wanted = complete(sizes);
    return alias(wanted, row_major(wanted), impl().offset);
  }
  Tensor reshape(IntArrayRef sizes) const { return contiguous().view(sizes); }
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor flatten(int64_t from = 0, int64_t to = -1) const {
    std::vector<int64_t> sizes;
    const int64_t first = int64_t(place(from)), last = int64_t(place(to));
    for (int64_t d = 0; d < dim(); ++d)
      if (d > first && d <= last) sizes.back() *= impl().sizes[d]; else sizes.push_back(impl().sizes[d]);
    return reshape(sizes);
  }
  Tensor unsqueeze(int64_t d) const {
    std::vector<int64_t> sizes = impl().sizes, strides = impl().strides;
    const int64_t at = d < 0 ? d + dim() + 1 : d;
    const int64_t step = at < dim() ? sizes[at] * strides[at] : 1;
    sizes.insert(sizes.begin() + at, 1);
    strides.insert(strides.begin() + at, step);
    return alias(sizes, strides, impl().offset);
  }
  Tensor squeeze(int64_t d) const {
    std::vector<int64_t> sizes = impl().sizes, strides = impl().strides;
    const size_t at = place(d);
    if (sizes[at] == 1) { sizes.erase(sizes.begin() + at); strides.erase(strides.begin() + at); }
    return alias(sizes, strides, impl().offset);
  }
  Tensor squeeze() const {
    Tensor next = *this;
    for (int64_t d = dim(); d-- > 0;) next = next.squeeze(d);
    return next;
  }
  Tensor transpose(int64_t a, int64_t b) const {
    std::vector<int64_t> sizes = impl().sizes, strides = impl().strides;
    std::swap(sizes[place(a)], sizes[place(b)]);
    std::swap(strides[place(a)], strides[place(b)]);
    return alias(sizes, strides, impl().offset);
  }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor permute(IntArrayRef order) const {
    std::vector<int64_t> sizes, strides;
    for (int64_t d : order) { sizes.push_back(size(d)); strides.push_back(stride(d)); }
    return alias(sizes, strides, impl().offset);
  }
  Tensor expand(IntArrayRef sizes) const {
    std::vector<int64_t> wanted = sizes.vec(), strides(sizes.size(), 0);
    const int64_t more = int64_t(wanted.size()) - dim();
    for (int64_t d = 0; d < int64_t(wanted.size()); ++d) {
      const int64_t own = d < more ? 1 : size(d - more);
      if (wanted[d] < 0) wanted[d] = own;
      if (own == wanted[d] && d >= more) strides[d] = stride(d - more);
      else if (own != 1) throw Error("the expanded size must match the existing size");
    }
    return alias(wanted, strides, impl().offset);
  }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor narrow(int64_t d, int64_t from, int64_t length) const {
    std::vector<int64_t> sizes = impl().sizes;
    const size_t at = place(d);
    if (from < 0 || length < 0 || from + length > sizes[at]) throw Error("narrow: out of range");
    sizes[at] = length;
    return alias(sizes, impl().strides, impl().offset + from * impl().strides[at]);
  }
  Tensor select(int64_t d, int64_t index) const { return narrow(d, index < 0 ? index + size(d) : index, 1).squeeze(d); }
  Tensor operator[](int64_t index) const { return select(0, index); }

  Tensor& zero_() { return fill_(0); }
  Tensor zero_() const { Tensor self = *this; self.fill_(0); return self; }
  Tensor& fill_(Scalar value) {
    std::vector<char> bytes(nbytes());
    for (int64_t at = 0; at < numel(); ++at) put(bytes.data() + at * element_size(), impl().type, value.toDouble());
    scatter(bytes);
    return *this;
  }
  Tensor& copy_(const Tensor& other) { scatter(other.expand(sizes()).to(impl().type).bytes()); return *this; }
  Tensor& set_requires_grad(bool) { return *this; }
  Tensor& requires_grad_(bool = true) { return *this; }

  Tensor to(ScalarType type) const {
    if (type == impl().type) return *this;
    const std::vector<char> from = bytes();
    std::vector<char> into(size_t(numel()) * elementSize(type));
    for (int64_t at = 0; at < numel(); ++at) put(into.data() + at * elementSize(type), type, get(from.data() + at * element_size(), impl().type));
    return made(into, type, impl().sizes, is_cuda());
  }
  Tensor to(Device device) const { return device.is_cuda() == is_cuda() ? *this : made(bytes(), impl().type, impl().sizes, device.is_cuda()); }
  Tensor to(DeviceType device) const { return to(Device(device)); }
  Tensor to(Device device, ScalarType type) const { return to(device).to(type); }
  Tensor to(TensorOptions options) const { return to(options.device()).to(options.dtype()); }
  Tensor cpu() const { return to(DeviceType::CPU); }
  Tensor cuda() const { return to(DeviceType::CUDA); }
  Tensor to_float() const { return to(ScalarType::Float); }
  Tensor toType(ScalarType type) const { return to(type); }
  template <typename T> T item() const {
    if (numel() != 1) throw Error("a Tensor with other than 1 element cannot be converted to Scalar");
    return T(get(bytes().data(), impl().type));
  }
  Scalar item() const { return item<double>(); }

  // The elements in row-major order.
  std::vector<char> bytes() const {
    const size_t each = element_size(), count = size_t(numel());
    std::vector<char> result(count * each);
    if (!count) return result;
    if (is_contiguous()) { impl().storage->read(result.data(), size_t(impl().offset) * each, result.size()); return result; }
    std::vector<char> span = raw();
    walk([&](size_t number, int64_t at) { memcpy(&result[number * each], &span[size_t(at) * each], each); });
    return result;
  }
  // The elements from the first to the last in memory, as they lie there.
  std::vector<char> raw() const {
    std::vector<char> result(span() * element_size());
    impl().storage->read(result.data(), size_t(impl().offset) * element_size(), result.size());
    return result;
  }
  size_t span() const {
    if (!numel()) return 0;
    int64_t last = 0;
    for (size_t d = 0; d < impl().sizes.size(); ++d) last += (impl().sizes[d] - 1) * impl().strides[d];
    return size_t(last) + 1;
  }
  static Tensor made(const std::vector<char>& bytes, ScalarType type, const std::vector<int64_t>& sizes, bool on_device) {
    auto storage = std::make_shared<Storage>(bytes.size(), on_device);
    storage->write(bytes.data(), 0, bytes.size());
    return Tensor(storage, type, sizes, row_major(sizes));
  }
  const std::shared_ptr<Storage>& storage_of() const { return impl().storage; }

 private:
  struct Impl {
    std::shared_ptr<Storage> storage;
    ScalarType type;
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  Impl& impl() const { if (!impl_) throw Error("tensor is undefined"); return *impl_; }
  size_t place(int64_t d) const {
    const int64_t at = d < 0 ? d + dim() : d;
    if (at < 0 || at >= dim()) throw Error(str("Dimension out of range (expected to be in range of [", -dim(), ", ", dim() - 1, "], but got ", d, ")"));
    return size_t(at);
  }
  std::vector<int64_t> complete(IntArrayRef sizes) const {
    std::vector<int64_t> wanted = sizes.vec();
    int64_t known = 1, open = -1;
    for (size_t d = 0; d < wanted.size(); ++d) if (wanted[d] == -1) open = int64_t(d); else known *= wanted[d];
    if (open >= 0 && known) wanted[size_t(open)] = numel() / known;
    int64_t count = 1;
    for (int64_t size : wanted) count *= size;
    if (count != numel()) throw Error(str("shape '", sizes, "' is invalid for input of size ", numel()));
    return wanted;
  }
  template <typename F> void walk(F&& visit) const {
    std::vector<int64_t> at(impl().sizes.size(), 0);
    const size_t count = size_t(numel());
    int64_t element = 0;
    for (size_t number = 0; number < count; ++number) {
      visit(number, element);
      for (size_t d = at.size(); d-- > 0;) {
        element += impl().strides[d];
        if (++at[d] < impl().sizes[d]) break;
        element -= at[d] * impl().strides[d];
        at[d] = 0;
      }
    }
  }
  void scatter(const std::vector<char>& bytes) {
    const size_t each = element_size();
    if (is_contiguous()) { impl().storage->write(bytes.data(), size_t(impl().offset) * each, bytes.size()); return; }
    std::vector<char> span = raw();
    walk([&](size_t number, int64_t at) { memcpy(&span[size_t(at) * each], &bytes[number * each], each); });
    impl().storage->write(span.data(), size_t(impl().offset) * each, span.size());
  }
  template <typename T, size_t N, template <typename U> class Traits, typename Index>
  PackedAccessor<T, N, Traits, Index> packed() const {
    if (dim() != int64_t(N)) throw Error(str("TensorAccessor expected ", N, " dims but tensor has ", dim()));
    Index sizes[N], strides[N];
    for (size_t d = 0; d < N; ++d) { sizes[d] = Index(impl().sizes[d]); strides[d] = Index(impl().strides[d]); }
    return PackedAccessor<T, N, Traits, Index>(data_ptr<T>(), sizes, strides);
  }
  template <typename T> static T load(const char* at) { T value; memcpy(&value, at, sizeof(T)); return value; }
  template <typename T> static void store(char* at, T value) { memcpy(at, &value, sizeof(T)); }
  static double get(const char* at, ScalarType type) {
    switch (type) {
      case ScalarType::Byte: return load<uint8_t>(at);
      case ScalarType::Char: return load<int8_t>(at);
      case ScalarType::Short: return load<int16_t>(at);
      case ScalarType::Int: return load<int32_t>(at);
      case ScalarType::Long: return double(load<int64_t>(at));
      case ScalarType::Half: return __half2float(load<Half>(at));
      case ScalarType::Float: return load<float>(at);
      case ScalarType::Double: return load<double>(at);
      case ScalarType::Bool: return load<uint8_t>(at) != 0;
      case ScalarType::BFloat16: return __bfloat162float(load<BFloat16>(at));
    }
    return 0;
  }
  static void put(char* at, ScalarType type, double value) {
    switch (type) {
      case ScalarType::Byte: return store(at, uint8_t(value));
      case ScalarType::Char: return store(at, int8_t(value));
      case ScalarType::Short: return store(at, int16_t(value));
      case ScalarType::Int: return store(at, int32_t(value));
      case ScalarType::Long: return store(at, int64_t(value));
      case ScalarType::Half: return store(at, __float2half(float(value)));
      case ScalarType::Float: return store(at, float(value));
      case ScalarType::Double: return store(at, value);
      case ScalarType::Bool: return store(at, uint8_t(value != 0));
      case ScalarType::BFloat16: return store(at, __float2bfloat16(float(value)));
    }
  }
  std::shared_ptr<Impl> impl_;
};

inline Tensor empty(IntArrayRef sizes, TensorOptions options = {}) {
  size_t count = 1;
  for (int64_t size : sizes) {
    if (size < 0) throw Error(str("Trying to create tensor with negative dimension ", size));
    count *= size_t(size);
  }
  auto storage = std::make_shared<Storage>(count * elementSize(options.dtype()), options.device().is_cuda());
  return Tensor(storage, options.dtype(), sizes.vec(), Tensor::row_major(sizes.vec()));
}
inline Tensor full(IntArrayRef sizes, Scalar value, TensorOptions options = {}) { Tensor made = empty(sizes, options); made.fill_(value); return made; }
inline Tensor zeros(IntArrayRef sizes, TensorOptions options = {}) { return full(sizes, 0, options); }
inline Tensor ones(IntArrayRef sizes, TensorOptions options = {}) { return full(sizes, 1, options); }
// Dense strides are kept, as torch does.
inline Tensor empty_like(const Tensor& like, TensorOptions options) {
  Tensor made = empty(like.sizes(), options);
  return int64_t(like.span()) == like.numel() ? made.alias(like.sizes().vec(), like.strides().vec(), 0) : made;
}
inline Tensor empty_like(const Tensor& like) { return empty_like(like, like.options()); }
inline Tensor full_like(const Tensor& like, Scalar value, TensorOptions options) { Tensor made = empty_like(like, options); made.fill_(value); return made; }
inline Tensor full_like(const Tensor& like, Scalar value) { return full_like(like, value, like.options()); }
inline Tensor zeros_like(const Tensor& like, TensorOptions options) { return full_like(like, 0, options); }
inline Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
inline Tensor ones_like(const Tensor& like, TensorOptions options) { return full_like(like, 1, options); }
inline Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte, kChar = ScalarType::Char, kInt8 = ScalarType::Char,
    kShort = ScalarType::Short, kInt16 = ScalarType::Short, kInt = ScalarType::Int, kInt32 = ScalarType::Int, kLong = ScalarType::Long,
    kInt64 = ScalarType::Long, kHalf = ScalarType::Half, kFloat16 = ScalarType::Half, kFloat = ScalarType::Float, kFloat32 = ScalarType::Float,
    kDouble = ScalarType::Double, kFloat64 = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
constexpr Layout kStrided = Layout::Strided;

namespace cuda {
class CUDAStream {
 public:
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return nullptr; }
  void synchronize() const { cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return &properties;
}
inline cudaDeviceProp* getDeviceProperties(int) { return getCurrentDeviceProperties(); }
inline int current_device() { return 0; }
inline int device_count() { return 1; }
struct CUDAGuard {
  template <typename T> explicit CUDAGuard(T) {}
  template <typename T> void set_device(T) {}
};
struct OptionalCUDAGuard {
  OptionalCUDAGuard() = default;
  template <typename T> explicit OptionalCUDAGuard(T) {}
};
}  // namespace cuda
struct DeviceGuard { template <typename T> explicit DeviceGuard(T) {} };
inline std::optional<Device> device_of(const Tensor& tensor) { return tensor.device(); }
}  // namespace c10

namespace at { using namespace c10; namespace cuda { using namespace c10::cuda; } }
namespace torch {
using namespace at;
using Dtype = c10::ScalarType;
using IntArrayRef = c10::IntArrayRef;
struct NoGradGuard {};
namespace cuda { using namespace c10::cuda; inline bool is_available() { return true; } inline void synchronize(int = -1) { cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); } }
}  // namespace torch

#define STITCH_RAISE(...) throw ::c10::Error(::c10::str(__VA_ARGS__))
#define TORCH_CHECK(CONDITION, ...) do { if (!(CONDITION)) STITCH_RAISE("Expected " #CONDITION " to be true. ", ##__VA_ARGS__); } while (0)
#define TORCH_CHECK_WITH(TYPE, CONDITION, ...) TORCH_CHECK(CONDITION, ##__VA_ARGS__)
#define TORCH_CHECK_EQ(A, B) TORCH_CHECK((A) == (B))
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_CHECK TORCH_CHECK
#define AT_ERROR(...) STITCH_RAISE(__VA_ARGS__)
#define TORCH_WARN(...) ((void)0)
#define C10_CUDA_CHECK(CALL) ::c10::cuda_check(CALL, #CALL)
#define AT_CUDA_CHECK(CALL) C10_CUDA_CHECK(CALL)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_LAUNCH_BOUNDS_1(N) __launch_bounds__(N)

#define STITCH_CASE(NAME, T, ...) case ::c10::ScalarType::NAME: { using scalar_t [[maybe_unused]] = T; return __VA_ARGS__(); }
#define STITCH_SWITCH(TYPE, NAME, CASES) \
  [&] { const ::c10::ScalarType stitch_type = (TYPE); switch (stitch_type) { CASES default: STITCH_RAISE("\"", NAME, "\" not implemented for '", stitch_type, "'"); } }()
#define STITCH_FLOATS(...) STITCH_CASE(Float, float, __VA_ARGS__) STITCH_CASE(Double, double, __VA_ARGS__)
#define STITCH_INTEGERS(...) \
  STITCH_CASE(Byte, uint8_t, __VA_ARGS__) STITCH_CASE(Char, int8_t, __VA_ARGS__) STITCH_CASE(Short, int16_t, __VA_ARGS__) \
  STITCH_CASE(Int, int32_t, __VA_ARGS__) STITCH_CASE(Long, int64_t, __VA_ARGS__)
#define STITCH_HALF(...) STITCH_CASE(Half, ::c10::Half, __VA_ARGS__)
#define STITCH_BFLOAT16(...) STITCH_CASE(BFloat16, ::c10::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) STITCH_SWITCH(TYPE, NAME, STITCH_FLOATS(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) STITCH_SWITCH(TYPE, NAME, STITCH_FLOATS(__VA_ARGS__) STITCH_HALF(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) STITCH_SWITCH(TYPE, NAME, STITCH_FLOATS(__VA_ARGS__) STITCH_INTEGERS(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) STITCH_SWITCH(TYPE, NAME, STITCH_INTEGERS(__VA_ARGS__))
// The types that are named besides are Half and BFloat16 wherever these are used.
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) \
  STITCH_SWITCH(TYPE, NAME, STITCH_FLOATS(__VA_ARGS__) STITCH_HALF(__VA_ARGS__) STITCH_BFLOAT16(__VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) STITCH_SWITCH(TYPE, NAME, STITCH_HALF(__VA_ARGS__) STITCH_BFLOAT16(__VA_ARGS__))
