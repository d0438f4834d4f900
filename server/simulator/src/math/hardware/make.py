"""Writes hardware.cu: one kernel for every instruction whose semantics `math` gives, on COUNT drawn inputs each.

    python3 make.py && nvcc -arch=sm_90 -o hardware hardware.cu && ./hardware results.txt raw.bin

results.txt holds a line for each: the checksum of all outputs, the instruction, the types of its inputs, the type of its
output. The tests of `math` draw the same inputs and compare the checksums. raw.bin holds the first RAW outputs of each.
"""
ops=[] # (name, asm, ins, out)
def op(name, ins, out, asm=None): ops.append((name, asm, ins, out))
R=["rn","rz","rm","rp"]
CMP="eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split()
for r in R:
  for f in ("",".ftz"):
    for s in ("",".sat"):
      for o in ("add","sub","mul"): op(f"{o}.{r}{f}{s}.f32",["f32","f32"],"f32")
      op(f"fma.{r}{f}{s}.f32",["f32"]*3,"f32")
    op(f"div.{r}{f}.f32",["f32","f32"],"f32")
    op(f"rcp.{r}{f}.f32",["f32"],"f32")
    op(f"sqrt.{r}{f}.f32",["f32"],"f32")
  for o in("add","sub","mul","div"): op(f"{o}.{r}.f64",["f64","f64"],"f64")
  op(f"fma.{r}.f64",["f64"]*3,"f64")
  op(f"rcp.{r}.f64",["f64"],"f64"); op(f"sqrt.{r}.f64",["f64"],"f64")
for o in("min","max"):
  for n in("",".NaN"):
    for x in("",".xorsign.abs"):
      for f in("",".ftz"):
        op(f"{o}{f}{n}{x}.f32",["f32","f32"],"f32"); op(f"{o}{f}{n}{x}.f16",["f16","f16"],"f16")
      op(f"{o}{n}{x}.bf16",["bf16","bf16"],"bf16")
  op(f"{o}.f64",["f64","f64"],"f64")
for o in("abs","neg"):
  for f in("",".ftz"):
    op(f"{o}{f}.f32",["f32"],"f32"); op(f"{o}{f}.f16",["f16"],"f16")
  op(f"{o}.f64",["f64"],"f64"); op(f"{o}.bf16",["bf16"],"bf16")
op("copysign.f32",["f32","f32"],"f32"); op("copysign.f64",["f64","f64"],"f64")
for c in CMP:
  op(f"set.{c}.u32.f32",["f32","f32"],"u32"); op(f"set.{c}.ftz.u32.f32",["f32","f32"],"u32"); op(f"set.{c}.u32.f64",["f64","f64"],"u32")
  op(f"set.{c}.u32.f16",["f16","f16"],"u32"); op(f"set.{c}.u32.bf16",["bf16","bf16"],"u32")
for c in "finite infinite number notanumber normal subnormal".split():
  for t in("f32","f64"): op(f"testp.{c}.{t}",[t],"u32","{.reg .pred p; testp.%s.%s p, %%1; selp.u32 %%0, 1, 0, p;}"%(c,t))
for o in("add","sub","mul"):
  for m in("",".ftz",".sat",".ftz.sat"): op(f"{o}.rn{m}.f16",["f16","f16"],"f16")
  op(f"{o}.rn.bf16",["bf16","bf16"],"bf16")
for m in("",".ftz",".sat",".relu",".ftz.relu"): op(f"fma.rn{m}.f16",["f16"]*3,"f16")
for m in("",".relu"): op(f"fma.rn{m}.bf16",["bf16"]*3,"bf16")
I=["u8","s8","u16","s16","u32","s32","u64","s64"]
for i in I:
  for s in("f16","bf16","f32","f64"):
    for r in R:
      op(f"cvt.{r}i.{i}.{s}",[s],i)
      if s=="f32" and r in("rn","rz"): op(f"cvt.{r}i.ftz.{i}.f32",[s],i)
      op(f"cvt.{r}.{s}.{i}",[i],s)
  for j in I:
    op(f"cvt.{i}.{j}",[j],i)
    bi,bj=int(i[1:]),int(j[1:])
    superset = (i[0]==j[0] and bi>=bj) or (i[0]=='s' and j[0]=='u' and bi>bj)
    if not superset: op(f"cvt.sat.{i}.{j}",[j],i)
