#include "core/split.h"

#include <string.h>

#include <cblas.h>

enum {
    HALF = 16,                     /* rows or columns of a tile    */
    PAIRS = 16,                    /* of k in a tile               */
    STEP = 2 * PAIRS,              /* values of k in a tile        */
    STEPS = KS_SPLIT_DEPTH / STEP, /* tiles of a strip along k     */
    STRIP_TILES = STEPS * KS_SPLIT_PARTS * 2,
    STRIPS = 16 /* of B that are packed at a time: 512 columns */
};

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A row of a tile, and of sums. */
enum { BYTES = HALF * sizeof(uint32_t) };
typedef uint32_t line __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef float numbers __attribute__((vector_size(BYTES), aligned(4), may_alias));

/* --- the kernel in plain C --- */

/* c [16, 16] of a matrix of 32 columns += a b, as TDPBF16PS does (split_amx.c). */
static void multiply_tiles(const uint32_t *a, const line *b, float *c)
{
    for (size_t i = 0; i < HALF; i++) {
        numbers even = {0}, odd = {0}, *sum = (numbers *)(c + i * KS_SPLIT_STRIP);

        for (size_t k = 0; k < PAIRS; k++) {
            even += float_of(a[i * PAIRS + k] << 16) * (numbers)(b[k] << 16);
            odd += float_of(a[i * PAIRS + k] & 0xffff0000) * (numbers)(b[k] & 0xffff0000);
        }
        *sum += even + odd;
    }
}

/* sums += parts p of A times parts q of B, over one step of k. */
static void multiply_parts(const uint32_t *a, const uint32_t *b, size_t p, size_t q, float *sums)
{
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            multiply_tiles(a + (p * 2 + i) * KS_SPLIT_TILE,
                           (const line *)(b + (q * 2 + j) * KS_SPLIT_TILE),
                           sums + (i * KS_SPLIT_STRIP + j) * HALF);
}

void ks_split_plain(size_t steps, const uint32_t *a, const uint32_t *b, float *sums)
{
    static const uint8_t pair[][2] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}};
    const size_t pairs = sizeof pair / sizeof *pair, step = KS_SPLIT_PARTS * 2 * KS_SPLIT_TILE;

    memset(sums, 0, (size_t)KS_SPLIT_STRIP * KS_SPLIT_STRIP * sizeof *sums);
    for (size_t s = 0; s < steps; s++)
        for (size_t i = 0; i < pairs; i++)
            multiply_parts(a + s * step, b + s * step, pair[i][0], pair[i][1], sums);
    for (size_t s = 0; s < steps; s++)
        multiply_parts(a + s * step, b + s * step, 0, 0, sums);
}

/* --- operands: scaling, splitting, packing --- */

/* The rows of op(A), or the columns of op(B). One of the strides is 1. */
struct vectors {
    const float *x;
    size_t along, across; /* between entries of a vector; between vectors                    */
    bool is_a;
};

/* A block of vectors: n of them, from `first`; their entries [k, k + depth). */
struct range {
    size_t first, n, k, depth;
};

struct scales {
    int32_t exponent[KS_SPLIT_STRIP]; /* e: a vector is multiplied by 2^-e */
    float down[KS_SPLIT_STRIP];       /* 2^-e                              */
};

static float power_of_two(int32_t exponent)
{
    return float_of((uint32_t)(exponent + 127) << 23);
}

static const float *start(const struct vectors *v, const struct range *r)
{
    return v->x + r->first * v->across + r->k * v->along;
}

/* Scales of at most 32 vectors; false if one has an entry that is not finite or is too large. */
static bool find_scales(const struct vectors *v, const struct range *r, struct scales *s)
{
    static const int LOWEST = -126, BEYOND = 127; /* exponents */
    const float *x = start(v, r);
    uint32_t most[KS_SPLIT_STRIP] = {0}, all = 0;

    if (v->along == 1)
        for (size_t i = 0; i < r->n; i++)
            for (size_t k = 0; k < r->depth; k++) {
                uint32_t size = bits_of(x[i * v->across + k]) & 0x7fffffff;

                most[i] = size > most[i] ? size : most[i];
            }
    else
        for (size_t k = 0; k < r->depth; k++)
            for (size_t i = 0; i < r->n; i++) {
                uint32_t size = bits_of(x[k * v->along + i]) & 0x7fffffff;

                most[i] = size > most[i] ? size : most[i];
            }
    for (size_t i = 0; i < KS_SPLIT_STRIP; i++) {
        int e = (int)(most[i] >> 23) - 127;

        all = most[i] > all ? most[i] : all;
        e = e < LOWEST ? LOWEST : e < BEYOND ? e : 0;
        s->exponent[i] = e;
        s->down[i] = power_of_two(-e);
    }
    return all < bits_of(power_of_two(BEYOND));
}

/* Takes the next bfloat16 part out of the numbers x, as its bits in the upper half of a uint32_t:
 * x rounded to nearest even, or zero below 2^-56. */
