/* All of the stub is one unit, so that nothing but the API leaves it. */
#define _GNU_SOURCE
#include "stub.h"

#include "connect.c"
#include "helper.c"
#include "register.c"
#include "launch.c"
#include "memory.c"
#include "pools.c"
#include "symbols.c"
#include "streams.c"
#include "device.c"
#include "graphs.c"
#include "executables.c"
#include "tensors.c"
#include "rest.h" /* generated: variants for the per-thread default stream, and refusals of what is missing */
