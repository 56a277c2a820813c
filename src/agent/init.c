/* Initial parameters. Orthogonal ones (Saxe, McClelland & Ganguli, ICLR 2014): Q of the QR
 * factorization of a Gaussian matrix, each column times the sign of R's diagonal entry; without the
 * signs Q would not be uniformly distributed (Mezzadri, Notices of the AMS 54, 2007). */
#include "agent/optim.h"

#include <lapacke.h>
#include <math.h>

static const double LOG_STD_GAIN = 1;

/* The QR factorization of a Gaussian matrix [n, p], column-major, n >= p, as dgeqrf stores it: R in
 * the upper triangle of q, Q as reflectors with factors tau [p]. */
static ks_status random_q(size_t n, size_t p, struct ks_rng *rng, double *q, double *tau)
{
    for (size_t i = 0; i < n * p; i++)
        q[i] = ks_rng_normal(rng);
    if (LAPACKE_dgeqrf(LAPACK_COL_MAJOR, (int)n, (int)p, q, (int)n, tau) != 0)
        return ks_fail(KS_RUN, "LAPACK: dgeqrf failed on a matrix of %zu x %zu", n, p);
    return KS_OK;
}

ks_status KS(orthogonal)(const struct KS(block) *block, double gain, struct ks_rng *rng)
{
    const size_t rows = block->rows, columns = block->columns;
    size_t n = rows > columns ? rows : columns, p = rows > columns ? columns : rows;
    KS_OWNED double *q = NULL, *tau = NULL, *sign = NULL;

    KS_TRY(ks_alloc(n * p, sizeof *q, &q));
    KS_TRY(ks_alloc(p, sizeof *tau, &tau));
    KS_TRY(ks_alloc(p, sizeof *sign, &sign));
    KS_TRY(random_q(n, p, rng, q, tau));
    for (size_t j = 0; j < p; j++)
        sign[j] = q[j * n + j] < 0 ? -gain : gain;
    if (LAPACKE_dorgqr(LAPACK_COL_MAJOR, (int)n, (int)p, (int)p, q, (int)n, tau) != 0)
        return ks_fail(KS_RUN, "LAPACK: dorgqr failed on a matrix of %zu x %zu", n, p);
    for (size_t i = 0; i < rows; i++) /* q, or its transpose if the block is wide */
        for (size_t j = 0; j < columns; j++)
            block->w[i * block->stride + j] = rows > columns ? (real)(sign[j] * q[j * n + i])
                                                             : (real)(sign[i] * q[i * n + j]);
    return KS_OK;
}

static void fill(size_t n, double value, real *w)
{
    for (size_t i = 0; i < n; i++)
        w[i] = (real)value;
}

static void set_column_norms(const struct ks_array *a, const real *matrix, real *norms)
{
    for (size_t j = 0; j < a->columns; j++) {
        double sum = 0;

        for (size_t i = 0; i < a->rows; i++)
            sum += pow((double)matrix[i * a->columns + j], 2);
        norms[j] = (real)sqrt(sum);
    }
}

/* A standard normal cut off at +-2 has this standard deviation: sqrt(1 - 4 phi(2)/(2 Phi(2) - 1)).
 */
static const double CUT_NORMAL_STD = 0.87962566103423978;

static double cut_normal(struct ks_rng *rng)
{
    double x;

    do
        x = ks_rng_normal(rng);
    while (fabs(x) > 2);
    return x;
}

/* Sets w [rows, columns] of that shape to independent entries of a normal distribution of mean 0
 * that is cut off at two of its standard deviations (a draw beyond them is repeated) and then has
 * the variance scale / rows. */
static void truncated_normal(const struct ks_array *shape, double scale, struct ks_rng *rng,
                             real *w)
{
    double std = sqrt(scale / (double)shape->rows) / CUT_NORMAL_STD;

    for (size_t i = 0; i < shape->rows * shape->columns; i++)
        w[i] = (real)(std * cut_normal(rng));
}

