/* The kernel of split.h for AMX: TDPBF16PS on tiles. Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2, TDPBF16PS: for a pair of 16 x 16 tiles, products of even and of odd
 * k have a sum of their own, from zero and in the order of k; then c += even + odd. Each addition
 * is rounded to nearest even whatever MXCSR says. ks_split_plain does the same. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* syscall */
#endif
#include "core/split.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux: Documentation/arch/x86/xstate.rst. A process asks once for the 8 KiB of tiles that each of
 * its threads then may use. */
enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };

static bool has_amx;

/* CPUID's leaf 7: AMX-BF16 is bit 22 of EDX, AMX-TILE bit 24. */
static void ask(void)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

    has_amx = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx >> 22 & 1) &&
              (edx >> 24 & 1) && syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
}

bool ks_split_has_amx(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, ask);
    return has_amx;
}

/* Eight tiles of 16 rows of 64 bytes: LDTILECFG's palette 1. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} shapes __attribute__((aligned(64))) = {
    .palette = 1,
    .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

/* Tiles 0 to 3 are the four quarters of the sums, 4 and 5 A's rows, 6 and 7 B's columns. */
#define LOAD_A(at, part)                                                                           \
    do {                                                                                           \
        _tile_loadd(4, (at) + (part)*2 * KS_SPLIT_TILE, 64);                                       \
        _tile_loadd(5, (at) + (part)*2 * KS_SPLIT_TILE + KS_SPLIT_TILE, 64);                       \
    } while (0)
#define LOAD_B(at, part)                                                                           \
    do {                                                                                           \
        _tile_loadd(6, (at) + (part)*2 * KS_SPLIT_TILE, 64);                                       \
        _tile_loadd(7, (at) + (part)*2 * KS_SPLIT_TILE + KS_SPLIT_TILE, 64);                       \
    } while (0)
#define MULTIPLY()                                                                                 \
    do {                                                                                           \
        _tile_dpbf16ps(0, 4, 6);                                                                   \
        _tile_dpbf16ps(1, 4, 7);                                                                   \
        _tile_dpbf16ps(2, 5, 6);                                                                   \
        _tile_dpbf16ps(3, 5, 7);                                                                   \
    } while (0)

__attribute__((target("amx-tile,amx-bf16"))) void ks_split_amx(size_t steps, const uint32_t *a,
                                                               const uint32_t *b, float *sums)
{
    const size_t step = KS_SPLIT_PARTS * 2 * KS_SPLIT_TILE, row = KS_SPLIT_STRIP * sizeof *sums;

    /* GCC's intrinsics do not say that they read memory. */
    __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
    _tile_loadconfig(&shapes);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t s = 0; s < steps; s++) {
        const uint32_t *x = a + s * step, *y = b + s * step;

        LOAD_B(y, 0);
        LOAD_A(x, 2);
        MULTIPLY();
        LOAD_A(x, 1);
        MULTIPLY();
        LOAD_B(y, 1);
        MULTIPLY();
        LOAD_A(x, 0);
        MULTIPLY();
        LOAD_B(y, 2);
        MULTIPLY();
    }
    for (size_t s = 0; s < steps; s++) {
        LOAD_A(a + s * step, 0);
        LOAD_B(b + s * step, 0);
        MULTIPLY();
    }
    _tile_stored(0, sums, row);
    _tile_stored(1, sums + 16, row);
    _tile_stored(2, sums + 16 * KS_SPLIT_STRIP, row);
    _tile_stored(3, sums + 16 * KS_SPLIT_STRIP + 16, row);
    _tile_release();
}

#else
bool ks_split_has_amx(void)
{
    return false;
}

void ks_split_amx(size_t steps, const uint32_t *a, const uint32_t *b, float *sums)
{
    ks_split_plain(steps, a, b, sums);
}
#endif
