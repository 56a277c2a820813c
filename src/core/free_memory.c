/* How much memory this process can still allocate: the minimum over what the machine has free, what
 * the limits of the process's control groups leave (containers and batch systems set them), and
 * what its own limits leave. Both generations of control groups are supported (cgroup v1 and v2,
 * see the Linux kernel's admin-guide). */
#include "core/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
