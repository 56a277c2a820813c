/* Lanczos (J. Res. Nat. Bur. Stand. 45, 1950) with full reorthogonalization:
 *
 *   w       = A q_j
 *   h       = q_j' w,                w -= h q_j + beta_{j-1} q_{j-1}    the three-term recurrence
 *   g       = [q_0 .. q_j]' w,       w -= [q_0 .. q_j] g                classical Gram-Schmidt
 *   alpha_j = h + g_j,   beta_j = |w|,   q_{j+1} = w / beta_j
 *
 * In exact arithmetic g would be zero. Without it the outlying eigenvalues reappear as ghosts:
 * test_no_ghosts. The remaining inner products Q' w are about |Q' Q - I| |g|. So one pass is enough
 * while |g| is small relative to the new |w|; otherwise a second one follows, and twice is enough
 * (Daniel, Gragg, Kaufman, Stewart, Math. Comp. 30, 1976; Giraud, Langou, Rozloznik, van den Eshof,
 * Numer. Math. 101, 2005).
 *
 * Apart from the product, a step costs the time to read the basis from memory. So the subtraction
 * of the recurrence and the following Q' w are computed in one sweep over column blocks that stay
 * in the cache: two sweeps per step, four with a second pass.
 *
 * A basis in float32 stores each q_{j+1} rounded. A multiplies the rounded vector, and later
 * vectors are made orthogonal to it. All arithmetic is float64: blocks of the basis are converted
 * in the cache.
 *
 * The published code orthogonalizes in another way: lanczos_published.c. */
#include "lanczos/lanczos.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <omp.h>

#include "core/rng.h"

enum {
    BLOCK = 512,  /* columns of the basis at a time: 91 rows of them are 364 KiB */
    WIDENED = 64, /* the same for a basis in float32: the block in float64 stays in the cache */
    STRIDE = WIDENED +
             8,  /* of rows in that block: a power of two would cause cache-set conflicts */
    SLICE = 8192 /* numbers for which a thread is worthwhile */
};

/* Breakdown is beta <= BREAKDOWN |T| with BREAKDOWN = 10^4 eps. At the end of the Krylov space beta
 * is larger than eps |T|: rounding errors of earlier steps have components outside the space, and
 * the recurrence amplifies them with the number of steps, for every n. Measured: 0.4 eps |T| with 3
 * distinct eigenvalues, 15 with 9, 2000 with 17, 3000 for an operator of rank 11. An iteration that
 * misses the end continues with a vector of rounding errors; one that stops here has Ritz values
 * with errors below 2e-12 |T|. */
static const double BREAKDOWN = 1e4 * DBL_EPSILON;

/* With vectors or products rounded to float32 the errors are of the size of its eps and grow in the
 * same way, so the end is detected reliably only within the first few steps. If it is missed,
 * ghosts follow, with weights of the size of rounding. A larger bound would mistake small
 * eigenvalues for the end; eigenvalues below this bound cannot be distinguished from zero anyway.
 */
static const double BREAKDOWN_F32 = 16 * FLT_EPSILON;

/* A second pass of Gram-Schmidt follows if |g| > SECOND_PASS |w|. */
static const double SECOND_PASS = 0.1;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t slice_count(size_t n)
{
    return smaller((size_t)omp_get_max_threads(), 1 + n / SLICE);
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct ks_lanczos *l = object;
    const size_t vectors = l->rows + 1;

    l->alpha = KS_TAKE(arena, l->order, double);
    l->beta = KS_TAKE(arena, l->order, double);
    l->sums = KS_TAKE(arena, (l->slices + 1) * l->rows, double);
    if (!l->basis_f32) {
        l->basis = KS_TAKE(arena, vectors * l->n, double);
        return;
    }
    l->rounded = KS_TAKE(arena, vectors * l->n, float);
    l->blocks = KS_TAKE(arena, l->slices * l->rows * STRIDE, double);
    l->pair = KS_TAKE(arena, 2 * l->n, double);
}

/* `iterations`, one or two beside each other, without their arrays. */
static struct ks_lanczos sized(size_t n, size_t order, size_t iterations, bool basis_f32)
{
    return (struct ks_lanczos){.n = n,
                               .order = smaller(order, n),
                               .rows = iterations * smaller(order, n),
                               .basis_f32 = basis_f32,
                               .slices = slice_count(n)};
}