for r in R:
  for f in("",".ftz"):
    for s in("",".sat"):
      op(f"cvt.{r}i{f}{s}.f32.f32",["f32"],"f32"); op(f"cvt.{r}{f}{s}.f32.f64",["f64"],"f32")
    op(f"cvt.{r}{f}.f16.f32",["f32"],"f16")
  op(f"cvt.{r}.sat.f16.f32",["f32"],"f16")
  op(f"cvt.{r}i.f64.f64",["f64"],"f64"); op(f"cvt.{r}i.f16.f16",["f16"],"f16"); op(f"cvt.{r}i.bf16.bf16",["bf16"],"bf16")
  op(f"cvt.{r}.f16.f64",["f64"],"f16"); op(f"cvt.{r}.bf16.f64",["f64"],"bf16"); op(f"cvt.{r}.bf16.f32",["f32"],"bf16"); op(f"cvt.{r}.bf16.f16",["f16"],"bf16"); op(f"cvt.{r}.f16.bf16",["bf16"],"f16")
for f in("",".ftz"):
  for s in("",".sat"):
    op(f"cvt{f}{s}.f64.f32",["f32"],"f64"); op(f"cvt{f}{s}.f32.f16",["f16"],"f32"); op(f"cvt{f}{s}.f32.f32",["f32"],"f32")
  op(f"cvt{f}.f32.bf16",["bf16"],"f32")
op("cvt.f64.f16",["f16"],"f64"); op("cvt.f64.bf16",["bf16"],"f64"); op("cvt.sat.f64.f64",["f64"],"f64"); op("cvt.f64.f64",["f64"],"f64"); op("cvt.f16.f16",["f16"],"f16"); op("cvt.sat.f16.f16",["f16"],"f16")
for r in("rn","rz"):
  for m in(".relu",".satfinite",".relu.satfinite"):
    for h in("f16","bf16"): op(f"cvt.{r}{m}.{h}.f32",["f32"],h)
    for h in("f16x2","bf16x2"): op(f"cvt.{r}{m}.{h}.f32",["f32","f32"],"u32")
  for h in("f16x2","bf16x2"): op(f"cvt.{r}.{h}.f32",["f32","f32"],"u32")
  op(f"cvt.{r}.tf32.f32",["f32"],"u32"); op(f"cvt.{r}.relu.tf32.f32",["f32"],"u32")
op("cvt.rna.tf32.f32",["f32"],"u32"); op("cvt.rna.satfinite.tf32.f32",["f32"],"u32")
for e in("e4m3x2","e5m2x2"):
  for m in("",".relu"):
    op(f"cvt.rn.satfinite{m}.{e}.f32",["f32","f32"],"u16"); op(f"cvt.rn.satfinite{m}.{e}.f16x2",["x2"],"u16"); op(f"cvt.rn{m}.f16x2.{e}",["u16"],"u32")
for t in("u16","s16"): op(f"cvt.pack.sat.{t}.s32",["s32","s32"],"u32")
for t in("u8","s8","u4","s4","u2","s2"): op(f"cvt.pack.sat.{t}.s32.b32",["s32","s32","u32"],"u32")
for t in("u16","s16","u32","s32","u64","s64"):
  op(f"mul.hi.{t}",[t,t],t); op(f"div.{t}",[t,t],t); op(f"rem.{t}",[t,t],t); op(f"sad.{t}",[t]*3,t); op(f"min.{t}",[t,t],t); op(f"max.{t}",[t,t],t)
  op(f"shr.{t}",[t,"u32"],t)
  if t[0]=='s': op(f"abs.{t}",[t],t); op(f"neg.{t}",[t],t)
  for c in("eq","ne","lt","le","gt","ge"): op(f"set.{c}.u32.{t}",[t,t],"u32")
