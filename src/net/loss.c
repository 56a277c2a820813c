/* The losses of a critic. Each has three functions and a row of the table at the end. */
#include "net/loss.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* mse: l = 1/(2 K) sum_k (f_k - t_k)^2,   dl/df = (f - t) / K,   d2l/df2 = I / K (Palenicek et al.,
 * XQC, ICLR 2026, Propositions 1 and 5, for K = 1). */

/* The factor of each output's share in the mean over the outputs. */
static double share_of_output(const struct KS(loss) *l)
{
    return l->weight / (double)l->outputs;
}

static double mse_gradient(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                           real *f_bar)
{
    const double share = share_of_output(l);
    double sum = 0;

    for (size_t i = 0; i < at->rows * l->outputs; i++) {
        real e = at->f[i] - at->t[i];

        sum += 0.5 * (double)e * (double)e;
        if (f_bar)
            f_bar[i] = scale * (real)share * e;
    }
    return share * sum;
}

static void mse_curvature(const struct KS(loss) *l, const struct KS(outputs) *at, real *c)
{
    for (size_t i = 0; i < at->rows * l->outputs; i++)
        c[i] = (real)share_of_output(l);
}

/* ce: l = - sum_k t_k log p_k,   p = softmax(f).   Targets need not be normalized, S = sum_k t_k:
 *
 *   dl/df = S p - t,   d2l/df2 = S (diag p - p p') = diag(c) - c c' / S,   c = S p
 *
 * (Palenicek et al., Propositions 2 and 6, for S = 1). */

static ks_status ce_configure(struct KS(loss) *l, struct ks_line *line)
{
    if (!ks_line_has_option(line, "min") || !ks_line_has_option(line, "max"))
        return ks_line_fail(line, "ce: expected the options min=V and max=V");
    KS_TRY(ks_line_option_number(line, "min", -1e12, 1e12, &l->min));
    KS_TRY(ks_line_option_number(line, "max", -1e12, 1e12, &l->max));
    if (!(l->min < l->max))
        return ks_line_fail(line, "ce: expected min < max, found %g and %g", l->min, l->max);
    if (l->outputs < 2)
        return ks_line_fail(line, "ce: expected a last dense of at least 2 columns, found %zu",
                            l->outputs);
    return KS_OK;
}

/* The place of a largest entry of a row. */
static size_t place_of_largest(size_t n, const real *f)
{
    real most = f[0];
    size_t k = 0;

#pragma omp simd reduction(max : most)
    for (size_t i = 0; i < n; i++)
        most = f[i] > most ? f[i] : most;
    while (k < n - 1 && f[k] != most)
        k++;
    return k;
}

/* Sets e_k = exp(f_k - f_top) for the n entries of a row, where f_top is the largest, so that
 * nothing overflows; e may be f, or NULL. Returns the sum of all e_k but e_top = 1. */
static double row_exponentials(size_t n, const real *f, size_t top, real *e)
{
    const real largest = f[top];
    double sum = 0;

    for (size_t start = 0; start < n; start += KS_EXP_BLOCK) {
        size_t count = n - start < KS_EXP_BLOCK ? n - start : KS_EXP_BLOCK;
        real block[KS_EXP_BLOCK];

        for (size_t i = 0; i < count; i++)
            block[i] = f[start + i] - largest;
        for (size_t i = count; i < KS_EXP_BLOCK; i++)
            block[i] = 0;
        KS(exp_block)(block, block);
        for (size_t i = 0; i < count && e; i++)
            e[start + i] = block[i];
        if (top - start < count)
            block[top - start] = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < count; i++)
            sum += (double)block[i];
    }
    return sum;
}

/* p = softmax(f) for a row; p may be f, or NULL. Returns log sum_k exp(f_k), computed as f_top +
 * log(1 + sum_{k != top} exp(f_k - f_top)). */
static real row_softmax(size_t n, const real *f, real *p)
{
    size_t top = place_of_largest(n, f);
    real largest = f[top], scale;
    double others = row_exponentials(n, f, top, p);

    scale = (real)(1 / (1 + others));
    for (size_t k = 0; k < n && p; k++)
        p[k] *= scale;
    return largest + (real)log1p(others);
}

