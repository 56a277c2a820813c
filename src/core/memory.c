#include "core/memory.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };            /* a cache line, and the widest vector register */
static atomic_size_t calls_to_fail; /* calls until one fails; 0: never */
static atomic_size_t total;

/* Under AddressSanitizer, bytes after each array of an arena that must not be touched. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = ALIGNMENT };
#else
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
enum { RED_ZONE = 0 };
#endif

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

void *ks_arena_take(struct ks_arena *arena, size_t count, size_t size)
{
    char *array = arena->block ? arena->block + arena->bytes : NULL;
    size_t bytes;

    if (count > (SIZE_MAX - arena->bytes) / size ||
        SIZE_MAX - arena->bytes - count * size < RED_ZONE + ALIGNMENT) {
        assert(!array);
        arena->bytes = SIZE_MAX;
        return NULL;
    }
    bytes = (count * size + RED_ZONE + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    arena->bytes += bytes;
    if (array)
        ASAN_POISON_MEMORY_REGION(array + count * size, bytes - count * size);
    return array;
}

size_t ks_arena_count(ks_lay_out *lay_out, void *object)
{
    struct ks_arena arena = {.bytes = 0};

    lay_out(&arena, object);
    return arena.bytes;
}

static _Thread_local struct ks_count *counted; /* NULL: arenas allocate */

void ks_count_start(struct ks_count *count)
{
    *count = (struct ks_count){.now = 0};
    counted = count;
}

void ks_count_next(void)
{
    if (!counted)
        return;
    counted->earlier = counted->most;
    counted->most = counted->now;
}

void ks_count_end(void)
{
    counted = NULL;
}

bool ks_counting(void)
{
    return counted != NULL;
}

ks_status ks_arena_make(struct ks_arena *arena, ks_lay_out *lay_out, void *object)
{
    size_t bytes = ks_arena_count(lay_out, object);

    *arena = (struct ks_arena){.bytes = 0};
    if (counted) {
        arena->bytes = bytes;
        counted->now += (double)bytes;
        counted->most = fmax(counted->most, counted->now);
        return KS_OK;
    }
    KS_TRY(ks_alloc(bytes, 1, &arena->block));
    lay_out(arena, object);
    assert(arena->bytes == bytes);
    return KS_OK;
}

void ks_arena_free(struct ks_arena *arena)
{
    if (counted && !arena->block)
        counted->now -= (double)arena->bytes;
    free(arena->block);
    *arena = (struct ks_arena){.bytes = 0};
}

struct numbers {
    size_t count;
    double *list;
};

static void lay_out_numbers(struct ks_arena *arena, void *object)
{
    struct numbers *numbers = object;

    numbers->list = KS_TAKE(arena, numbers->count, double);
}

ks_status ks_arena_numbers(struct ks_arena *arena, size_t count, double **list)
{
    struct numbers numbers = {.count = count};
    const ks_status status = ks_arena_make(arena, lay_out_numbers, &numbers);

    *list = numbers.list;
    return status;
}

ks_status ks_pool_alloc(struct ks_pool *pool, size_t count, size_t size, void *out)
{
    KS_TRY(ks_grow(pool->n, sizeof *pool->list, &pool->room, &pool->list));
    KS_TRY(ks_alloc(count, size, out));
    memcpy(&pool->list[pool->n++], out, sizeof *pool->list);
    return KS_OK;
}

void ks_pool_free(struct ks_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++)
        free(pool->list[i]);
    free(pool->list);
    *pool = (struct ks_pool){.n = 0};
}

ks_status ks_copy_string(const char *string, char **out)
{
    return ks_print_string(out, "%s", string);
}

ks_status ks_print_string(char **out, const char *format, ...)
{
    va_list values;
    ks_status status;

    va_start(values, format);
    status = ks_print_values(out, format, values);
    va_end(values);
    return status;
}

ks_status ks_print_values(char **out, const char *format, va_list values)
{
    va_list again;
    int length;

    va_copy(again, values);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *out = NULL;
    if (length < 0)
        return ks_fail(KS_RUN, "cannot print with the format '%s'", format);
    KS_TRY(ks_alloc((size_t)length + 1, 1, out));
    vsnprintf(*out, (size_t)length + 1, format, values);
    return KS_OK;
}