for t in("u32","s32"):
  for m in("lo","hi"): op(f"mul24.{m}.{t}",[t,t],t)
  op(f"mul.wide.{t}",[t,t],t[0]+"64")
  for u in("u32","s32"):
    op(f"dp4a.{t}.{u}",["u32"]*3,"u32")
    for m in("lo","hi"): op(f"dp2a.{m}.{t}.{u}",["u32"]*3,"u32")
  for m in("clamp","wrap"): op(f"szext.{m}.{t}",["u32","u32"],"u32")
for n in("add.sat.s32","sub.sat.s32"): op(n,["s32","s32"],"s32")
for n in("mad24.hi.sat.s32","mad.hi.sat.s32"): op(n,["s32"]*3,"s32")
for w in(16,32,64): op(f"shl.b{w}",[f"u{w}","u32"],f"u{w}")
for d in("l","r"):
  for m in("clamp","wrap"): op(f"shf.{d}.{m}.b32",["u32"]*3,"u32")
for t in("u32","s32","u64","s64"):
  op(f"bfind.{t}",[t],"u32"); op(f"bfind.shiftamt.{t}",[t],"u32"); op(f"bfe.{t}",[t,"u32","u32"],t)
for w in(32,64):
  op(f"bfi.b{w}",[f"u{w}",f"u{w}","u32","u32"],f"u{w}"); op(f"brev.b{w}",[f"u{w}"],f"u{w}"); op(f"popc.b{w}",[f"u{w}"],"u32"); op(f"clz.b{w}",[f"u{w}"],"u32")
op("fns.b32",["u32","small","smalls"],"u32")
for m in("clamp","wrap"): op(f"bmsk.{m}.b32",["u32","u32"],"u32")
for m in("",".f4e",".b4e",".rc8",".ecl",".ecr",".rc16"): op(f"prmt.b32{m}",["u32"]*3,"u32")
for l in(0xe8,0x96,0x1b,0x5c): op(f"lop3.b32.{l}",["u32"]*3,"u32",f"lop3.b32 %0, %1, %2, %3, {l};")
for w in(32,64):
  t=f"u{w}"
  op(f"addc.{t}",[t]*4,t,"{.reg .u%d t; add.cc.u%d t, %%1, %%2; addc.u%d %%0, %%3, %%4;}"%(w,w,w))
  op(f"addc.cc.{t}",[t]*4,t,"{.reg .u%d t; add.cc.u%d t, %%1, %%2; addc.cc.u%d t, %%3, %%4; addc.u%d %%0, t, 0;}"%(w,w,w,w))
  op(f"subc.{t}",[t]*4,t,"{.reg .u%d t; sub.cc.u%d t, %%1, %%2; subc.u%d %%0, %%3, %%4;}"%(w,w,w))
  op(f"subc.cc.{t}",[t]*4,t,"{.reg .u%d t; sub.cc.u%d t, %%1, %%2; subc.cc.u%d t, %%3, %%4; subc.u%d %%0, t, 0;}"%(w,w,w,w))
  op(f"madc.{t}",[t]*4,t,"{.reg .u%d t; mad.lo.cc.u%d t, %%1, %%2, %%3; madc.hi.u%d %%0, %%1, %%2, %%4;}"%(w,w,w))
for o in("vadd","vsub","vavrg","vabsdiff","vmin","vmax"):
  for n in("2","4"):
    for t in("u32.u32.u32","s32.s32.s32","s32.u32.s32"):
      for s in("",".sat"):
        op(f"{o}{n}.{t}{s}",["u32"]*3,"u32")
      op(f"{o}{n}.{t}.add",["u32"]*3,"u32")
for n in("2","4"):
  for c in("eq","ne","lt","le","gt","ge"):
    for t in("u32.u32","s32.s32"): op(f"vset{n}.{t}.{c}",["u32"]*3,"u32")
