/* Memory: all allocation goes through ks_alloc. The caller frees, with free(). */
#ifndef KS_CORE_MEMORY_H
#define KS_CORE_MEMORY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Allocates `count` elements of `size` bytes, zeroed and aligned to 64 bytes. `out` is the address
 * of an object pointer, which receives the block: ks_alloc(n, sizeof *x, &x). If count is 0, there
 * is room for one element. On failure (also if count * size overflows) the pointer is NULL and the
 * status KS_MEMORY. */
ks_status ks_alloc(size_t count, size_t size, void *out);

/* Makes room for one more element after `used` elements of `size` bytes: if the capacity *room is
 * used up, moves them to a larger block. `array` is the address of an object pointer, which is NULL
 * while *room is 0: ks_grow(n, sizeof *x, &room, &x). On failure array and *room are unchanged. */
ks_status ks_grow(size_t used, size_t size, size_t *room, void *array);

/* A local pointer that owns its block: on every way out of the function, an early return included,
 * the block is freed. The pointer starts as NULL, and is set to NULL when the block is handed over:
 *
 *     KS_OWNED char *text = NULL;
 *
 *     KS_TRY(ks_copy_string(from, &text));
 *     KS_TRY(check(text));
 *     *out = text, text = NULL;
 *     return KS_OK;
 *
 * KS_OWNED_BY(f) is for a variable that f(variable) frees, after KS_OWNER(f, its type) has said so;
 * KS_CLEARED_BY(f) for one that f(&variable) clears. The attribute is GCC's and Clang's; jansson's
 * json_auto_t has it, too. */
#define KS_OWNED         __attribute__((cleanup(ks_free_owned)))
#define KS_OWNED_BY(f)   __attribute__((cleanup(f##_owned)))
#define KS_CLEARED_BY(f) __attribute__((cleanup(f)))
#define KS_OWNER(f, type)                                                                          \
    static inline void f##_owned(type *variable)                                                   \
    {                                                                                              \
        f(*variable);                                                                              \
    }
static inline void ks_free_owned(void *pointer) /* its address */
{
    void *block;

    memcpy(&block, pointer, sizeof block);
    free(block);
}

/* An arena is one block that holds all arrays of an object. A layout function describes them, and
 * runs twice: once to count the bytes, once to carve the arrays out of the block:
 *
 *     static void lay_out(struct ks_arena *arena, void *object)
 *     {
 *         struct table *t = object;
 *
 *         t->value = KS_TAKE(arena, t->rows * t->columns, double);
 *         t->line = KS_TAKE(arena, t->rows, struct line);
 *         for (size_t i = 0; i < t->rows; i++)
 *             lay_out_line(arena, t->columns, KS_TAKEN(t->line, i, struct line));
 *     }
 *
 * The sizes are known before, and are the same in both runs. While it counts, all arrays are NULL.
 * A layout function may call those of objects that are parts of its own. */
struct ks_arena {
    char *block;  /* NULL while counting, and when empty. Owned */
    size_t bytes; /* taken so far; SIZE_MAX: more than can be counted */
};
typedef void ks_lay_out(struct ks_arena *arena, void *object);

/* The next `count` elements of a type, zeroed and aligned to 64 bytes; NULL while counting. */
#define KS_TAKE(arena, count, type) ((type *)ks_arena_take(arena, count, sizeof(type)))
/* Element i of an array of structs that was taken; while counting one that is thrown away. */
#define KS_TAKEN(array, i, type) ((array) ? &(array)[i] : &(type){0})
void *ks_arena_take(struct ks_arena *arena, size_t count, size_t size); /* what KS_TAKE calls */

/* Allocates the arrays of an object, by one call of ks_alloc. `arena` was empty or never used;
 * ks_arena_free frees it. On failure, with the status KS_MEMORY (also if the bytes cannot be
 * counted), it is empty and the arrays are NULL. */
ks_status ks_arena_make(struct ks_arena *arena, ks_lay_out *lay_out, void *object);
/* The bytes that ks_arena_make would allocate; SIZE_MAX if they cannot be counted. The arrays of
 * `object`, which has none yet, are set to NULL. */
size_t ks_arena_count(ks_lay_out *lay_out, void *object);
void ks_arena_free(struct ks_arena *arena); /* leaves an empty arena */
/* Makes an arena that holds `count` numbers and nothing else. KS_MEMORY. */
ks_status ks_arena_numbers(struct ks_arena *arena, size_t count, double **numbers);

/* How much an analysis will take is known before anything large is allocated: it runs without its
 * arrays. Between ks_count_start and ks_count_end the arenas of this thread allocate nothing, all
 * arrays in them are NULL, and the count knows what they would hold. Whatever makes and frees
 * objects works as always; where it would read or fill arrays, it asks ks_counting() and leaves
 * that out. */
struct ks_count {
    double now, most; /* bytes: at present; at most since the start, or since ks_count_next */
    double earlier;   /* at most before ks_count_next; 0: it was not called                 */
};
void ks_count_start(struct ks_count *count); /* which is set to 0 */
void ks_count_next(void);                    /* what follows has a limit of its own */
void ks_count_end(void);
bool ks_counting(void);

/* Arrays whose sizes become known one after the other and that are freed together; none when
 * zeroed. */
struct ks_pool {
    void **list; /* [n], with room for more */
    size_t n, room;
};
/* ks_alloc of an array that ks_pool_free frees with all others of the pool. */
ks_status ks_pool_alloc(struct ks_pool *pool, size_t count, size_t size, void *out);
void ks_pool_free(struct ks_pool *pool); /* leaves an empty pool */
/* A local object that begins with its pool, which is freed on every way out of the function. */
#define KS_OWNS_POOL __attribute__((cleanup(ks_free_pooled)))
static inline void ks_free_pooled(void *object)
{
    ks_pool_free(object);
}

/* Copies `string` into a newly allocated *out. */
ks_status ks_copy_string(const char *string, char **out);

/* Prints into a newly allocated *out, like asprintf; and like vasprintf. */
ks_status ks_print_string(char **out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
ks_status ks_print_values(char **out, const char *format, va_list values)
    __attribute__((format(printf, 2, 0)));

/* Texts that are added one by one; none when zeroed. */
struct ks_list {
    size_t n, room;
    char **text; /* [n]; owned, with the texts */
};
/* Adds a text that is printed like printf. */
ks_status ks_list_add(struct ks_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ks_list_clear(struct ks_list *list);

/* Closes a stream of open_memstream; NULL: it could not be opened. KS_MEMORY if anything failed. */
ks_status ks_stream_close(FILE *stream);

/* The bytes allocated by ks_alloc so far, minus the bytes that ks_alloc_freed_since reported. */
size_t ks_alloc_total(void);
/* Reports that everything allocated since the total was `before` has been freed. Not for use while
 * other threads allocate. */
void ks_alloc_freed_since(size_t before);

/* Bytes of memory that this process can still allocate if `sharing` processes share the machine:
 * its share of what the machine and its control groups leave, and at most what its own limits
 * (ulimit -v, -d) leave; 0 if the system does not say. `root` is prepended to /proc and /sys: ""
 * except in tests. */
size_t ks_memory_available(const char *root, size_t sharing);
/* Bytes of address space that this process's own limits leave; INFINITY without a limit. */
double ks_memory_left_by_limits(const char *root);

/* For tests: makes the n-th call of ks_alloc from now fail, once. 0 cancels it. */
void ks_alloc_fail_at(size_t n);

#endif
