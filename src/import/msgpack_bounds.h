/* Checks that bytes are one complete object of MessagePack (github.com/msgpack/msgpack/spec.md).
 *
 * msgpack-c allocates memory for the elements that the header of a list or map claims before it
 * looks for them, so five bytes can make it ask for 100 GB. This check comes before it and
 * allocates nothing. */
#ifndef KS_IMPORT_MSGPACK_BOUNDS_H
#define KS_IMPORT_MSGPACK_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the n bytes are exactly one complete object. It may consist of at most 2^20 objects, in
 * lists and maps that are nested at most 24 deep. */
bool ks_msgpack_bounded(const void *bytes, size_t n);

#endif
