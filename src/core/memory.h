/* Memory: all allocation goes through ks_alloc; whoever allocates frees, with free(). */
#ifndef KS_CORE_MEMORY_H
#define KS_CORE_MEMORY_H

#include <stddef.h>

#include "core/error.h"

/* `count` elements of `size` bytes, set to zero, aligned to 64 bytes, in *out, a pointer to an
 * object pointer; room for one element where count is 0. On failure *out is NULL and the status
 * KS_MEMORY; a product that overflows is such a failure. Usage: ks_alloc(n, sizeof *x, &x). */
ks_status ks_alloc(size_t count, size_t size, void *out);

/* Room for one more behind `used` elements of `size` bytes: where *room, the elements that the
 * array has room for, is too small, a larger one takes its place. *array is a pointer to an object
 * pointer, NULL while *room is 0. On failure both stay. Usage: ks_grow(n, sizeof *x, &room, &x). */
ks_status ks_grow(size_t used, size_t size, size_t *room, void *array);

/* A copy of `string` in *out, a pointer to a char pointer. */
ks_status ks_copy_string(const char *string, char **out);

/* "format" printed into a fresh string in *out. */
ks_status ks_print_string(char **out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Bytes that ks_alloc has given so far, whether freed since or not, but for what is said to be. */
size_t ks_alloc_total(void);
/* All that was given since the total was `before` has been freed. For one thread at a time. */
void ks_alloc_freed_since(size_t before);

/* Bytes of memory that are free for this process, one of `sharing` processes that share this
 * machine: its part of what the machine and the limits of its control groups leave, and no more
 * than its own limits (ulimit -v, -d) leave; 0 where the system does not say. `root`: "", or for
 * tests the folder in which /proc and /sys are looked for. */
size_t ks_memory_free(const char *root, size_t sharing);
/* Bytes of address space that this process's own limits leave; INFINITY where it has none. */
double ks_memory_left_by_limits(const char *root);

/* For tests: makes the n-th call of ks_alloc from now on fail, once; 0 switches that off. */
void ks_alloc_fail_at(size_t n);

#endif
