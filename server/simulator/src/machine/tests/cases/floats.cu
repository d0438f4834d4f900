// f16, bf16 and fp8: the headers compute the same on the host with integers, so `floats expected` prints what is expected.
#include <cstdio>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define BOTH __host__ __device__

BOTH static unsigned short bits(__half h) { return __half_as_ushort(h); }
BOTH static unsigned short bits(__nv_bfloat16 h) { return __bfloat16_as_ushort(h); }

// The headers have no fused product on the host: there it is computed in f64, where the product is exact.
#ifdef __CUDA_ARCH__
template <typename H> __device__ static H fused(H a, H b, H c) { return __hfma(a, b, c); }
#else
static double wide(__half h) { return __half2float(h); }
static double wide(__nv_bfloat16 h) { return __bfloat162float(h); }
static __half narrow(double d, __half) { return __double2half(d); }
static __nv_bfloat16 narrow(double d, __nv_bfloat16) { return __double2bfloat16(d); }
template <typename H> static H fused(H a, H b, H c) { return narrow(wide(a) * wide(b) + wide(c), a); }
#endif

template <typename H> BOTH static void arithmetic(const char *name, H a, H b, H c) {
  printf("%s %04x %04x %04x %04x %04x %04x %04x\n", name, bits(__hadd(a, b)), bits(__hsub(a, b)), bits(__hmul(a, b)),
      bits(fused(a, b, c)), bits(__hneg(a)), bits(__habs(a)), bits(__hdiv(a, b)));
  printf("%s %04x %04x %d %d %d %d\n", name, bits(__hmax(a, b)), bits(__hmin(a, b)), (int)__hlt(a, b), (int)__hge(a, c),
      (int)__hne(b, c), (int)__hisnan(a));
}

BOTH static void all_halves() {
  const float values[8] = {1.0f, -2.5f, 0.333333f, 60000.0f, 6.1e-5f, 1e-7f, -0.0f, 1234.567f};
  for (int i = 0; i < 8; ++i) {
    float x = values[i], y = values[(i * 3 + 1) % 8], z = values[(i * 5 + 2) % 8];
    arithmetic("f16", __float2half_rn(x), __float2half_rn(y), __float2half_rn(z));
    arithmetic("bf16", __float2bfloat16_rn(x), __float2bfloat16_rn(y), __float2bfloat16_rn(z));
    printf("round %04x %04x %04x %04x %04x %04x\n", bits(__float2half_rz(x)), bits(__float2half_ru(x)), bits(__float2half_rd(x)),
        bits(__float2bfloat16_rz(x)), bits(__float2bfloat16_ru(x)), bits(__float2bfloat16_rd(x)));
    __half h = __float2half_rn(x);
    printf("integers %d %u %lld %d %04x %04x %g\n", __half2int_rz(h), __half2uint_rz(h), __half2ll_rz(h), (int)__half2short_rz(h),
        bits(__int2half_rn(i * 12345)), bits(__ull2half_rz(1ull << (i * 2))), __half2float(h));
    __half2 p = __halves2half2(h, __float2half_rn(y)), q = __float2half2_rn(z), r = __hadd2(__hmul2(p, q), p);
    printf("pairs %04x %04x %04x %04x\n", bits(__low2half(r)), bits(__high2half(r)), bits(__low2half(__hadd2_sat(p, q))), bits(__high2half(__hmax2(p, q))));
    __nv_bfloat162 s = __floats2bfloat162_rn(x, y), t = __hmul2(s, __float2bfloat162_rn(z));
    printf("pairs %04x %04x\n", bits(__low2bfloat16(t)), bits(__high2bfloat16(t)));
  }
}

BOTH static void all_bytes() {
  const float values[9] = {1.0f, -2.5f, 0.3f, 448.0f, 500.0f, -70000.0f, 0.002f, 1e-6f, -0.0f};
  for (int i = 0; i < 9; ++i) {
    __nv_fp8_e4m3 e(values[i]);
    __nv_fp8_e5m2 f(values[i]);
    printf("fp8 %02x %02x %g %g\n", e.__x, f.__x, (float)e, (float)f);
    __nv_fp8x2_e4m3 two(make_float2(values[i], values[(i + 1) % 9]));
    __half2 back = (__half2)two;
    printf("fp8x2 %04x %g %g %02x\n", two.__x, __low2float(back), __high2float(back),
        __nv_cvt_halfraw_to_fp8(__float2half_rn(values[i]), __NV_SATFINITE, __NV_E5M2));
    __nv_fp8x4_e5m2 four(make_float4(values[i], 1.0f, 2.0f, 3.0f));
    float4 wide = (float4)four;
    printf("fp8x4 %08x %g %g\n", four.__x, wide.x, wide.w);
  }
}

extern "C" __global__ void halves() { all_halves(); }
extern "C" __global__ void bytes() { all_bytes(); }

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "expected")) {
    all_halves(), all_bytes();
    return 0;
  }
  halves<<<1, 1>>>(), bytes<<<1, 1>>>();
  return cudaDeviceSynchronize();
}