double ks_lanczos_bytes(size_t n, size_t order, bool basis_f32)
{
    struct ks_lanczos l = sized(n, order, 1, basis_f32);

    return (double)ks_arena_count(lay_out, &l);
}

static ks_status make(const struct ks_operator *a, size_t order, size_t iterations, bool basis_f32,
                      struct ks_lanczos **lanczos)
{
    struct ks_lanczos *l;
    ks_status status;

    assert(a->n > 0 && order > 0);
    *lanczos = NULL;
    if (a->n > INT_MAX && !ks_counting()) /* a limit on memory is named first */
        return ks_fail(KS_RUN, "Lanczos: %zu parameters are too many: BLAS counts to %d", a->n,
                       INT_MAX);
    KS_TRY(ks_alloc(1, sizeof *l, &l));
    *l = sized(a->n, order, iterations, basis_f32);
    l->a = a;
    status = ks_arena_make(&l->arena, lay_out, l);
    if (status != KS_OK)
        free(l);
    else
        *lanczos = l;
    return status;
}

ks_status ks_lanczos_new(const struct ks_operator *a, size_t order, bool basis_f32,
                         struct ks_lanczos **lanczos)
{
    return make(a, order, 1, basis_f32, lanczos);
}

ks_status ks_lanczos_new_for_two(const struct ks_operator *a, size_t order, bool basis_f32,
                                 struct ks_lanczos **lanczos)
{
    return make(a, order, 2, basis_f32, lanczos);
}

void ks_lanczos_free(struct ks_lanczos *l)
{
    if (!l)
        return;
    ks_arena_free(&l->arena);
    free(l);
}

/* The memory in which a row of the basis is computed in float64: the row itself, or scratch before
 * it is rounded. */
static double *work(const struct ks_lanczos *l, size_t row)
{
    return l->basis_f32 ? l->pair + l->n : l->basis + row * l->n;
}

const double *ks_lanczos_widened(const struct ks_lanczos *l, size_t row)
{
    if (!l->basis_f32)
        return l->basis + row * l->n;
#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++)
        for (size_t i = ks_lanczos_slice(l, t); i < ks_lanczos_slice(l, t + 1); i++)
            l->pair[i] = (double)l->rounded[row * l->n + i];
    return l->pair;
}

/* The norm of a vector from the norms of its slices. The check is needed since dnrm2 of a NaN is
 * not always NaN. */
static double finite_norm(size_t slices, const double *norms, size_t stride)
{
    for (size_t t = 0; t < slices; t++)
        if (!isfinite(norms[t * stride]))
            return NAN;
    return cblas_dnrm2((int)slices, norms, (int)stride);
}

/* |v| from the slices of all threads, without overflow or underflow; not finite if v is
 * not finite. */
static double norm(const struct ks_lanczos *l, const double *v)
{
    double *own = l->sums;

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        size_t start = ks_lanczos_slice(l, t), end = ks_lanczos_slice(l, t + 1);

        own[t * l->rows] = cblas_dnrm2((int)(end - start), v + start, 1);
    }
    return finite_norm(l->slices, own, l->rows);
}

/* The row = w / divisor, w = work(l, row). */
static void store(struct ks_lanczos *l, size_t row, double divisor)
{
    double *w = work(l, row);

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++)
        for (size_t i = ks_lanczos_slice(l, t); i < ks_lanczos_slice(l, t + 1); i++) {
            w[i] /= divisor;
            if (l->basis_f32)
                l->rounded[row * l->n + i] = (float)w[i];
        }
}

static void restart(struct ks_lanczos *l, uint64_t seed, uint64_t probe, size_t kept)
{
    l->seed = seed;
    l->probe = probe;
    l->kept = kept;
    l->steps = 0;
    l->exhausted = false;
}

/* The Gaussian vector of (seed, probe), in q. */
static void draw(const struct ks_lanczos *l, double *q)
{
#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        struct ks_rng rng = ks_rng_start(l->seed, l->probe);

        rng.drawn = ks_lanczos_slice(l, t);
        for (size_t i = ks_lanczos_slice(l, t); i < ks_lanczos_slice(l, t + 1); i++)
            q[i] = ks_rng_normal(&rng);
    }
}

