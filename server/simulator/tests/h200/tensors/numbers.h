// Inputs: bit patterns made of whole numbers alone, so that every machine makes the same.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// What the inputs of a line are.
enum Kind { Uniform, Wide, Far, Cancelling, Subnormal, Special, Integers, Few, KINDS };
static const char *const KIND_NAMES[] = {"uniform", "wide", "far", "cancelling", "subnormal", "special", "integers", "few"};

struct Format {
  const char *name;
  int bits;      // as it lies in memory
  int exponent;  // bits of it; 0: an integer
  int mantissa;
};
static const Format FORMATS[] = {
    {"f16", 16, 5, 10}, {"bf16", 16, 8, 7}, {"tf32", 32, 8, 10}, {"f32", 32, 8, 23}, {"f64", 64, 11, 52}, {"e4m3", 8, 4, 3},
    {"e5m2", 8, 5, 2},  {"s32", 32, 0, 0},  {"s8", 8, 0, 0},     {"u8", 8, 0, 0},    {"s4", 4, 0, 0},     {"u4", 4, 0, 0},
    {"b1", 1, 0, 0},
};
static const Format &format(const std::string &name) {
  for (const Format &f : FORMATS)
    if (name == f.name) return f;
  fprintf(stderr, "no format %s\n", name.c_str());
  exit(2);
}

// SplitMix64.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int below(int n) { return int(next() >> 33) % n; }
};

// FNV-1a of 64 bits.
static uint64_t hash(const void *bytes, size_t count, uint64_t h = 0xcbf29ce484222325) {
  for (size_t i = 0; i < count; ++i) h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
  return h;
}

static uint64_t compose(const Format &f, int sign, int field, uint64_t mantissa) {
  int shift = f.mantissa == 10 && f.bits == 32 ? 13 : 0;
  return ((uint64_t(sign) << f.exponent | uint64_t(field)) << f.mantissa | mantissa) << shift;
}

static uint64_t whole(const Format &f, int sign, int value) {
  if (value == 0) return compose(f, sign, 0, 0);
  int top = 0;
  while (value >> (top + 1)) ++top;
  return compose(f, sign, (1 << (f.exponent - 1)) - 1 + top, uint64_t(value - (1 << top)) << f.mantissa >> top);
}

// Infinities, NaN, zeros, the largest number.
static uint64_t special(const Format &f, int sign, int which) {
  int most = (1 << f.exponent) - 1;
  uint64_t all = (uint64_t(1) << f.mantissa) - 1;
  bool e4m3 = f.exponent == 4;
  if (which < 3) return e4m3 ? compose(f, sign, most, all) : compose(f, sign, most, 0);
  if (which == 3) return compose(f, sign, most, e4m3 ? all : all - 1);
  if (which < 6) return compose(f, sign, 0, 0);
  return e4m3 ? compose(f, sign, most, all - 1) : compose(f, sign, most - 1, all);
}

// `sum`: what products are added to; their exponents spread twice as far.
static uint64_t real(const Format &f, Kind kind, Random &r, bool sum) {
  const int bias = (1 << (f.exponent - 1)) - 1, most = (1 << f.exponent) - 1;
  const int sign = r.below(2);
  uint64_t mantissa = r.next() >> (64 - f.mantissa);
  const uint64_t low = f.mantissa == 10 && f.bits == 32 && kind == Wide ? r.next() >> 51 : 0;  // not looked at
  int spread = bias - 1 < 14 ? bias - 1 : 14;
  if (f.exponent == 11) spread = 30;
  if (sum && f.exponent >= 8) spread *= 2;
  switch (kind) {
  case Few:
    if (r.below(8) >= (sum ? 4 : 1)) return compose(f, sign, 0, 0);
    return compose(f, sign, bias + r.below(2 * spread + 1) - spread, mantissa);
  case Wide: return compose(f, sign, bias + r.below(2 * spread + 1) - spread, mantissa) | low;
  case Far:
    if (f.exponent == 4 && mantissa == 7) mantissa = 6;
    return compose(f, sign, 1 + r.below(f.exponent == 4 ? most : most - 1), mantissa);
  case Cancelling: return compose(f, sign, bias + r.below(2), uint64_t(r.below(4)));
  case Subnormal: {
    if (f.exponent < 8) return compose(f, sign, r.below(6) < 3 ? 0 : r.below(4), mantissa);
    const int half = bias / 2, fields[] = {0, 1, half, half - 1, half - 3, half - 7, bias};
    const int sums[] = {0, 0, 1, 2, 10, bias - 48, bias - 30};
    return compose(f, sign, sum ? sums[r.below(7)] : fields[r.below(7)], mantissa);
  }
  case Integers: return whole(f, sign, r.below(8));
  case Special:
    if (r.below(40) == 0) return special(f, sign, r.below(8));
  default: {
    int down = 1;
    for (uint64_t bits = r.next(); bits & 1 && down < 6; bits >>= 1) ++down;
    return compose(f, sign, bias - down > 1 ? bias - down : 1, mantissa);
  }
  }
}

// Of integers, `Uniform` has all bits random, and `Wide` the ends of the range.
static uint64_t integer(const Format &f, Kind kind, Random &r) {
  uint64_t bits = r.next() >> (64 - f.bits);
  if (f.bits == 32) {
    if (kind == Uniform) return uint32_t(int32_t(bits) >> r.below(32));
    return 0x80000000u + uint32_t(r.below(1 << 18) - (1 << 17));
  }
  if (kind == Uniform || f.bits == 1) return bits;
  const uint64_t ends[] = {0x7f, 0x80, 0xff, 0x81};
  return (f.bits == 8 ? ends[r.below(4)] : ends[r.below(4)] >> 4) & ((1 << f.bits) - 1);
}

// `bytes` of numbers.
static void fill(std::vector<unsigned char> &to, size_t bytes, const Format &f, Kind kind, Random &r, bool sum) {
  size_t from = to.size();
  to.resize(from + bytes);
  for (size_t bit = 0; bit < bytes * 8; bit += f.bits) {
    uint64_t value = f.exponent ? real(f, kind, r, sum) : integer(f, kind, r);
    if (f.bits < 8) to[from + bit / 8] |= (unsigned char)(value << bit % 8);
    else memcpy(&to[from + bit / 8], &value, f.bits / 8);
  }
}
