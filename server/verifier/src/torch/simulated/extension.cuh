// Makes a program of an extension: it registers functions as for Python, takes one call from a file, and writes what came of it to another.
#pragma once

namespace stitch {

enum class Tag : uint8_t { None, Bool, Int, Float, Text, Tensor, List };

// What Python passes and gets.
struct Value {
  Tag tag = Tag::None;
  int64_t whole = 0;
  double real = 0;
  std::string text;
  ::c10::Tensor tensor;
  std::vector<Value> items;
};

struct WrongArgument : std::runtime_error { using std::runtime_error::runtime_error; };
[[noreturn]] inline void wrong(const char* wanted) { throw WrongArgument(::c10::str("incompatible function arguments: ", wanted, " is expected")); }

template <typename T, typename = void> struct Cast;
template <> struct Cast<bool> {
  using Held = bool;
  // As pybind11 converts: None is false, and numbers are what Python's `bool` says of them.
  static bool from(const Value& v) {
    if (v.tag > Tag::Float) wrong("a bool");
    return v.tag == Tag::Float ? v.real != 0 : v.whole != 0;
  }
  static Value to(bool value) { Value v; v.tag = Tag::Bool; v.whole = value; return v; }
};
template <typename T> struct Cast<T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>> {
  using Held = T;
  static T from(const Value& v) {
    if (v.tag != Tag::Int && v.tag != Tag::Bool) wrong("an int");
    if (v.whole < 0 ? std::is_unsigned<T>::value || v.whole < int64_t(std::numeric_limits<T>::min())
                    : uint64_t(v.whole) > uint64_t(std::numeric_limits<T>::max())) wrong("an int that fits");
    return T(v.whole);
  }
  static Value to(T value) { Value v; v.tag = Tag::Int; v.whole = int64_t(value); return v; }
};
template <typename T> struct Cast<T, std::enable_if_t<std::is_floating_point<T>::value>> {
  using Held = T;
  static T from(const Value& v) {
    if (v.tag == Tag::Float) return T(v.real);
    if (v.tag != Tag::Int && v.tag != Tag::Bool) wrong("a float");
    return T(v.whole);
  }
  static Value to(T value) { Value v; v.tag = Tag::Float; v.real = double(value); return v; }
};
template <> struct Cast<std::string> {
  using Held = std::string;
  static std::string from(const Value& v) { if (v.tag != Tag::Text) wrong("a str"); return v.text; }
  static Value to(const std::string& value) { Value v; v.tag = Tag::Text; v.text = value; return v; }
};
template <> struct Cast<const char*> { static Value to(const char* value) { return Cast<std::string>::to(value); } };
template <> struct Cast<::c10::Tensor> {
  using Held = ::c10::Tensor;
  static ::c10::Tensor from(const Value& v) {
    if (v.tag != Tag::Tensor) wrong("a Tensor");
    return v.tensor;
  }
  static Value to(const ::c10::Tensor& value) {
    Value v;
    v.tag = value.defined() ? Tag::Tensor : Tag::None;
    v.tensor = value;
    return v;
  }
};
template <> struct Cast<::c10::Scalar> {
  using Held = ::c10::Scalar;
  static ::c10::Scalar from(const Value& v) {
    if (v.tag == Tag::Float) return v.real;
    if (v.tag != Tag::Int && v.tag != Tag::Bool) wrong("a number");
    return v.whole;
  }
};
template <typename T> struct Cast<std::optional<T>> {
  using Held = std::optional<T>;
  static std::optional<T> from(const Value& v) { if (v.tag == Tag::None) return std::nullopt; return Cast<T>::from(v); }
  static Value to(const std::optional<T>& value) { return value ? Cast<T>::to(*value) : Value{}; }
};
template <typename T> struct Cast<std::vector<T>> {
  using Held = std::vector<T>;
  static std::vector<T> from(const Value& v) {
    if (v.tag != Tag::List) wrong("a list");
    std::vector<T> list;
    for (const Value& item : v.items) list.push_back(Cast<T>::from(item));
    return list;
  }
  static Value to(const std::vector<T>& list) {
    Value v;
    v.tag = Tag::List;
    for (const T& item : list) v.items.push_back(Cast<T>::to(item));
    return v;
  }
};
template <typename T> struct Cast<::c10::ArrayRef<T>> {
  using Held = std::vector<T>;
  static std::vector<T> from(const Value& v) { return Cast<std::vector<T>>::from(v); }
};
template <typename... T> struct Cast<std::tuple<T...>> {
  static Value to(const std::tuple<T...>& value) {
    Value v;
    v.tag = Tag::List;
    v.whole = 1;  // A tuple.
    std::apply([&](const T&... item) { (v.items.push_back(Cast<T>::to(item)), ...); }, value);
    return v;
  }
};
template <typename A, typename B> struct Cast<std::pair<A, B>> {
  static Value to(const std::pair<A, B>& value) { return Cast<std::tuple<A, B>>::to(std::tuple<A, B>(value.first, value.second)); }
};

using Named = std::vector<std::pair<std::string, Value>>;
struct Function {
  std::string name;
  std::function<Value(const std::vector<Value>&, const Named&)> call;
};
inline std::vector<Function>& functions() { static std::vector<Function> list; return list; }

}  // namespace stitch

