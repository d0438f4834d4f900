#include <cstdio>
#include <cassert>
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;
__device__ int g_lock = 0;
__constant__ float coef[8] = {1,2,3,4,5,6,7,8};
__device__ int fib(int n);
__device__ __noinline__ int fib(int n){ return n<2?n:fib(n-1)+fib(n-2); }
typedef float (*fn)(float);
__device__ float f_a(float x){return x*2;}
__device__ float f_b(float x){return x+2;}
__device__ fn table[2]={f_a,f_b};
__global__ void gridsync(int*p){ auto g=cg::this_grid(); p[g.thread_rank()]=1; g.sync(); p[g.thread_rank()]+=p[(g.thread_rank()+1)%g.size()]; }
__global__ void tiles(int*p){ auto b=cg::this_thread_block(); auto t=cg::tiled_partition<8>(b); int v=p[b.thread_rank()]; v+=t.shfl_down(v,4); t.sync(); b.sync(); auto c=cg::coalesced_threads(); p[0]=c.size()+v; }
__global__ void clus(int*p){ auto c=cg::this_cluster(); __shared__ int s; s=threadIdx.x; c.sync(); p[c.block_rank()]=*c.map_shared_rank(&s,0); c.sync();}
__global__ void pr(int n){ printf("hi %d %f %s\n", n, 1.0*n, "abc"); assert(n<3); }
__global__ void calls(float*o,int k,int n){ o[threadIdx.x]=table[k](coef[k])+fib(n); }
__global__ void lock(int*c){ while(atomicCAS(&g_lock,0,1)!=0); *c+=1; __threadfence(); atomicExch(&g_lock,0); }
__global__ void mall(int**o){ int*p=(int*)malloc(64); p[0]=3; *o=p; free(p);}
__global__ void sw(int*o,int k){ switch(o[k]){case 0:o[1]=3;break;case 1:o[2]=5;break;case 2:o[3]=7;break;case 3:o[4]=1;break;case 4:o[k]=9;break;case 5: o[k*2]=11;break; default:o[0]=0;} }
__global__ void at(float*f,double*d,__half2*h,unsigned long long*u,cuda::atomic<int>*a){ atomicAdd(f,1.f);atomicAdd(d,1.0);atomicAdd(h,__half2{1,1});atomicMax(u,3ull);atomicMin((int*)f,2);a->fetch_add(1); a->store(3,cuda::memory_order_release); u[1]=a->load(cuda::memory_order_acquire); u[2]=clock64(); u[3]=__dp4a(1,(int)u[4],3)+__ballot_sync(~0u,u[5]>3)+__match_any_sync(~0u,(int)u[6])+__reduce_add_sync(~0u,(int)u[7])+__brev((int)u[5])+__popc((int)u[8])+__clz((int)u[9])+__ffs((int)u[9]); __nanosleep(100); }
