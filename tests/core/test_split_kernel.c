/* Tests of the kernels of core/split.h: the one in plain C adds in the order of Intel's manual, and
 * the one for AMX gives the same bits: as the manual defines its instructions on any processor, and
 * as the processor executes them where it has AMX. */
#define _DEFAULT_SOURCE /* for core/split_amx.c */
#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

#include "test.h"

#include "core/rng.h"
#include "core/split.h"

enum { STEPS = 5, TILES = STEPS * 3 * 2, SUMS = KS_SPLIT_STRIP * KS_SPLIT_STRIP };

static uint32_t part_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits >> 16;
}

/* The order of TDPBF16PS (Intel's manual, volume 2): sums that only it gives. The first row of a
 * tile, with pairs (even, odd) of k, times ones. 2^24 + 1 is not a float32, and a tie rounds to
 * even. */
TEST(test_order)
{
    static const struct {
        float pair[4][2], sum;
    } rows[] = {
        /* even: 2^24 + 1 = 2^24; odd: 1 + 1; in one sum from left to right it would be 2^24 */
        {{{0x1p24f, 1}, {1, 1}}, 0x1p24f + 2},
        /* even: 1 + 1 + 2^24; odd: 0 */
        {{{1, 0}, {1, 0}, {0x1p24f, 0}}, 0x1p24f + 2},
        /* even: 2^24 + 1 + 1 = 2^24, one by one */
        {{{0x1p24f, 0}, {1, 0}, {1, 0}}, 0x1p24f},
        /* even: 2^24 - 2^24 + 1; odd: 1 + 2^24 = 2^24, - 2^24 = 0 */
        {{{0x1p24f, 1}, {-0x1p24f, 0x1p24f}, {1, -0x1p24f}}, 1},
        /* 1 + 1, then added to 2^24, the product of A's second part */
        {{{1, 1}}, 0x1p24f + 2},
    };
    uint32_t a[3 * 2 * KS_SPLIT_TILE] = {0}, b[3 * 2 * KS_SPLIT_TILE];
    float sums[SUMS];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < 4; k++)
            a[i * 16 + k] = part_of(rows[i].pair[k][0]) | part_of(rows[i].pair[k][1]) << 16;
    a[2 * KS_SPLIT_TILE + 4 * 16] = part_of(0x1p24f);
    for (size_t i = 0; i < 3 * 2 * KS_SPLIT_TILE; i++)
        b[i] = i < 2 * KS_SPLIT_TILE ? part_of(1) | part_of(1) << 16 : 0;
    ks_split_plain(1, a, b, sums);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 16; j++)
            assert_close(sums[i * KS_SPLIT_STRIP + j], rows[i].sum, 0);
}

/* --- the kernel for AMX --- */

#if defined(__x86_64__) && defined(__linux__)
/* The instructions as Intel's manual defines them, volume 2: LDTILECFG, TILELOADD, TDPBF16PS,
 * TILESTORED. With them the AMX kernel's source is run on any processor: that shows which tiles it
 * loads, multiplies and stores in which order, and nothing about a processor. */

static struct {
    uint32_t row[16][16];
} tile[8];
static bool configured;

static void load_configuration(const void *memory)
{
    const uint8_t *bytes = memory;

    assert_int_equal(bytes[0], 1); /* palette */
    for (size_t i = 0; i < 8; i++)
        assert_true(bytes[16 + 2 * i] == 64 && bytes[17 + 2 * i] == 0 && bytes[48 + i] == 16);
    for (size_t i = 8; i < 16; i++)
        assert_true(bytes[16 + 2 * i] == 0 && bytes[17 + 2 * i] == 0 && bytes[48 + i] == 0);
    memset(tile, 0, sizeof tile);
    configured = true;
}

static void move_tile(size_t t, void *memory, size_t stride, bool store)
{
    assert_true(configured);
    for (size_t i = 0; i < 16; i++)
        if (store)
            memcpy((char *)memory + i * stride, tile[t].row[i], 64);
        else
            memcpy(tile[t].row[i], (char *)memory + i * stride, 64);
}

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

static float half_of(uint32_t pair, bool odd)
{
    const uint32_t bits = odd ? pair & 0xffff0000 : pair << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return flushed(x);
}

static void dot_products(size_t c, size_t a, size_t b)
{
    for (size_t m = 0; m < 16; m++)
        for (size_t n = 0; n < 16; n++) {
            float sum[2] = {0, 0}, own;

            for (size_t k = 0; k < 16; k++)
                for (size_t odd = 0; odd < 2; odd++)
                    sum[odd] = flushed(fmaf(half_of(tile[a].row[m][k], odd),
                                            half_of(tile[b].row[k][n], odd), sum[odd]));
            memcpy(&own, &tile[c].row[m][n], sizeof own);
            own = flushed(flushed(own) + flushed(sum[0] + sum[1]));
            memcpy(&tile[c].row[m][n], &own, sizeof own);
        }
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_zero
#define _tile_loadconfig(memory)        load_configuration(memory)
#define _tile_loadd(t, memory, stride)  move_tile(t, (void *)(memory), stride, false)
#define _tile_stored(t, memory, stride) move_tile(t, memory, stride, true)
#define _tile_zero(t)                   memset(&tile[t], 0, sizeof tile[t])
#define _tile_dpbf16ps(c, a, b)         dot_products(c, a, b)
#define _tile_release()                 configured = false
#define ks_split_amx                    as_in_the_manual
#define ks_split_has_amx                has_amx_too
ks_split_kernel as_in_the_manual;
bool has_amx_too(void);
#include "core/split_amx.c"
#undef ks_split_amx
#undef ks_split_has_amx
#else
static ks_split_kernel *const as_in_the_manual = ks_split_amx;
#endif

/* Random strips of parts as packing makes them: multiples of 2^-63 below 2. */
static void fill_strip(struct ks_rng *rng, uint32_t *strip)
{
    for (size_t i = 0; i < (size_t)TILES * KS_SPLIT_TILE; i++) {
        const double x = ks_rng_uniform(rng, 1, 2), y = -ks_rng_uniform(rng, 1, 2);
        const int e = (int)ks_rng_index(rng, 55), f = (int)ks_rng_index(rng, 55);

        strip[i] = part_of((float)ldexp(x, -e)) | part_of((float)ldexp(y, -f)) << 16;
    }
}

static void check_kernel(ks_split_kernel *kernel)
{
    static uint32_t a[TILES * KS_SPLIT_TILE], b[TILES * KS_SPLIT_TILE];
    struct ks_rng rng = ks_rng_start(3, 0);
    float plain[SUMS], other[SUMS];

    for (size_t i = 0; i < 4 * STEPS; i++) {
        fill_strip(&rng, a);
        fill_strip(&rng, b);
        ks_split_plain(1 + i % STEPS, a, b, plain);
        kernel(1 + i % STEPS, a, b, other);
        assert_memory_equal(plain, other, sizeof plain);
    }
}

TEST(test_the_manual_has_the_same_bits)
{
    check_kernel(as_in_the_manual);
}

TEST(test_amx_has_the_same_bits)
{
    if (!ks_split_has_amx()) {
        print_message("skipped: this processor has no AMX for bfloat16\n");
        skip();
    }
    check_kernel(ks_split_amx);
}
