// Takes one call from a file and writes what came of it: `program CALL ANSWER`. The runner's `simulated.py` writes and reads the same.

namespace stitch {

class Reader {
 public:
  explicit Reader(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file) throw std::runtime_error("the call can't be read");
    char part[65536];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;) bytes_.insert(bytes_.end(), part, part + got);
    fclose(file);
  }
  template <typename T> T number() { T value; memcpy(&value, take(sizeof(T)), sizeof(T)); return value; }
  std::string text() { const uint32_t length = number<uint32_t>(); return std::string(take(length), length); }
  const char* take(size_t count) {
    if (bytes_.size() - at_ < count) throw std::runtime_error("the call is cut off");
    at_ += count;
    return bytes_.data() + at_ - count;
  }

 private:
  std::vector<char> bytes_;
  size_t at_ = 0;
};

struct Writer {
  template <typename T> void number(T value) { const char* at = reinterpret_cast<const char*>(&value); bytes.insert(bytes.end(), at, at + sizeof(T)); }
  void text(const std::string& value) { number(uint32_t(value.size())); bytes.insert(bytes.end(), value.begin(), value.end()); }
  void raw(const std::vector<char>& value) { number(uint64_t(value.size())); bytes.insert(bytes.end(), value.begin(), value.end()); }
  void save(const char* path) const {
    FILE* file = fopen(path, "wb");
    if (!file || fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || fclose(file)) abort();
  }
  std::vector<char> bytes;
};

// A tensor of the call, and its bytes before it.
struct Given { ::c10::Tensor tensor; std::vector<char> before; };

inline Given given(Reader& in) {
  const auto type = ::c10::ScalarType(in.number<uint8_t>());
  std::vector<int64_t> sizes(in.number<uint32_t>()), strides(sizes.size());
  for (int64_t& size : sizes) size = in.number<int64_t>();
  for (int64_t& stride : strides) stride = in.number<int64_t>();
  const uint64_t count = in.number<uint64_t>();
  const char* bytes = in.take(count);
  auto storage = std::make_shared<::c10::Storage>(count, true);
  storage->write(bytes, 0, count);
  return {::c10::Tensor(storage, type, sizes, strides), std::vector<char>(bytes, bytes + count)};
}

inline Value value(Reader& in, const std::vector<Given>& tensors) {
  Value v;
  v.tag = Tag(in.number<uint8_t>());
  switch (v.tag) {
    case Tag::None: break;
    case Tag::Bool: v.whole = in.number<uint8_t>(); break;
    case Tag::Int: v.whole = in.number<int64_t>(); break;
    case Tag::Float: v.real = in.number<double>(); break;
    case Tag::Text: v.text = in.text(); break;
    case Tag::Tensor: v.tensor = tensors.at(in.number<uint32_t>()).tensor; break;
    case Tag::List: {
      const uint32_t count = in.number<uint32_t>();
      for (uint32_t at = 0; at < count; ++at) v.items.push_back(value(in, tensors));
    }
  }
  return v;
}

// Writes a result. A tensor that is one of the call's is named by its place, another is written with its elements.
inline void result(Writer& out, const Value& v, const std::vector<Given>& tensors) {
  out.number(uint8_t(v.tag));
  switch (v.tag) {
    case Tag::None: break;
    case Tag::Bool: out.number(uint8_t(v.whole)); break;
    case Tag::Int: out.number(v.whole); break;
    case Tag::Float: out.number(v.real); break;
    case Tag::Text: out.text(v.text); break;
    case Tag::Tensor: {
      const ::c10::Tensor& t = v.tensor;
      for (size_t at = 0; at < tensors.size(); ++at) {
        const ::c10::Tensor& own = tensors[at].tensor;
        if (own.storage_of() != t.storage_of() || own.scalar_type() != t.scalar_type()) continue;
        out.number(int32_t(at));
        out.number(uint32_t(t.dim()));
        for (int64_t size : t.sizes()) out.number(size);
        for (int64_t stride : t.strides()) out.number(stride);
        out.number(t.storage_offset());
        return;
      }
      out.number(int32_t(-1));
      out.number(uint8_t(t.scalar_type()));
      out.number(uint8_t(t.is_cuda()));
      out.number(uint32_t(t.dim()));
      for (int64_t size : t.sizes()) out.number(size);
      for (int64_t stride : t.strides()) out.number(stride);
      out.raw(t.raw());
      break;
    }
    case Tag::List:
      out.number(uint8_t(v.whole));
      out.number(uint32_t(v.items.size()));
      for (const Value& item : v.items) result(out, item, tensors);
  }
}

inline void failed(const char* path, uint8_t how, const std::string& text) {
  Writer out;
  out.number(how);
  out.text(text);
  out.save(path);
}

inline int serve(const char* call, const char* answer) {
  try {
    Reader in(call);
    const std::string name = in.text();
    std::vector<Given> tensors;
    for (uint32_t left = in.number<uint32_t>(); left > 0; --left) tensors.push_back(given(in));
    std::vector<Value> positional;
    for (uint32_t left = in.number<uint32_t>(); left > 0; --left) positional.push_back(value(in, tensors));
    Named named;
    for (uint32_t left = in.number<uint32_t>(); left > 0; --left) { std::string key = in.text(); named.emplace_back(key, value(in, tensors)); }
    ::pybind11::module_ m;
    stitch_register(m);
    for (const Function& function : functions()) {
      if (function.name != name) continue;
      const Value returned = function.call(positional, named);
      ::c10::cuda_check(cudaGetLastError(), "a launch");
      ::c10::cuda_check(cudaDeviceSynchronize(), "a kernel");
      Writer out;
      out.number(uint8_t(0));
      for (const Given& one : tensors) {
        const std::vector<char> after = one.tensor.raw();
        out.number(uint8_t(after != one.before));
        if (after != one.before) out.raw(after);
      }
      result(out, returned, tensors);
      out.save(answer);
      return 0;
    }
    failed(answer, 2, name);
  } catch (const WrongArgument& error) {
    failed(answer, 3, error.what());
  } catch (const std::exception& error) {
    failed(answer, 1, error.what());
  }
  return 0;
}

}  // namespace stitch

int main(int, char** argv) { return ::stitch::serve(argv[1], argv[2]); }
