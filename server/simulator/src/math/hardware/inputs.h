#define COUNT 65536
#define RAW 2048
#define HD __host__ __device__
HD static inline uint64_t mix(uint64_t x) { x += 0x9e3779b97f4a7c15ull; x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull; x = (x ^ (x >> 27)) * 0x94d049bb133111ebull; return x ^ (x >> 31); }
HD static inline uint64_t draw(uint64_t i, int which) { return mix(i * 4 + which); }
// A float of any format: e exponent bits, m mantissa bits. One in eight is an edge, two in eight are near 1.
HD static inline uint64_t floating(uint64_t r, int e, int m) {
  uint64_t w = 1 + e + m, bits = r >> (64 - w), sign = bits >> (w - 1) << (w - 1), inf = ((1ull << e) - 1) << m, one = ((1ull << (e - 1)) - 1) << m;
  switch (r & 7) {
  case 0: switch (r >> 3 & 15) {
    case 0: return sign; case 1: return sign | 1; case 2: return sign | ((1ull << m) - 1); case 3: return sign | 1ull << m;
    case 4: return sign | inf; case 5: return sign | (inf - 1); case 6: return sign | inf | 1; case 7: return sign | inf | 1ull << (m - 1);
    case 8: return sign | one; case 9: return sign | (one - 1); case 10: return sign | (one + 1); case 11: return sign | (one - (1ull << m));
    case 12: return sign | (one + (1ull << m)); case 13: return sign | (one + (uint64_t)(r >> 7 & 63) * (1ull << m) / 8); case 14: return sign | inf | (r >> 7 & 255); default: return sign | (r >> 7 & ((1ull << m) - 1)); }
  case 1: case 2: return sign | (one - (2ull << m) + (bits & ((4ull << m) - 1)));
  case 3: return sign | (one + (bits & ((1ull << m) * (m < 8 ? 8 : 64) - 1)));
  default: return bits; }
}
HD static inline uint64_t whole(uint64_t r, int w) {
  uint64_t mask = w == 64 ? ~0ull : (1ull << w) - 1;
  switch (r & 7) {
  case 0: return (uint64_t)((int64_t)(r >> 8 & 7) - 3) & mask;
  case 1: return ((1ull << (w - 1)) + (r >> 8 & 7) - 3) & mask;
  case 2: return (1ull << ((r >> 8) % w)) & mask;
  case 3: return (r >> 8 & 127) & mask;
  case 4: return (r >> (64 - w)) >> ((r >> 3 & 63) % w);
  default: return r >> (64 - w); }
}
#define input_f32(i, n) floating(draw(i, n), 8, 23)
#define input_f64(i, n) floating(draw(i, n), 11, 52)
#define input_f16(i, n) floating(draw(i, n), 5, 10)
#define input_bf16(i, n) floating(draw(i, n), 8, 7)
#define input_u8(i, n) whole(draw(i, n), 32)
#define input_s8(i, n) whole(draw(i, n), 32)
#define input_u16(i, n) whole(draw(i, n), 16)
#define input_s16(i, n) whole(draw(i, n), 16)
#define input_u32(i, n) whole(draw(i, n), 32)
#define input_s32(i, n) whole(draw(i, n), 32)
#define input_u64(i, n) whole(draw(i, n), 64)
#define input_s64(i, n) whole(draw(i, n), 64)
#define input_x2(i, n) (floating(draw(i, n), 5, 10) | floating(draw(i, (n) + 1), 5, 10) << 16)
#define input_small(i, n) (draw(i, n) & 31)
#define input_smalls(i, n) ((draw(i, n) & 15) - 7)
template <class T> HD static inline T as(uint64_t x) { T t; memcpy(&t, &x, sizeof t); return t; }
static uint64_t checksum(const uint64_t *h) { uint64_t s = 0; for (uint64_t i = 0; i < COUNT; i++) s += mix(h[i] ^ mix(i)); return s; }
