// Lines: an instruction with what it takes, and how it is run on many tiles.
#pragma once
#include "numbers.h"
#include <cstdio>
#include <cstdlib>
#include <functional>

// The inputs of a tile, as bytes; the formats say what fills them.
struct Input {
  std::string format;
  size_t bytes;
  bool sum;
};

struct Line {
  std::string name;
  std::vector<Input> inputs;  // up to four
  size_t result;              // bytes a tile
  int tiles;
  std::vector<Kind> kinds;
  // Pointers to the inputs of all tiles, the results, tiles.
  std::function<void(unsigned char *const *, unsigned char *, int)> run;
};

static std::vector<Line> &lines() {
  static std::vector<Line> all;
  return all;
}

static const std::vector<Kind> EVERY = {Uniform, Wide, Far, Cancelling, Subnormal, Special, Integers, Few};
static const std::vector<Kind> TWO = {Uniform, Wide};
static const std::vector<Kind> PLACES = {Integers, Uniform};

static std::vector<Kind> kinds_of(const std::string &name) { return format(name).exponent ? EVERY : TWO; }

// The types in an instruction's name, in order.
static std::vector<std::string> types(const std::string &name) {
  std::vector<std::string> found;
  for (size_t at = 0; at < name.size();) {
    size_t end = name.find('.', at);
    if (end == std::string::npos) end = name.size();
    std::string word = name.substr(at, end - at);
    for (const Format &f : FORMATS)
      if (word == f.name) found.push_back(word);
    at = end + 1;
  }
  return found;
}

struct Add {
  Add(Line line) { lines().push_back(line); }
};

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
