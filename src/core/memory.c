#include "core/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };            /* a cache line, and the widest vector register */
static atomic_size_t calls_to_fail; /* calls until one fails; 0: never */
static atomic_size_t total;

void ks_alloc_fail_at(size_t n)
{
    atomic_store(&calls_to_fail, n);
}

/* Atomic, since ks_alloc_fail_at counts the calls of all threads. */
static bool has_to_fail(void)
{
    size_t calls = atomic_load(&calls_to_fail);

    while (calls > 0 && !atomic_compare_exchange_weak(&calls_to_fail, &calls, calls - 1))
        ;
    return calls == 1;
}

size_t ks_alloc_total(void)
{
    return atomic_load(&total);
}

void ks_alloc_freed_since(size_t before)
{
    atomic_store(&total, before);
}

ks_status ks_alloc(size_t count, size_t size, void *out)
{
    void *memory = NULL;
    size_t bytes;

    if (size != 0 && count > (SIZE_MAX - ALIGNMENT) / size) {
        memcpy(out, &memory, sizeof memory);
        return ks_fail(KS_MEMORY, "out of memory: %zu elements of %zu bytes", count, size);
    }
    bytes = count * size > 0 ? count * size : size + 1;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!has_to_fail())
        memory = aligned_alloc(ALIGNMENT, bytes);
    if (memory) {
        memset(memory, 0, bytes);
        atomic_fetch_add(&total, bytes);
    }
    memcpy(out, &memory, sizeof memory);
    return memory ? KS_OK : ks_fail(KS_MEMORY, "out of memory: %zu bytes", bytes);
}

ks_status ks_grow(size_t used, size_t size, size_t *room, void *array)
{
    const size_t more = 2 * *room + 16;
    void *old, *grown;

    if (used < *room)
        return KS_OK;
    KS_TRY(ks_alloc(more, size, &grown));
    memcpy(&old, array, sizeof old);
    if (used > 0)
        memcpy(grown, old, used * size);
    free(old);
    memcpy(array, &grown, sizeof grown);
    *room = more;
    return KS_OK;
}

ks_status ks_copy_string(const char *string, char **out)
{
    return ks_print_string(out, "%s", string);
}

ks_status ks_print_string(char **out, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    *out = NULL;
    if (length < 0)
        return ks_fail(KS_RUN, "cannot print with the format '%s'", format);
    KS_TRY(ks_alloc((size_t)length + 1, 1, out));
    va_start(arguments, format);
    vsnprintf(*out, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return KS_OK;
}
