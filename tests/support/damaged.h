/* Damaged files. */
#ifndef KS_TEST_DAMAGED_H
#define KS_TEST_DAMAGED_H

#include <stdint.h>

/* A file as another program writes it: a dataset /own, with values. */
void write_foreign(const char *path);

/* A file in which a variable-length string has this size in HDF5's global heap. With
 * 1 << 32 HDF5 1.10 crashes and 1.14 refuses it, with (uint64_t)0 - 16 both loop for ever. */
void break_heap(const char *path, uint64_t size);

#endif
