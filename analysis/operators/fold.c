/* The map from a critic's parameters to those of the folded critic, its derivative, and the
 * adjoints of both, by the chain rule from the equations in fold.h. */
#include "operators/fold.h"

#include <stdlib.h>
#include <string.h>

#include "net/net.h"

/* Whether a layer behind the first reads the network's input, which a fold would replace. */
static bool reads_input(const struct KS(arch) *arch)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].kind->reads_input)
            return true;
    return false;
}

static bool can_fold(const struct KS(arch) *arch, bool evaluation)
{
    const struct KS(layer) *norm = arch->layer, *dense = norm + 1;

    return arch->n_layers > 1 && norm->kind->affine && norm->frozen == 0 && dense->frozen == 0 &&
           !((evaluation || arch->reads_state) && norm->states > 0) && !dense->normed &&
           dense->param[0].rows == dense->in && !ks_arch_opens(arch, 0) &&
           !ks_arch_opens(arch, 1) && !reads_input(arch) && dense->kind == &KS(dense);
}

static ks_status set_up(struct ks_fold *f)
{
    const struct KS(layer) *norm = f->from->layer, *dense = norm + 1;

    f->n_scale = norm->n_params > 0 ? norm->in : 0;
    f->n_bias = norm->n_params > 1 ? norm->in : 0;
    f->in = dense->in;
    f->out = dense->out;
    f->n_dense_bias = dense->n_params > 1 ? dense->out : 0;
    KS_TRY(ks_alloc(f->n_scale + f->n_bias, sizeof *f->unit, &f->unit));
    for (size_t i = 0; i < f->n_scale; i++)
        f->unit[i] = 1;
    return KS_OK;
}

ks_status ks_fold_new(const struct KS(arch) *arch, bool evaluation, struct ks_fold **fold)
{
    KS_OWNED_BY(ks_fold_free) struct ks_fold *f = NULL;

    *fold = NULL;
    KS_TRY(ks_alloc(1, sizeof *f, &f));
    f->from = arch;
    f->text = arch->text;
    f->inputs = arch->in;
    f->targets = arch->loss.targets;
    f->folded = can_fold(arch, evaluation);
    if (f->folded)
        KS_TRY(set_up(f));
    KS_TRY(ks_fold_arch_f64(f, &f->arch));
    *fold = f, f = NULL;
    return KS_OK;
}

void ks_fold_free(struct ks_fold *fold)
{
    if (!fold)
        return;
    KS(arch_free)(fold->arch);
    free(fold->unit);
    free(fold);
}

size_t ks_fold_cache(const struct ks_fold *fold, size_t rows)
{
    const struct KS(layer) *norm = fold->from->layer;

    return fold->folded ? rows * (norm->in + norm->cache_row) + norm->cache_fixed : 0;
}

void ks_fold_input(const struct ks_fold *fold, size_t rows, const double *x, double *z,
                   double *cache)
{
    const struct KS(layer) *norm = fold->from->layer;
    struct KS(pass) p = {.rows = rows, .x = x, .w = fold->unit, .y = z};
    double *centred = cache;

    if (norm->kind->sums == KS_SUMS_COLUMNS) { /* it subtracts the mean anyway */
        memcpy(centred, x, rows * norm->in * sizeof *x);
        KS(net_centre)(rows, norm->in, centred);
        p.x = centred;
    }
    p.cache = cache + rows * norm->in;
    norm->kind->forward(norm, &p);
}

/* Where the arrays of a parameter vector of `from` start; an absent one has width 0. */
struct layout {
    size_t scale, bias, kernel, dense_bias, rest, n_rest;
    size_t folded_bias, folded_rest; /* in the folded vector, which starts with the kernel */
};

static struct layout layout(const struct ks_fold *f)
{
    struct layout p = {.bias = f->n_scale, .kernel = f->n_scale + f->n_bias};

    p.dense_bias = p.kernel + f->in * f->out;
    p.rest = p.dense_bias + f->n_dense_bias;
    p.n_rest = f->from->parameters - p.rest;
    p.folded_bias = f->in * f->out;
    p.folded_rest = p.folded_bias + f->out;
    return p;
}

/* g_i and b_i; 1 and 0 if the normalizer lacks them. */
static double scale(const struct ks_fold *f, const double *w, size_t i)
{
    return f->n_scale > 0 ? w[i] : 1;
}

static double bias(const struct ks_fold *f, const double *w, size_t i)
{
    return f->n_bias > 0 ? w[f->n_scale + i] : 0;
}