void KS(softmax)(size_t rows, size_t columns, const real *f, real *p)
{
    for (size_t i = 0; i < rows; i++)
        row_softmax(columns, f + i * columns, p + i * columns);
}

static double ce_gradient(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                          real *f_bar)
{
    size_t n = l->outputs;
    double value = 0;

    for (size_t i = 0; i < at->rows; i++) {
        const real *fi = at->f + i * n, *ti = at->t + i * n;
        real *f_bar_row = f_bar ? f_bar + i * n : NULL, sum = 0;
        real lse = row_softmax(n, fi, f_bar_row);

        for (size_t k = 0; k < n; k++) {
            sum += ti[k];
            value -= (double)ti[k] * (double)(fi[k] - lse);
        }
        for (size_t k = 0; k < n && f_bar_row; k++)
            f_bar_row[k] = scale * (real)l->weight * (sum * f_bar_row[k] - ti[k]);
    }
    return l->weight * value;
}

static void ce_curvature(const struct KS(loss) *l, const struct KS(outputs) *at, real *c)
{
    size_t n = l->outputs;

    KS(softmax)(at->rows, n, at->f, c);
    for (size_t i = 0; i < at->rows; i++) {
        real sum = 0;

        for (size_t k = 0; k < n; k++)
            sum += at->t[i * n + k];
        for (size_t k = 0; k < n; k++)
            c[i * n + k] *= (real)l->weight * sum;
    }
}

/* ce: the expectation q = sum_k p_k z_k of the atoms z_k, from min to max at equal distances;
 * dq/df_k = p_k (z_k - q). */
static void ce_value(const struct KS(loss) *l, const real *f, real *v)
{
    const size_t n = l->outputs;
    const double step = (l->max - l->min) / (double)(n - 1);
    double mean = 0; /* of k: z_k - q = step (k - mean) */

    row_softmax(n, f, v);
    for (size_t k = 0; k < n; k++)
        mean += (double)v[k] * (double)k;
    for (size_t k = 0; k < n; k++)
        v[k] *= (real)(step * ((double)k - mean));
}

/* With e = f - t and d = delta (Huber, Ann. Math. Statist. 35, 1964):
 *
 *   huber_d(e) = e^2 / 2 if |e| <= d, else d (|e| - d / 2);   derivative max(-d, min(e, d)),
 *   second derivative [|e| <= d]
 */
static double huber_value(real e, real d)
{
    double size = fabs((double)e);

    return size <= (double)d ? 0.5 * size * size : (double)d * (size - (double)d / 2);
}

static real huber_slope(real e, real d)
{
    return e > d ? d : e < -d ? -d : e;
}

static bool huber_curved(real e, real d)
{
    return e <= d && e >= -d;
}

/* huber: l = 1/K sum_k huber_delta(f_k - t_k) */

static ks_status huber_configure(struct KS(loss) *l, struct ks_line *line)
{
    l->delta = 1;
    return ks_line_option_number(line, "delta", 1e-12, 1e12, &l->delta);
}

static double huber_gradient(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                             real *f_bar)
{
    const double share = share_of_output(l);
    real delta = (real)l->delta;
    double sum = 0;

    for (size_t i = 0; i < at->rows * l->outputs; i++) {
        real e = at->f[i] - at->t[i];

        sum += huber_value(e, delta);
        if (f_bar)
            f_bar[i] = scale * (real)share * huber_slope(e, delta);
    }
    return share * sum;
}

static void huber_curvature(const struct KS(loss) *l, const struct KS(outputs) *at, real *c)
{
    for (size_t i = 0; i < at->rows * l->outputs; i++)
        c[i] = huber_curved(at->f[i] - at->t[i], (real)l->delta) ? (real)share_of_output(l) : 0;
}

/* quantile (Dabney, Rowland, Bellemare & Munos, AAAI 2018, equation 10), q_i = (2 i + 1) / (2 K):
 *
 *   l = 1/T sum_ij c_ij huber_kappa(f_i - t_j),   c_ij = |q_i - [t_j < f_i]|
 *
 * In that paper T = K. T is another number where the quantiles of an ensemble are pooled and some
 * of them dropped (Kuznetsov et al., TQC, ICML 2020).
 *
 * c_ij jumps only where the Huber loss and its derivative are 0, so both derivatives treat it as a
 * constant. */