void ks_lanczos_start(struct ks_lanczos *l, uint64_t seed, uint64_t probe)
{
    double *q = work(l, 0);

    restart(l, seed, probe, 0);
    draw(l, q);
    l->start_norm = norm(l, q);
    store(l, 0, l->start_norm);
}

ks_status ks_lanczos_start_at(struct ks_lanczos *l, const double *v)
{
    double *q = work(l, 0);

    restart(l, 0, KS_PROBE_GRADIENT, 0);
    memcpy(q, v, l->n * sizeof *q);
    l->start_norm = norm(l, q);
    if (!isfinite(l->start_norm) || l->start_norm == 0)
        return ks_fail(KS_NUMBER, "Lanczos: the start vector has norm %g", l->start_norm);
    store(l, 0, l->start_norm);
    return KS_OK;
}

/* Adjacent columns of the basis in float64, as a matrix whose rows are `stride` numbers apart. */
struct columns {
    const double *q;
    size_t count, stride;
};

/* The next columns of thread t, from column `at`, for the first `rows` basis vectors: in the basis
 * itself, or converted to float64 in the block of this thread. */
static struct columns next_columns(const struct ks_lanczos *l, size_t t, size_t at, size_t rows)
{
    size_t left = ks_lanczos_slice(l, t + 1) - at, count = smaller(WIDENED, left);
    double *block = l->blocks + t * l->rows * STRIDE;

    if (!l->basis_f32)
        return (struct columns){l->basis + at, smaller(BLOCK, left), l->n};
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < count; k++)
            block[i * STRIDE + k] = (double)l->rounded[i * l->n + at + k];
    return (struct columns){block, count, STRIDE};
}

/* result [count] = the sums over all threads of what they left in l->sums; in a fixed order, for
 * the same bits. */
static void sum_slices(const struct ks_lanczos *l, size_t count, double *result)
{
    for (size_t i = 0; i < count; i++) {
        result[i] = 0;
        for (size_t t = 0; t < l->slices; t++)
            result[i] += l->sums[t * l->rows + i];
    }
}

/* q' w. */
static double inner_product(const struct ks_lanczos *l, const double *q, const double *w)
{
    double result;

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        size_t start = ks_lanczos_slice(l, t), end = ks_lanczos_slice(l, t + 1);

        l->sums[t * l->rows] = cblas_ddot((int)(end - start), q + start, 1, w + start, 1);
    }
    sum_slices(l, 1, &result);
    return result;
}

/* What is taken from a vector: [q_from .. q_{rows-1}] times `c` [rows - from]. */
struct combination {
    size_t from;
    const double *c;
};
static const struct combination NOTHING = {0, NULL};

/* One sweep over Q = [q_0 .. q_{rows-1}]: w -= the combination, then project = Q' w. `subtract.c`
 * or `project` [rows] may be NULL and is then left out. */
static void sweep(const struct ks_lanczos *l, size_t rows, double *w, struct combination subtract,
                  double *project)
{
    double *sums = l->sums;

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        size_t end = ks_lanczos_slice(l, t + 1);
        double *mine = sums + t * l->rows;
        struct columns c;

        for (size_t i = 0; i < rows; i++)
            mine[i] = 0;
        for (size_t at = ks_lanczos_slice(l, t); at < end; at += c.count) {
            c = next_columns(l, t, at, rows);
            if (subtract.c)
                cblas_dgemv(CblasRowMajor, CblasTrans, (int)(rows - subtract.from), (int)c.count,
                            -1, c.q + subtract.from * c.stride, (int)c.stride, subtract.c, 1, 1,
                            w + at, 1);
            if (project)
                cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)rows, (int)c.count, 1, c.q,
                            (int)c.stride, w + at, 1, 1, mine, 1);
        }
    }
    if (project)
        sum_slices(l, rows, project);
}