void KS(xavier_uniform)(const struct ks_array *shape, double gain, struct ks_rng *rng, real *w)
{
    const double bound = gain * sqrt(6 / (double)(shape->rows + shape->columns));

    for (size_t i = 0; i < shape->rows * shape->columns; i++)
        w[i] = (real)ks_rng_uniform(rng, -bound, bound);
}

/* Whether layer i is in the body of a residual container, which comes after its body. */
static bool in_residual(const struct KS(arch) *arch, size_t i)
{
    for (size_t k = i + 1; k < arch->n_layers; k++)
        if (arch->layer[k].body <= i && arch->layer[k].kind == &KS(residual))
            return true;
    return false;
}

/* The layers side by side that layer i stands for: one for each group of the dense that reads its
 * features. A conv2d is one layer. */
static size_t layers_side_by_side(const struct KS(arch) *arch, size_t i)
{
    if (arch->layer[i].kind != &KS(dense))
        return 1;
    for (size_t k = i + 1; k < arch->n_layers; k++) {
        const struct KS(layer) *reader = &arch->layer[k];

        if (reader->kind == &KS(dense))
            return reader->in == arch->layer[i].out ? reader->in / reader->param[0].rows : 1;
    }
    return 1;
}

static ks_status init_orthogonal(const struct KS(arch) *arch, size_t i, double gain,
                                 struct ks_rng *rng, real *w)
{
    const struct KS(layer) *l = &arch->layer[i];
    const struct ks_array *a = &l->param[0];
    const size_t actions = arch->policy.actions, beside = layers_side_by_side(arch, i);
    struct KS(block) block = {a->rows, a->columns, a->columns, w};

    if (arch->policy.shift && KS(arch_is_head)(arch, l))
        return KS(orthogonal)(&block, arch->policy.gain, rng);
    if (actions == 0 || arch->policy.fixed || !KS(arch_is_head)(arch, l)) {
        block.columns = a->columns / beside;
        for (size_t k = 0; k < beside; k++, block.w += block.columns)
            KS_TRY(KS(orthogonal)(&block, gain, rng));
        return KS_OK;
    }
    block.columns = actions;
    KS_TRY(KS(orthogonal)(&block, gain, rng));
    block.w += actions;
    return KS(orthogonal)(&block, LOG_STD_GAIN, rng);
}

static ks_status init_kernel(const struct KS(arch) *arch, const struct ks_starts *starts, size_t i,
                             struct ks_rng *rng, real *w)
{
    /* Variance times the number of inputs. */
    static const double scales[] = {[KS_HE_NORMAL] = 2, [KS_LECUN_NORMAL] = 1};
    const struct KS(layer) *l = &arch->layer[i];
    const enum ks_start start = in_residual(arch, i) ? starts->blocks : starts->kernels;
    const double gain = starts->gain > 0 ? starts->gain : l->param[0].start;

    if (start == KS_ORTHOGONAL)
        return init_orthogonal(arch, i, gain, rng, w);
    if (start == KS_XAVIER_UNIFORM)
        KS(xavier_uniform)(&l->param[0], gain, rng, w);
    else
        truncated_normal(&l->param[0], scales[start], rng, w);
    return KS_OK;
}

ks_status KS(init_network)(const struct KS(arch) *arch, const struct ks_starts *starts,
                           struct ks_rng *rng, real *w, real *state)
{
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        real *at = w + l->offset, *state_at = state + l->state_offset;

        for (size_t k = 0; k < l->n_params; at += KS(array_size)(&l->param[k]), k++)
            if (l->param[k].orthogonal)
                KS_TRY(init_kernel(arch, starts, i, rng, at));
            else if (l->param[k].column_norms)
                set_column_norms(&l->param[0], w + l->offset, at);
            else
                fill(KS(array_size)(&l->param[k]), l->param[k].start, at);
        for (size_t k = 0; k < l->n_states; state_at += KS(array_size)(&l->state[k]), k++)
            fill(KS(array_size)(&l->state[k]), l->state[k].start, state_at);
    }
    return KS_OK;
}
