/* Stands where a program looks for libcuda.so.1, in front of the real one, to which it hands every call on. The real one is a library
 * that this one needs, so that whatever is not defined here is found there, by the linker and by dlsym alike; only its functions
 * that copy are wrapped. All of it is one unit, so that nothing but the API leaves it. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "front.h"
#include "protocol.h" /* generated: what is said to the watcher */

#define HELPERS(X) \
    X(cuPointerGetAttribute) X(cuStreamIsCapturing) X(cuStreamIsCapturing_ptsz) X(cuStreamSynchronize) X(cuStreamSynchronize_ptsz) \
    X(cuLaunchHostFunc) X(cuLaunchHostFunc_ptsz) X(cuThreadExchangeStreamCaptureMode)
#define HELPER(name) static void *helper_##name;
HELPERS(HELPER)

#include "channel.c"
#include "copies.c"
#include "entries.c"

__attribute__((constructor)) static void begin(void)
{
    void *real = dlopen(REAL_NAME, RTLD_NOW | RTLD_NOLOAD);
    if (!real)
        return; /* The loader found it a moment ago, since it is needed. */
#define FIND(name) helper_##name = dlsym(real, #name);
    HELPERS(FIND)
    for (struct entry *entry = entries; entry < entries + sizeof entries / sizeof *entries; entry++)
        *entry->real = dlsym(real, entry->name);
    open_for_good();
}