namespace pybind11 {

struct arg_v { std::string name; ::stitch::Value value; };
struct arg {
  explicit arg(const char* name) : name(name) {}
  arg& noconvert(bool = true) { return *this; }
  template <typename T> arg_v operator=(const T& value) const { return {name, ::stitch::Cast<std::decay_t<const T>>::to(value)}; }
  arg_v operator=(const char* value) const { return {name, ::stitch::Cast<std::string>::to(value)}; }
  arg_v operator=(std::nullopt_t) const { return {name, {}}; }
  arg_v operator=(struct none) const;
  std::string name;
};
struct none {};
inline arg_v arg::operator=(none) const { return {name, {}}; }
struct gil_scoped_release {};
template <typename... T> struct call_guard {};

class module_ {
 public:
  const char*& doc() { static const char* text = ""; return text; }
  template <typename R, typename... A, typename... E> module_& def(const char* name, R (*function)(A...), const E&... extra) {
    return add<R, A...>(name, function, extra...);
  }
  template <typename F, typename... E> module_& def(const char* name, F function, const E&... extra) {
    return of_method(name, function, &F::operator(), extra...);
  }

 private:
  struct Parameter { std::string name; std::optional<::stitch::Value> value; };
  static void note(std::vector<Parameter>& list, const arg& one) { list.push_back({one.name, std::nullopt}); }
  static void note(std::vector<Parameter>& list, const arg_v& one) { list.push_back({one.name, one.value}); }
  template <typename T> static void note(std::vector<Parameter>&, const T&) {}
  template <typename F, typename C, typename R, typename... A, typename... E>
  module_& of_method(const char* name, F function, R (C::*)(A...) const, const E&... extra) { return add<R, A...>(name, function, extra...); }
  template <typename R, typename... A, typename F, typename... E> module_& add(const char* name, F function, const E&... extra) {
    std::vector<Parameter> parameters;
    (note(parameters, extra), ...);
    auto call = [function, parameters](const std::vector<::stitch::Value>& given, const ::stitch::Named& named) {
      std::vector<::stitch::Value> values = given;
      constexpr size_t count = sizeof...(A);
      size_t used = 0;
      for (size_t at = given.size(); at < count; ++at) {
        if (at >= parameters.size()) ::stitch::wrong(::c10::str(count, " arguments").c_str());
        auto found = std::find_if(named.begin(), named.end(), [&](const auto& one) { return one.first == parameters[at].name; });
        if (found != named.end()) { values.push_back(found->second); ++used; }
        else if (parameters[at].value) values.push_back(*parameters[at].value);
        else ::stitch::wrong(parameters[at].name.c_str());
      }
      if (values.size() != count || used != named.size()) ::stitch::wrong(::c10::str(count, " arguments").c_str());
      return apply<R, A...>(function, values, std::index_sequence_for<A...>{});
    };
    ::stitch::functions().push_back({name, call});
    return *this;
  }
  template <typename R, typename... A, typename F, size_t... I>
  static ::stitch::Value apply(const F& function, const std::vector<::stitch::Value>& values, std::index_sequence<I...>) {
    std::tuple<typename ::stitch::Cast<std::decay_t<A>>::Held...> held(::stitch::Cast<std::decay_t<A>>::from(values[I])...);
    if constexpr (std::is_void<R>::value) { function(std::get<I>(held)...); return {}; }
    else return ::stitch::Cast<std::decay_t<R>>::to(function(std::get<I>(held)...));
  }
};
using module = module_;

}  // namespace pybind11
namespace py = pybind11;
namespace torch { template <typename F> F wrap_pybind_function(F function) { return function; } }

static void stitch_register(::pybind11::module_& m);
#define TORCH_EXTENSION_NAME extension
#define PYBIND11_MODULE(NAME, VARIABLE) static void stitch_register(::pybind11::module_& VARIABLE)