static ks_status quantile_configure(struct KS(loss) *l, struct ks_line *line)
{
    l->delta = 1;
    return ks_line_option_number(line, "kappa", 1e-12, 1e12, &l->delta);
}

/* c_ij / T for output i. */
static real quantile_share(const struct KS(loss) *l, size_t i, real f, real t)
{
    real q = (2 * (real)i + 1) / (2 * (real)l->outputs);

    return (t < f ? 1 - q : q) / (real)l->targets;
}

static double quantile_gradient(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                                real *f_bar)
{
    size_t n = l->outputs, targets = l->targets;
    double value = 0;

    for (size_t i = 0; i < at->rows * n; i++) {
        const real fi = at->f[i], *tj = at->t + i / n * targets;
        real slope = 0;

        for (size_t j = 0; j < targets; j++) {
            real share = quantile_share(l, i % n, fi, tj[j]);

            value += (double)share * huber_value(fi - tj[j], (real)l->delta);
            slope += share * huber_slope(fi - tj[j], (real)l->delta);
        }
        if (f_bar)
            f_bar[i] = scale * (real)l->weight * slope;
    }
    return l->weight * value;
}

static void quantile_curvature(const struct KS(loss) *l, const struct KS(outputs) *at, real *c)
{
    size_t n = l->outputs, targets = l->targets;

    for (size_t i = 0; i < at->rows * n; i++) {
        const real fi = at->f[i], *tj = at->t + i / n * targets;
        real curvature = 0;

        for (size_t j = 0; j < targets; j++)
            if (huber_curved(fi - tj[j], (real)l->delta))
                curvature += quantile_share(l, i % n, fi, tj[j]);
        c[i] = (real)l->weight * curvature;
    }
}

/* The mean of the quantiles. */
static void quantile_value(const struct KS(loss) *l, const real *f, real *v)
{
    (void)f;
    for (size_t k = 0; k < l->outputs; k++)
        v[k] = 1 / (real)l->outputs;
}

/* Several heads: l = sum_h l_h(f_h, t_h). The outputs f_h of all heads stand side by side in a row,
 * and so do their targets t_h. The Hessian of l in the outputs is block diagonal. */

/* Gradient and value, or with `curvature` that alone. */
static double each_head(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                        bool curvature, real *out)
{
    double value = 0;

    for (size_t i = 0; i < at->rows; i++) {
        size_t f = i * l->outputs, t = i * l->targets;

        for (size_t h = 0; h < l->n_heads; h++) {
            const struct KS(loss) *head = &l->head[h];
            const struct KS(outputs) row = {1, at->f + f, at->t + t};

            if (curvature)
                head->kind->curvature(head, &row, out + f);
            else
                value += head->kind->gradient(head, &row, scale, out ? out + f : NULL);
            f += head->outputs;
            t += head->targets;
        }
    }
    return value;
}

static double heads_gradient(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                             real *f_bar)
{
    return each_head(l, at, scale, false, f_bar);
}

static void heads_curvature(const struct KS(loss) *l, const struct KS(outputs) *at, real *c)
{
    each_head(l, at, 1, true, c);
}

const struct KS(loss_kind)
    KS(heads) = {.name = "heads", .gradient = heads_gradient, .curvature = heads_curvature};

void KS(loss_name)(const struct KS(loss) *l, size_t size, char *name)
{
    size_t used = 0;

    snprintf(name, size, "%s", l->kind->name);
    for (size_t h = 0; h < l->n_heads && used < size; h++)
        used += (size_t)snprintf(name + used, size - used, "%s%s", h ? "+" : "",
                                 l->head[h].kind->name);
}

double KS(loss_gradient)(const struct KS(loss) *l, const struct KS(outputs) *at,
                         const real *row_weight, real scale, real *f_bar)
{
    double value = 0;

    if (!row_weight)
        return l->kind->gradient(l, at, scale, f_bar);
    for (size_t i = 0; i < at->rows; i++) {
        const struct KS(outputs) row = {1, at->f + i * l->outputs, at->t + i * l->targets};
        real *bar = f_bar ? f_bar + i * l->outputs : NULL;

        value += (double)row_weight[i] * l->kind->gradient(l, &row, scale * row_weight[i], bar);
    }
    return value;
}

