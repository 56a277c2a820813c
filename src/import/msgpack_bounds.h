/* Whether bytes are one complete object of MessagePack (github.com/msgpack/msgpack/spec.md).
 *
 * msgpack-c allocates what the header of a list or map claims before it looks for the elements, so
 * that five bytes can ask for 100 GB. This check comes first: it allocates nothing. */
#ifndef KS_IMPORT_MSGPACK_BOUNDS_H
#define KS_IMPORT_MSGPACK_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is exactly one object, complete, of at most a million objects in lists and maps
 * nested at most 24 deep. */
bool ks_msgpack_bounded(const void *bytes, size_t n);

#endif