/* Counts step j, whose alpha and beta are set, and tests for breakdown. */
static void count_step(struct ks_lanczos *l, size_t j)
{
    const bool rounded = l->basis_f32 || l->products_f32;
    const double bound = l->published ? 0 : rounded ? BREAKDOWN_F32 : BREAKDOWN;
    /* the Frobenius norm of the Jacobi matrix */
    const double size = hypot(cblas_dnrm2((int)j + 1, l->alpha, 1),
                              sqrt(2) * cblas_dnrm2((int)j, l->beta, 1));

    l->steps = j + 1;
    l->exhausted = l->kept + l->steps == l->n || l->beta[j] <= bound * size;
}

/* From q = q_j and A q_j in work(l, kept + j + 1) to alpha_j, beta_j and beta_j q_{j+1} in the same
 * place. Beside V, g also has V' A q_j, which is not zero: V is not invariant. */
static void orthogonalize(struct ks_lanczos *l, size_t j, const double *q)
{
    const size_t row = l->kept + j;
    double *w = work(l, row + 1), *g = l->sums + l->slices * l->rows;
    double recurrence[] = {j > 0 ? l->beta[j - 1] : 0, inner_product(l, q, w)};

    l->alpha[j] = recurrence[1];
    sweep(l, row + 1, w, (struct combination){row - (j > 0), recurrence + (j == 0)}, g);
    for (int pass = 1; pass <= 2; pass++) {
        sweep(l, row + 1, w, (struct combination){0, g}, NULL);
        l->alpha[j] += g[row];
        l->beta[j] = norm(l, w);
        if (cblas_dnrm2((int)row + 1, g, 1) <= SECOND_PASS * l->beta[j])
            break;
        if (pass == 1)
            sweep(l, row + 1, w, NOTHING, g);
    }
}

ks_status ks_lanczos_step(struct ks_lanczos *l)
{
    size_t j = l->steps;
    const double *q = ks_lanczos_widened(l, l->kept + j);
    double *w = work(l, l->kept + j + 1);

    assert(j < l->order && !l->exhausted);
    KS_TRY(ks_operator_apply(l->a, q, w));
    if (!isfinite(norm(l, w)))
        return ks_fail(KS_NUMBER,
                       "Lanczos step %zu of %zu (probe %llu): the product holds a NaN or "
                       "an infinity",
                       j + 1, l->order, (unsigned long long)l->probe);
    if (l->published)
        ks_lanczos_published_step(l, w);
    else
        orthogonalize(l, j, q);
    if (!isfinite(l->alpha[j]) || !isfinite(l->beta[j]))
        return ks_fail(KS_NUMBER, "Lanczos step %zu of %zu (probe %llu): overflow", j + 1, l->order,
                       (unsigned long long)l->probe);
    count_step(l, j);
    if (!l->exhausted && !l->published)
        store(l, l->kept + j + 1, l->beta[j]);
    return KS_OK;
}

/* A sweep takes at most `order` rows, so the last vector of a full basis is added separately. */
void ks_lanczos_combine(const struct ks_lanczos *l, size_t rows, const double *c, double *out)
{
    size_t swept = smaller(rows, l->order);
    double *negative = l->sums + l->slices * l->rows;

    for (size_t j = 0; j < swept; j++)
        negative[j] = -c[j];
    for (size_t i = 0; i < l->n; i++)
        out[i] = 0;
    sweep(l, swept, out, (struct combination){0, negative}, NULL);
    if (rows > swept)
        cblas_daxpy((int)l->n, c[swept], ks_lanczos_widened(l, swept), 1, out, 1);
}

void ks_lanczos_remove(const struct ks_lanczos *l, double *v)
{
    const size_t rows = l->kept + l->steps;
    double *h = l->sums + l->slices * l->rows;

    sweep(l, rows, v, NOTHING, h);
    sweep(l, rows, v, (struct combination){0, h}, NULL);
}

/* Twice, as what the first time leaves of rounding is not small where the norm falls. */
void ks_lanczos_start_beside(struct ks_lanczos *l, uint64_t seed)
{
    double *q = work(l, l->steps);

    assert(l->kept == 0 && l->steps < l->n && l->rows >= l->steps + l->order && !l->published);
    l->seed = seed;
    l->probe = KS_PROBE_BESIDE;
    draw(l, q);
    ks_lanczos_remove(l, q);
    ks_lanczos_remove(l, q);
    restart(l, seed, KS_PROBE_BESIDE, l->steps);
    l->start_norm = norm(l, q);
    store(l, l->kept, l->start_norm);
}
