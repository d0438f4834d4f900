// What tensor cores give, bit by bit: `tensors FILE` runs every line on many tiles of made-up numbers, prints a hash of the results
// of each line, and writes hashes of tiles and the first results to the file.
//
// The file: for each line and kind a row of text, "name kind tiles bytes kept", then a hash of 32 bits for each tile, of its `bytes` of
// results, and `kept` bytes of results from the first on. `tensors --inputs NAME KIND FILE` writes what goes in, without a device.
#include "mma.h"
#include "rows.h"
#include "wide.h"
// Last: a fault of these would end what comes after.
#include "warpgroup.h"

static const size_t KEPT = 4096;

#define CHECK(call) check(call, #call)
static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

// Metadata: two of four, or, of 32 bits, one of two.
static void metadata(std::vector<unsigned char> &to, size_t bytes, bool of_32, Random &r) {
  const int two[] = {0x4, 0x8, 0x9, 0xc, 0xd, 0xe}, one[] = {0x4, 0xe};
  for (size_t i = 0; i < bytes; ++i) {
    int low = of_32 ? one[r.below(2)] : two[r.below(6)], high = of_32 ? one[r.below(2)] : two[r.below(6)];
    to.push_back((unsigned char)(low | high << 4));
  }
}

static std::vector<unsigned char> make(const Line &line, Kind kind, size_t number) {
  const Input &input = line.inputs[number];
  std::vector<unsigned char> bytes;
  for (int tile = 0; tile < line.tiles; ++tile) {
    Random r{hash(line.name.data(), line.name.size()) + (uint64_t(kind) << 40) + (uint64_t(number) << 32) + uint64_t(tile)};
    r.state = r.next();
    if (input.format.compare(0, 8, "metadata") == 0) metadata(bytes, input.bytes, input.format == "metadata32", r);
    else if (input.format == "raw") fill(bytes, input.bytes, format("u8"), Uniform, r, false);
    else if (input.sum && tile % 4 == 1) bytes.resize(bytes.size() + input.bytes);
    else fill(bytes, input.bytes, format(input.format), kind, r, input.sum);
  }
  return bytes;
}

static void run(const Line &line, Kind kind, FILE *file) {
  unsigned char *inputs[4] = {}, *results;
  for (size_t i = 0; i < line.inputs.size(); ++i) {
    std::vector<unsigned char> bytes = make(line, kind, i);
    CHECK(cudaMalloc((void **)&inputs[i], bytes.size()));
    CHECK(cudaMemcpy(inputs[i], bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  std::vector<unsigned char> all(line.result * line.tiles);
  CHECK(cudaMalloc((void **)&results, all.size()));
  CHECK(cudaMemset(results, 0, all.size()));
  line.run(inputs, results, line.tiles);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    printf("%s %s: %s\n", line.name.c_str(), KIND_NAMES[kind], cudaGetErrorName(error));
    return;
  }
  CHECK(cudaMemcpy(all.data(), results, all.size(), cudaMemcpyDeviceToHost));
  for (unsigned char *input : inputs) CHECK(cudaFree(input));
  CHECK(cudaFree(results));
  printf("%s %s %016llx\n", line.name.c_str(), KIND_NAMES[kind], (unsigned long long)hash(all.data(), all.size()));
  size_t kept = all.size() < KEPT ? all.size() : KEPT;
  fprintf(file, "%s %s %d %zu %zu\n", line.name.c_str(), KIND_NAMES[kind], line.tiles, line.result, kept);
  for (int tile = 0; tile < line.tiles; ++tile) {
    uint64_t h = hash(&all[tile * line.result], line.result);
    uint32_t folded = uint32_t(h ^ h >> 32);
    fwrite(&folded, 4, 1, file);
  }
  fwrite(all.data(), 1, kept, file);
}

int main(int count, char **words) {
  const bool inputs = count == 5 && std::string(words[1]) == "--inputs";
  const char *only = count == 4 && std::string(words[1]) == "--only" ? words[2] : nullptr;
  if (!inputs && !only && count != 2) {
    fprintf(stderr, "usage: tensors [--only PART] FILE | tensors --inputs NAME KIND FILE\n");
    return 2;
  }
  FILE *file = fopen(words[count - 1], "wb");
  if (!file) {
    perror(words[count - 1]);
    return 2;
  }
  for (const Line &line : lines())
    for (Kind kind : line.kinds) {
      if (!inputs) {
        if (!only || line.name.find(only) != std::string::npos) run(line, kind, file);
      } else if (line.name == words[2] && std::string(KIND_NAMES[kind]) == words[3]) {
        for (size_t i = 0; i < line.inputs.size(); ++i) {
          std::vector<unsigned char> bytes = make(line, kind, i);
          fwrite(bytes.data(), 1, bytes.size(), file);
        }
      }
    }
  fclose(file);
  return 0;
}