static void take_part(float *restrict x, uint32_t *restrict part)
{
    static const uint32_t LEAST = (uint32_t)(127 - 56) << 23;

    for (size_t i = 0; i < HALF * STEP; i++) {
        uint32_t bits = bits_of(x[i]);

        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        bits = (bits & 0x7fffffff) < LEAST ? 0 : bits;
        x[i] -= float_of(bits);
        part[i] = bits;
    }
}

/* Entry i of a row that takes entries of two rows, those with bit `size` of i from the second,
 * which follow the 16 of the first. */
#define LANE(size, i)    (((i) & (size)) ? 16 + (i) - (size) : (i))
#define LANES_4(size, i) LANE(size, i), LANE(size, i + 1), LANE(size, i + 2), LANE(size, i + 3)
#define LANES(size)      LANES_4(size, 0), LANES_4(size, 4), LANES_4(size, 8), LANES_4(size, 12)
#define LATER(size, i)   (LANE(size, i) + (size))
#define LATER_4(size, i) LATER(size, i), LATER(size, i + 1), LATER(size, i + 2), LATER(size, i + 3)
#define LATER_16(size)   LATER_4(size, 0), LATER_4(size, 4), LATER_4(size, 8), LATER_4(size, 12)

/* Entries of two vectors, chosen by their numbers. GCC before version 12 has a function of its own
 * for that. */
#if __has_builtin(__builtin_shufflevector)
#define CHOOSE(one, two, ...) __builtin_shufflevector(one, two, __VA_ARGS__)
#else
#define CHOOSE(one, two, ...) __builtin_shuffle(one, two, (line){__VA_ARGS__})
#endif

/* Exchanges the off-diagonal blocks of `size` of a 16 x 16 matrix and of its diagonal blocks of
 * twice that size. */
#define EXCHANGE(size)                                                                             \
    for (size_t i = 0; i < PAIRS; i++)                                                             \
        if (!(i & (size))) {                                                                       \
            const line one = row[i], two = row[i + (size)];                                        \
                                                                                                   \
            row[i] = CHOOSE(one, two, LANES(size));                                                \
            row[i + (size)] = CHOOSE(one, two, LATER_16(size));                                    \
        }

/* Transposes a tile in place. */
static void transpose(line *row)
{
    EXCHANGE(8)
    EXCHANGE(4)
    EXCHANGE(2)
    EXCHANGE(1)
}

/* A scaled block, with zeros beyond its edges: [16 vectors, 32 k] if they are contiguous along k,
 * else [32 k, 16 vectors]. */
static void fetch(const struct vectors *v, const struct range *r, const float *down, float *block)
{
    const float *x = start(v, r);

    if (r->n < HALF || r->depth < STEP)
        memset(block, 0, HALF * STEP * sizeof *block);
    if (v->along == 1)
        for (size_t i = 0; i < r->n; i++)
            for (size_t k = 0; k < r->depth; k++)
                block[i * STEP + k] = x[i * v->across + k] * down[i];
    else
        for (size_t k = 0; k < r->depth; k++)
            for (size_t i = 0; i < r->n; i++)
                block[k * HALF + i] = x[k * v->along + i] * down[i];
}