void ks_fold_parameters(const struct ks_fold *f, const double *w, double *folded)
{
    struct layout p = layout(f);

    if (!f->folded) {
        memcpy(folded, w, f->from->parameters * sizeof *w);
        return;
    }
    for (size_t j = 0; j < f->out; j++)
        folded[p.folded_bias + j] = f->n_dense_bias > 0 ? w[p.dense_bias + j] : 0;
    for (size_t i = 0; i < f->in; i++)
        for (size_t j = 0; j < f->out; j++) {
            double kernel = w[p.kernel + i * f->out + j];

            folded[i * f->out + j] = scale(f, w, i) * kernel;
            folded[p.folded_bias + j] += bias(f, w, i) * kernel;
        }
    memcpy(folded + p.folded_rest, w + p.rest, p.n_rest * sizeof *w);
}

void ks_fold_tangent(const struct ks_fold *f, const double *w, const double *v, double *folded_dot)
{
    struct layout p = layout(f);

    if (!f->folded) {
        memcpy(folded_dot, v, f->from->parameters * sizeof *v);
        return;
    }
    for (size_t j = 0; j < f->out; j++)
        folded_dot[p.folded_bias + j] = f->n_dense_bias > 0 ? v[p.dense_bias + j] : 0;
    for (size_t i = 0; i < f->in; i++) {
        double scale_dot = f->n_scale > 0 ? v[i] : 0, bias_dot = bias(f, v, i);

        for (size_t j = 0; j < f->out; j++) {
            double kernel = w[p.kernel + i * f->out + j];
            double kernel_dot = v[p.kernel + i * f->out + j];

            folded_dot[i * f->out + j] = scale_dot * kernel + scale(f, w, i) * kernel_dot;
            folded_dot[p.folded_bias + j] += bias_dot * kernel + bias(f, w, i) * kernel_dot;
        }
    }
    memcpy(folded_dot + p.folded_rest, v + p.rest, p.n_rest * sizeof *v);
}

/* Row i of the kernel, with its scale and bias. The terms in brackets are those with `bar`:
 *
 *   W_bar_ij = g_i W~_bar_dot_ij + b_i c~_bar_dot_j  [+ g'_i W~_bar_ij + b'_i c~_bar_j]
 *   g_bar_i  = sum_j W~_bar_dot_ij W_ij              [+ W~_bar_ij W'_ij]
 *   b_bar_i  = sum_j c~_bar_dot_j W_ij               [+ c~_bar_j W'_ij]
 */
static void adjoint_row(const struct ks_fold *f, const struct layout *p, size_t i,
                        const struct ks_fold_adjoint *a)
{
    size_t row = i * f->out;
    const double *bar = a->bar, *bar_dot = a->bar_dot, *bias_bar_dot = bar_dot + p->folded_bias;
    const double *kernel = a->w + p->kernel + row;
    double *kernel_out = a->out + p->kernel + row, g = scale(f, a->w, i), b = bias(f, a->w, i);
    double scale_out = 0, bias_out = 0;

    for (size_t j = 0; j < f->out; j++) {
        kernel_out[j] = g * bar_dot[row + j] + b * bias_bar_dot[j];
        scale_out += bar_dot[row + j] * kernel[j];
        bias_out += bias_bar_dot[j] * kernel[j];
    }
    if (bar) {
        const double *kernel_dot = a->v + p->kernel + row, *bias_bar = bar + p->folded_bias;
        double g_dot = f->n_scale > 0 ? a->v[i] : 0, b_dot = bias(f, a->v, i);

        for (size_t j = 0; j < f->out; j++) {
            kernel_out[j] += g_dot * bar[row + j] + b_dot * bias_bar[j];
            scale_out += bar[row + j] * kernel_dot[j];
            bias_out += bias_bar[j] * kernel_dot[j];
        }
    }
    if (f->n_scale > 0)
        a->out[i] = scale_out;
    if (f->n_bias > 0)
        a->out[f->n_scale + i] = bias_out;
}

void ks_fold_adjoint(const struct ks_fold *f, const struct ks_fold_adjoint *a)
{
    struct layout p = layout(f);
    const double *bar_dot = a->bar_dot;
    double *out = a->out;

    if (!f->folded) {
        memcpy(out, bar_dot, f->from->parameters * sizeof *out);
        return;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < f->in; i++)
        adjoint_row(f, &p, i, a);
    memcpy(out + p.dense_bias, bar_dot + p.folded_bias, f->n_dense_bias * sizeof *out);
    memcpy(out + p.rest, bar_dot + p.folded_rest, p.n_rest * sizeof *out);
}
