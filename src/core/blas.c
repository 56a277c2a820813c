#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "core/blas.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cblas.h>

#include "core/memory.h"

/* On a processor without AVX2, glibc from 2.33 on refuses by this note to load a program that was
 * compiled for AVX2, in one line, before an instruction fails. x86-64 psABI, property
 * GNU_PROPERTY_X86_ISA_1_NEEDED (0xc0008002) with the bit of x86-64-v3 (4). Linkers write it with
 * -z x86-64-v3, but not binutils before 2.36. */
#if defined(__x86_64__) && defined(__AVX2__) && defined(__BMI2__) && defined(__F16C__) &&          \
    defined(__FMA__) && defined(__LZCNT__) && defined(__MOVBE__)
__asm__(".pushsection .note.gnu.property, \"a\", @note\n"
        ".p2align 3\n"
        ".long 4, 16, 5\n" /* bytes of the name and of the properties; NT_GNU_PROPERTY_TYPE_0 */
        ".asciz \"GNU\"\n"
        ".long 0xc0008002, 4, 4, 0\n" /* property, bytes of its value, value, padding */
        ".popsection");
#endif

static const char CHOICE[] = "OPENBLAS_CORETYPE"; /* selects OpenBLAS's kernel */
static const char COUNT[] = "OPENBLAS_NUM_THREADS";

static const size_t BUFFER = ((size_t)128 << 20) + 4096; /* bytes that OpenBLAS maps per thread */
static const double MEBIBYTE = 1 << 20;
enum { MOST_BUFFERS = 64 }; /* claimed: OpenBLAS prints a warning above its compiled-in maximum */

/* Functions that OpenBLAS exports but does not declare in its header: they take a buffer for the
 * calling thread and return it to OpenBLAS's pool. Weak, so they are NULL in a library without
 * them. */
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

static bool is_in(const char *kernel, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (strcasecmp(kernel, list[i]) == 0)
            return true;
    return false;
}

/* OpenBLAS's names of its kernels for AVX-512 and for AVX2. */
static const char *const avx512_kernels[] = {"SkylakeX", "Cooperlake", "Sapphirerapids", NULL};
static const char *const avx2_kernels[] = {"Haswell", "Zen", "Excavator", NULL};

const char *ks_blas_better_kernel(const char *kernel, bool avx2, bool avx512)
{
    if (avx512 && !is_in(kernel, avx512_kernels))
        return avx512_kernels[0];
    if (avx2 && !avx512 && !is_in(kernel, avx2_kernels) && !is_in(kernel, avx512_kernels))
        return avx2_kernels[0];
    return NULL;
}

static const char *better_kernel(void)
{
#if defined(__x86_64__)
    return ks_blas_better_kernel(ks_blas_kernel(), __builtin_cpu_supports("avx2"),
                                 __builtin_cpu_supports("avx512f"));
#else
    return NULL;
#endif
}

static bool is_limited(int resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void ks_blas_start(char **argv)
{
    const char *better = getenv(CHOICE) ? NULL : better_kernel(), *threads = getenv(COUNT);
    const bool limited = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
    /* Whether OpenBLAS has created threads of its own although the address space is limited. */
    const bool fewer = (!threads || strcmp(threads, "1") != 0) && limited;

    /* OpenBLAS reads its environment only when it is loaded. */
    if (argv && (better || fewer) && (!better || setenv(CHOICE, better, 1) == 0) &&
        (!fewer || setenv(COUNT, "1", 1) == 0))
        execv("/proc/self/exe", argv);
#ifdef M_ARENA_MAX
    /* glibc reserves 128 MiB for the first allocation of a thread, for a moment, which could leave
     * no room for the stack of the next thread. */
    if (limited)
        mallopt(M_ARENA_MAX, 1);
#endif
    openblas_set_num_threads(1);
}

static size_t stack_size(void)
{
    pthread_attr_t attributes;
    size_t size = 0;

    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size;
}

/* Tries to map n blocks of `size` bytes one by one, as OpenBLAS does, then unmaps them. */
static bool fits(size_t n, size_t size, void **block)
{
    size_t mapped = 0;

    while (mapped < n && (block[mapped] = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
        mapped++;
    for (size_t i = 0; i < mapped; i++)
        munmap(block[i], size);
    return mapped == n;
}

static ks_status refuse(size_t threads, size_t size)
{
    bool data = !is_limited(RLIMIT_AS);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    double need = (double)threads * (double)size, left = ks_memory_left_by_limits("");

    getrlimit(data ? RLIMIT_DATA : RLIMIT_AS, &limit);
    if (isinf(left))
        return ks_fail(KS_MEMORY,
                       "the system refuses the %.0f MiB of address space that OpenBLAS and the "
                       "stacks of %zu threads need: use fewer threads",
                       ceil(need / MEBIBYTE), threads);
    return ks_fail(KS_MEMORY,
                   "address space: expected a limit (ulimit -%c) of at least %.0fK, found %.0fK: "
                   "OpenBLAS maps 128 MiB for each of %zu threads: use fewer threads",
                   data ? 'd' : 'v', ceil(((double)limit.rlim_cur - left + need) / 1024),
                   floor((double)limit.rlim_cur / 1024), threads);
}

/* Makes OpenBLAS map n buffers, which it keeps for later calls. */
static void claim(size_t n, void **buffer)
{
    if (!blas_memory_alloc || !blas_memory_free)
        return;
    n = n < MOST_BUFFERS ? n : MOST_BUFFERS;
    for (size_t i = 0; i < n; i++)
        buffer[i] = blas_memory_alloc(0);
    for (size_t i = 0; i < n; i++)
        if (buffer[i])
            blas_memory_free(buffer[i]);
}

ks_status ks_blas_reserve(size_t threads)
{
    const size_t size = BUFFER + stack_size();
    KS_OWNED void **block = NULL;

    KS_TRY(ks_alloc(threads, sizeof *block, &block));
    if (!fits(threads, size, block))
        return refuse(threads, size);
    claim(threads, block);
    return KS_OK;
}

/* The first two words of openblas_get_config(): "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...". */
const char *ks_blas_version(void)
{
    static _Thread_local char version[64];
    char product[32] = "OpenBLAS", number[31] = "";

    sscanf(openblas_get_config(), "%31s %30s", product, number);
    snprintf(version, sizeof version, "%s %s", product, number);
    return version;
}

const char *ks_blas_kernel(void)
{
    return openblas_get_corename();
}

const char *ks_blas_warning(void)
{
    static _Thread_local char line[256];
    const char *better = better_kernel();

    if (!better)
        return NULL;
    snprintf(
        line, sizeof line,
        "OpenBLAS uses its %s kernel, which reaches at most half of this processor's speed: set "
        "OPENBLAS_CORETYPE=%s%s",
        ks_blas_kernel(), better, getenv(CHOICE) ? ", or unset it" : "");
    return line;
}

/* --- the processor --- */

const char *ks_processor_name(void)
{
    static _Thread_local char name[128];
    FILE *file = fopen("/proc/cpuinfo", "r");
    struct utsname system;
    char line[512];

    name[0] = '\0';
    while (file && !*name && fgets(line, sizeof line, file)) /* "model name : ..." */
        if (strncmp(line, "model name", 10) == 0)
            sscanf(line, "%*[^:]: %127[^\n]", name);
    if (file)
        fclose(file);
    if (!*name)
        snprintf(name, sizeof name, "%s", uname(&system) == 0 ? system.machine : "unknown");
    return name;
}