ks_status ks_list_add(struct ks_list *list, const char *format, ...)
{
    va_list values;
    ks_status status;

    KS_TRY(ks_grow(list->n, sizeof *list->text, &list->room, &list->text));
    va_start(values, format);
    status = ks_print_values(&list->text[list->n], format, values);
    va_end(values);
    list->n += status == KS_OK;
    return status;
}

void ks_list_clear(struct ks_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->text[i]);
    free(list->text);
    *list = (struct ks_list){.n = 0};
}

ks_status ks_stream_close(FILE *stream)
{
    bool failed = !stream || ferror(stream) != 0;

    failed = (stream && fclose(stream) != 0) || failed;
    return failed ? ks_fail(KS_MEMORY, "out of memory") : KS_OK;
}

/* --- the memory that is left --- */

enum { PATH = 4096 };

/* Where a cgroup version keeps its files: the mount point, and the file names in a group's
 * folder. `cache` is the entry of memory.stat for the reclaimable file cache of the group and
 * its children. */
struct generation {
    const char *mount, *limit, *usage, *cache;
};
static const struct generation v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                     "memory.usage_in_bytes", "total_inactive_file"};
static const struct generation v2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                     "inactive_file"};

/* Reads the number after `word` from the first line that starts with `word`; false if not found. */
static bool read_number(const char *folder, const char *name, const char *word, double *number)
{
    char path[2 * PATH], line[256];
    size_t length = strlen(word);
    bool found = false;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, word, length) == 0 && sscanf(line + length, "%lf", number) == 1;
    if (file)
        fclose(file);
    return found;
}

/* The memory that the limits of a group and of all its parents leave. A limit of "max" is not a
 * number and is skipped. In a container, parent folders may be missing: they are skipped too. */
static double left_in(const char *root, const struct generation *g, char *group)
{
    double least = INFINITY, limit, used, cache;
    char folder[PATH + 256], *slash;

    do {
        snprintf(folder, sizeof folder, "%s%s%s", root, g->mount, group);
        if (read_number(folder, g->limit, "", &limit) && read_number(folder, g->usage, "", &used)) {
            if (!read_number(folder, "memory.stat", g->cache, &cache))
                cache = 0;
            least = fmin(least, fmax(limit - used + cache, 1));
        }
        slash = strrchr(group, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
    return least;
}

/* Lines of /proc/self/cgroup are "0::GROUP" (v2) or "NUMBER:CONTROLLERS:GROUP" (v1). */
static double left_by_groups(const char *root)
{
    char path[PATH], line[PATH], *controllers, *group;
    double least = INFINITY;
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        controllers = strchr(line, ':');
        group = controllers ? strchr(++controllers, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (!*controllers || strstr(controllers, "memory"))
            least = fmin(least, left_in(root, *controllers ? &v1 : &v2, group));
    }
    if (file)
        fclose(file);
    return least;
}

/* The kernel compares the address-space limit with VmSize and the data limit with VmData: all
 * mapped memory counts, used or not. */
double ks_memory_left_by_limits(const char *root)
{
    static const struct {
        const char *limit, *used;
    } kinds[] = {{"Max address space", "VmSize:"}, {"Max data size", "VmData:"}};
    double least = INFINITY, limit, kilobytes;
    char folder[PATH];

    snprintf(folder, sizeof folder, "%s/proc/self", root);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (read_number(folder, "limits", kinds[i].limit, &limit) &&
            read_number(folder, "status", kinds[i].used, &kilobytes))
            least = fmin(least, fmax(limit - 1024 * kilobytes, 1));
    return least;
}

/* MemAvailable includes reclaimable file cache. Without /proc, the free pages are counted. */
size_t ks_memory_available(const char *root, size_t sharing)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double kilobytes, bytes = pages > 0 && page > 0 ? (double)pages * (double)page : 0;
    char folder[PATH];

    snprintf(folder, sizeof folder, "%s/proc", root);
    if (read_number(folder, "meminfo", "MemAvailable:", &kilobytes))
        bytes = 1024 * kilobytes;
    bytes = fmin(bytes, left_by_groups(root)) / (double)sharing;
    return (size_t)fmin(bytes, ks_memory_left_by_limits(root));
}