/* Packs all parts of at most 16 vectors over at most 32 values of k, two tiles apart. */
static void pack_tiles(const struct vectors *v, const struct range *r, const float *down,
                       uint32_t *tile)
{
    float block[HALF * STEP] __attribute__((aligned(64)));
    uint32_t part[HALF * STEP] __attribute__((aligned(64)));

    fetch(v, r, down, block);
    for (size_t p = 0; p < KS_SPLIT_PARTS; p++, tile += 2 * KS_SPLIT_TILE) {
        take_part(block, part);
        if (v->along == 1)
            for (size_t i = 0; i < KS_SPLIT_TILE; i++)
                tile[i] = part[2 * i] >> 16 | part[2 * i + 1];
        else
            for (size_t k = 0; k < PAIRS; k++)
                for (size_t i = 0; i < HALF; i++)
                    tile[k * HALF + i] = part[2 * k * HALF + i] >> 16 |
                                         part[(2 * k + 1) * HALF + i];
        if ((v->along == 1) != v->is_a)
            transpose((line *)tile);
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Packs a strip; false, with nothing packed, if it cannot be scaled. */
static bool pack_strip(const struct vectors *v, const struct range *r, struct scales *s,
                       uint32_t *strip)
{
    if (!find_scales(v, r, s))
        return false;
    for (size_t k = 0; k < r->depth; k += STEP)
        for (size_t half = 0; half < 2; half++, strip += KS_SPLIT_TILE) {
            const size_t from = half * HALF;
            struct range tile = {.first = r->first + from,
                                 .n = r->n > from ? least(r->n - from, HALF) : 0,
                                 .k = r->k + k,
                                 .depth = least(r->depth - k, STEP)};

            pack_tiles(v, &tile, s->down + from, strip);
            if (half == 1)
                strip += (KS_SPLIT_PARTS - 1) * 2 * KS_SPLIT_TILE;
        }
    return true;
}

/* --- the product --- */

struct work {
    const struct ks_product *p;
    ks_split_kernel *kernel;
    struct vectors a, b;
    float *c;
    struct scales a_scales, b_scales[STRIPS];
    uint32_t a_strip[STRIP_TILES * KS_SPLIT_TILE] __attribute__((aligned(64)));
    uint32_t b_strips[STRIPS][STRIP_TILES * KS_SPLIT_TILE] __attribute__((aligned(64)));
};

/* Packs columns of B, strip by strip. */
static bool pack_columns(struct work *w, const struct range *columns)
{
    for (size_t j = 0; j < columns->n; j += KS_SPLIT_STRIP) {
        struct range strip = *columns;

        strip.first += j;
        strip.n = least(columns->n - j, KS_SPLIT_STRIP);
        if (!pack_strip(&w->b, &strip, &w->b_scales[j / KS_SPLIT_STRIP],
                        w->b_strips[j / KS_SPLIT_STRIP]))
            return false;
    }
    return true;
}

/* C's block of these rows and columns += sums, scaled back in two steps, so that an intermediate
 * result leaves the range of float32 only if the result does. */
static void add_sums(const struct work *w, const struct range *rows, const struct range *strip,
                     const struct scales *columns, const float *sums)
{
    for (size_t i = 0; i < rows->n; i++) {
        float *c = w->c + (rows->first + i) * w->p->c_stride + strip->first;

        for (size_t j = 0; j < strip->n; j++) {
            const int32_t e = w->a_scales.exponent[i] + columns->exponent[j], half = e / 2;

            c[j] += sums[i * KS_SPLIT_STRIP + j] * power_of_two(half) * power_of_two(e - half);
        }
    }
}

/* A strip of rows times all columns that are packed. */
static void multiply_rows(const struct work *w, const struct range *rows,
                          const struct range *columns)
{
    const size_t steps = (rows->depth + STEP - 1) / STEP;
    float sums[KS_SPLIT_STRIP * KS_SPLIT_STRIP] __attribute__((aligned(64)));

    for (size_t j = 0; j < columns->n; j += KS_SPLIT_STRIP) {
        const size_t s = j / KS_SPLIT_STRIP;
        struct range strip = {.first = columns->first + j,
                              .n = least(columns->n - j, KS_SPLIT_STRIP)};

        w->kernel(steps, w->a_strip, w->b_strips[s], sums);
        add_sums(w, rows, &strip, &w->b_scales[s], sums);
    }
}

/* Multiplies operands that cannot be scaled. */
static void multiply_by_blas(const struct work *w, const struct range *rows,
                             const struct range *columns)
{
    const struct ks_product *p = w->p;

    cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
                p->b_transposed ? CblasTrans : CblasNoTrans, (int)rows->n, (int)columns->n,
                (int)rows->depth, 1, start(&w->a, rows), (int)p->a_stride, start(&w->b, columns),
                (int)p->b_stride, 1, w->c + rows->first * p->c_stride + columns->first,
                (int)p->c_stride);
}

static void multiply_block(struct work *w, const struct range *columns)
{
    const bool packed = pack_columns(w, columns);

    for (size_t i = 0; i < w->p->m; i += KS_SPLIT_STRIP) {
        struct range rows = {i, least(w->p->m - i, KS_SPLIT_STRIP), columns->k, columns->depth};

        if (packed && pack_strip(&w->a, &rows, &w->a_scales, w->a_strip))
            multiply_rows(w, &rows, columns);
        else
            multiply_by_blas(w, &rows, columns);
    }
}

/* Weak: a test replaces it to see small products split, too. */
__attribute__((weak)) bool ks_split_suits(const struct ks_product *p)
{
    return p->m >= HALF && p->n >= HALF && p->k >= HALF;
}

void ks_split_multiply(const struct ks_product *p, ks_split_kernel *kernel, const float *a,
                       const float *b, float *c)
{
    struct work w; /* not initialized: 830 KB */

    w.p = p;
    w.kernel = kernel;
    w.c = c;
    w.a = (struct vectors){.x = a,
                           .along = p->a_transposed ? p->a_stride : 1,
                           .across = p->a_transposed ? 1 : p->a_stride,
                           .is_a = true};
    w.b = (struct vectors){.x = b,
                           .along = p->b_transposed ? 1 : p->b_stride,
                           .across = p->b_transposed ? p->b_stride : 1};
    for (size_t i = 0; i < p->m && p->sets; i++)
        memset(c + i * p->c_stride, 0, p->n * sizeof *c);
    for (size_t k = 0; k < p->k; k += KS_SPLIT_DEPTH)
        for (size_t j = 0; j < p->n; j += STRIPS * KS_SPLIT_STRIP)
            multiply_block(&w, &(struct range){.first = j,
                                               .n = least(p->n - j, STRIPS * KS_SPLIT_STRIP),
                                               .k = k,
                                               .depth = least(p->k - k, KS_SPLIT_DEPTH)});
}