/* Multiplying c by a number multiplies the Hessian that it describes, for a distribution too. */
void KS(loss_curvature)(const struct KS(loss) *l, const struct KS(outputs) *at,
                        const real *row_weight, real *c)
{
    l->kind->curvature(l, at, c);
    for (size_t i = 0; i < at->rows * l->outputs && row_weight; i++)
        c[i] *= row_weight[i / l->outputs];
}

/* A loss NAME of the functions NAME_gradient and NAME_curvature, its examples, and what else it
 * has. */
#define KIND(word, ...)                                                                            \
    static const struct KS(loss_kind) word = {.name = #word,                                       \
                                              .trainable = true,                                   \
                                              .gradient = word##_gradient,                         \
                                              .curvature = word##_curvature,                       \
                                              .examples = (const char *const[])__VA_ARGS__}

KIND(mse, {"loss mse", "loss mse weight=0.5", NULL});
KIND(ce, {"loss ce min=-5 max=5", "loss ce min=0 max=3 weight=2", NULL}, .configure = ce_configure,
     .distribution = true, .shift_invariant = true, .value = ce_value);
KIND(huber, {"loss huber", "loss huber delta=0.7 weight=0.5", NULL}, .configure = huber_configure);
KIND(quantile, {"loss quantile", "loss quantile kappa=0.8 weight=3", NULL},
     .configure = quantile_configure, .any_targets = true, .value = quantile_value);

const struct KS(loss_kind) *const KS(loss_kinds)[] = {&mse, &ce, &huber, &quantile, NULL};

void KS(loss_options)(const struct KS(loss) *l, size_t size, char *text)
{
    size_t used = 0, given = 0;

    for (size_t h = 0; h < (l->n_heads ? l->n_heads : 1) && used < size; h++) {
        const struct KS(loss) *head = l->n_heads ? &l->head[h] : l;
        const bool delta = (head->kind == &huber || head->kind == &quantile) && head->delta != 1,
                   weight = head->weight != 1;
        char one[2][32] = {"", ""};

        if (delta)
            snprintf(one[0], sizeof one[0], "%s=%.10g", head->kind == &huber ? "delta" : "kappa",
                     head->delta);
        if (weight)
            snprintf(one[1], sizeof one[1], "%sweight=%.10g", delta ? " " : "", head->weight);
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", h ? "+" : "", one[0], one[1]);
        given += delta + weight;
    }
    if (given == 0)
        *text = '\0';
}

/* What other libraries call these losses. */
static const struct ks_near_alias aliases[] = {{"l2", "mse"},
                                               {"mseloss", "mse weight=2"},
                                               {"huberloss", "huber"},
                                               {"smoothl1", "huber"},
                                               {"smoothl1loss", "huber"},
                                               {"crossentropy", "ce min=V max=V"},
                                               {"crossentropyloss", "ce min=V max=V"},
                                               {"categorical", "ce"},
                                               {"c51", "ce"},
                                               {"hlgauss", "ce"},
                                               {"twohot", "ce"},
                                               {"quantilehuber", "quantile"},
                                               {"qrdqn", "quantile"},
                                               {NULL, NULL}};

ks_status KS(loss_parse)(struct ks_line *line, size_t outputs, struct KS(loss) *loss)
{
    enum { KINDS = sizeof KS(loss_kinds) / sizeof(void *) };
    const char *known[KINDS] = {NULL}, *word = line->n_words > 1 ? line->word[1] : "";

    *loss = (struct KS(loss)){.outputs = outputs, .targets = outputs, .weight = 1};
    for (size_t i = 0; KS(loss_kinds)[i]; i++) {
        known[i] = KS(loss_kinds)[i]->name;
        if (strcmp(word, known[i]) == 0)
            loss->kind = KS(loss_kinds)[i];
    }
    if (!loss->kind)
        return ks_line_unknown(line, "loss", word, known, aliases);
    line->taken[1] = true;
    KS_TRY(ks_line_option_number(line, "weight", 1e-12, 1e12, &loss->weight));
    if (loss->kind->configure)
        KS_TRY(loss->kind->configure(loss, line));
    return ks_line_end(line);
}
