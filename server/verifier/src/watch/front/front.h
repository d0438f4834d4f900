/* What the parts of the library in front of the driver share. No header of the toolkit is used. */
#ifndef STITCHCUDA_FRONT_H
#define STITCHCUDA_FRONT_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef int result; /* CUresult */
typedef uint64_t address; /* CUdeviceptr, and with unified addresses any pointer */
typedef void *stream; /* CUstream */

/* CUresult */
enum { SUCCESS = 0, NOT_FOUND = 500 };
/* CUmemorytype */
enum { KIND_HOST = 1, KIND_DEVICE = 2, KIND_ARRAY = 3, KIND_UNIFIED = 4 };

#include "structures.h"

/* The bytes of a copy in the program's memory. Lengths in bytes. */
struct rows {
    char *start;
    size_t width, height, depth, pitch, slice;
};

/* channel.c: what is said to the process that watches. */
int watched(void);
int inputs_over(void);
/* Whether the watcher changed the bytes, which are then the changed ones. */
int offer_input(void *bytes, size_t size);
/* Announces a copy to the host. The place of its bytes in the record, or NO_TICKET where they are not wanted. */
uint64_t announce_output(size_t size);
void deliver_output(uint64_t ticket, const struct rows *rows);
void tell_unseen(unsigned why);
#define NO_TICKET UINT64_MAX

#endif