# Approximate functions: their outputs are compared with a tolerance, so only raw.bin matters.
APPROX=[]
for f in("",".ftz"):
  for o in("ex2","lg2","sin","cos","rcp","sqrt","rsqrt"): APPROX.append((f"{o}.approx{f}.f32",None,["f32"],"f32"))
  APPROX.append((f"div.approx{f}.f32",None,["f32","f32"],"f32")); APPROX.append((f"div.full{f}.f32",None,["f32","f32"],"f32"))
APPROX+= [("tanh.approx.f32",None,["f32"],"f32"),("tanh.approx.f16",None,["f16"],"f16"),("tanh.approx.bf16",None,["bf16"],"bf16"),("ex2.approx.f16",None,["f16"],"f16"),("ex2.approx.ftz.bf16",None,["bf16"],"bf16"),
 ("rsqrt.approx.f64",None,["f64"],"f64"),("rcp.approx.ftz.f64",None,["f64"],"f64"),("rsqrt.approx.ftz.f64",None,["f64"],"f64")]
ops+=APPROX
C={"f32":("f","float"),"f64":("d","double"),"f16":("h","unsigned short"),"bf16":("h","unsigned short"),"u16":("h","unsigned short"),"s16":("h","short"),"u8":("r","unsigned"),"s8":("r","unsigned"),"u32":("r","unsigned"),"s32":("r","int"),"u64":("l","unsigned long long"),"s64":("l","long long"),"x2":("r","unsigned"),"small":("r","unsigned"),"smalls":("r","int")}
out=open("hardware.cu","w")
out.write(r'''
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include "inputs.h"
''')
for k,(n,a,ins,o) in enumerate(ops):
  if a is None: a=n+" "+", ".join(f"%{i}" for i in range(len(ins)+1))+";"
  p=n.split(".")
  if p[0]=="cvt" and p[-1]=="bf16" and p[-2] in("u8","s8"): a="{.reg .%s t; %s t, %%1; cvt.%s32.%s %%0, t;}"%(p[-2],n,p[-2][0],p[-2])
  if p[0]=="cvt" and p[-2]=="bf16" and p[-1] in("u8","s8"): a="{.reg .%s t; cvt.%s.%s32 t, %%1; %s %%0, t;}"%(p[-1],p[-1],p[-1][0],n)
  args="\n".join(f"  {C[t][1]} x{i} = as<{C[t][1]}>(input_{t}(i, {i}));" for i,t in enumerate(ins))
  cons=", ".join(f'"{C[t][0]}"(x{i})' for i,t in enumerate(ins))
  out.write(f'''__global__ void k{k}(uint64_t *o) {{ uint64_t i = blockIdx.x * blockDim.x + threadIdx.x;
{args}
  {C[o][1]} r; asm volatile("{a}" : "={C[o][0]}"(r) : {cons});
  uint64_t w = 0; memcpy(&w, &r, sizeof r); o[i] = w; }}
''')
out.write("""int main(int argc, char **argv) {
  uint64_t *d, *h = (uint64_t *)malloc(8 * COUNT);
  if (argc < 3 || cudaMalloc(&d, 8 * COUNT)) return 2;
  FILE *sums = fopen(argv[1], "w"), *raw = fopen(argv[2], "wb");
  cudaError_t e;
""")
for k,(n,a,ins,o) in enumerate(ops):
  out.write(f' k{k}<<<COUNT/256,256>>>(d); if ((e = cudaMemcpy(h, d, 8*COUNT, cudaMemcpyDeviceToHost))) {{ printf("{n}: %s\\n", cudaGetErrorString(e)); return 1; }} fprintf(sums, "%016llx {n}|{",".join(ins)}|{o}\\n", (unsigned long long)checksum(h)); fwrite(h, 8, RAW, raw);\n')
out.write(" fclose(sums); fclose(raw); return 0; }\n")
