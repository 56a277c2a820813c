#include "agent/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "agent/policy.h"
#include "core/memory.h"

/* The quantities that the published code of XQC records, with its definitions (measure.h). */

static const double EPS = 1e-6;

/* The number of units j of y [rows, d] with mean_i y_ij / (mean_k y_ik + EPS) <= 0. score [d]: work
 * space. */
static size_t published_count_dormant(size_t rows, size_t d, const real *y, double *score)
{
    size_t dormant = 0;

    memset(score, 0, d * sizeof *score);
    for (size_t i = 0; i < rows; i++) {
        double mean = 0;

        for (size_t j = 0; j < d; j++)
            mean += (double)y[i * d + j] / (double)d;
        for (size_t j = 0; j < d; j++)
            score[j] += (double)y[i * d + j] / (mean + EPS);
    }
    for (size_t j = 0; j < d; j++)
        dormant += score[j] <= 0;
    return dormant;
}

static double squares(size_t n, const real *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static const double RANK_SHARE = 0.99;

/* How many of the singular values [n], in descending order, make up RANK_SHARE of their sum. */
static double effective_rank(size_t n, const double *values)
{
    double sum = 0, partial = 0;
    size_t rank = 0;

    for (size_t i = 0; i < n; i++)
        sum += values[i];
    while (rank < n && partial < RANK_SHARE * sum)
        partial += values[rank++];
    return (double)rank;
}

/* Sums over arrays of parameters w and their gradients g. */
struct norms {
    double w2, g2;       /* squared norms                                             */
    double rates, count; /* sum of n |g|/|w| and of n over arrays of n entries, |w| > 0 */
};

/* The norms of the first `columns` columns of arrays [rows, width]. */
static struct norms array_norms(size_t rows, size_t width, size_t columns, const real *w,
                                const real *g)
{
    struct norms n = {0};

    for (size_t i = 0; i < rows; i++) {
        n.w2 += squares(columns, w + i * width);
        n.g2 += squares(columns, g + i * width);
    }
    if (n.w2 > 0) {
        n.count = (double)(rows * columns);
        n.rates = n.count * sqrt(n.g2 / n.w2);
    }
    return n;
}

static bool is_last(const struct KS(arch) *arch, size_t i)
{
    return i + 1 == arch->n_layers;
}

enum { ALL_LAYERS = -1 };

/* Adds weight * value to the next entry of the list, which is named NAME_QUANTITY_LAYER; without
 * LAYER for ALL_LAYERS. */
static void measured_add(struct KS(measured) *s, const char *quantity, int layer, double value)
{
    struct ks_measure *m = &s->list[s->n++];

    if (layer == ALL_LAYERS)
        snprintf(m->name, sizeof m->name, "%s_%s", s->name, quantity);
    else
        snprintf(m->name, sizeof m->name, "%s_%s_%02d", s->name, quantity, layer);
    m->value = (s->first ? 0 : m->value) + s->weight * value;
}

/* The mean norm of the rows of y [rows, d]. */
static double row_norm(size_t rows, size_t d, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += sqrt(squares(d, y + i * d));
    return sum / (double)rows;
}

/* Layers: the activation functions, and the last layer. */
static void measure_units(struct KS(measured) *s, double *score)
{
    const struct KS(arch) *arch = s->net->arch;
    double norms = 0, dormant = 0, layers = 0;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        const real *y = s->t->primal + s->net->at[i].y;
        double norm = NAN, share = NAN;

        if (l->kind->role != KS_ACTIVATION && !is_last(arch, i))
            continue;
        if (s->updated) {
            norm = row_norm(s->net->rows, l->out, y);
            share = (double)published_count_dormant(s->net->rows, l->out, y, score) /
                    (double)l->out;
        }
        measured_add(s, "feature_norm_xqc", (int)l->number, norm);
        measured_add(s, "dormant_xqc", (int)l->number, share);
        norms += norm, dormant += share, layers++;
    }
    measured_add(s, "feature_norm_xqc", ALL_LAYERS, norms);
    measured_add(s, "dormant_xqc", ALL_LAYERS, dormant / layers);
}

/* *rank: how many of the largest singular values of y [rows, d] make up 99% of the sum of all; NaN
 * if y is not finite. LAPACK reads y as the column-major transpose, which has the same singular
 * values. Fails with KS_MEMORY. */
static ks_status feature_rank(size_t rows, size_t d, const real *y, double *rank)
{
    ks_status status = KS_OK;
    size_t n = rows < d ? rows : d;
    double *copy = NULL, *values = NULL;

    KS_GO(ks_alloc(rows * d, sizeof *copy, &copy));
    KS_GO(ks_alloc(n, sizeof *values, &values));
    for (size_t i = 0; i < rows * d; i++)
        copy[i] = (double)y[i];
    if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', (int)d, (int)rows, copy, (int)d, values, NULL, 1,
                       NULL, 1) == 0)
        *rank = effective_rank(n, values);
    else
        *rank = NAN; /* the features contain NaN: no rank, but not an error here */
done:
    free(copy);
    free(values);
    return status;
}

/* The rank of the last activation function, if any. The published count starts at 1. */
static ks_status measure_rank(struct KS(measured) *s)
{
    const struct KS(arch) *arch = s->net->arch;
    size_t i = arch->n_layers;
    double rank = NAN;

    while (i > 0 && arch->layer[i - 1].kind->role != KS_ACTIVATION)
        i--;
    if (s->updated && i > 0)
        KS_TRY(feature_rank(s->net->rows, arch->layer[i - 1].out,
                            s->t->primal + s->net->at[i - 1].y, &rank));
    measured_add(s, "feature_rank_xqc", ALL_LAYERS, rank < 1 ? 1 : rank);
    return KS_OK;
}

static void norms_add(const struct norms *from, struct norms *to)
{
    to->w2 += from->w2;
    to->g2 += from->g2;
    to->rates += from->rates;
    to->count += from->count;
}

/* The norms of a layer's arrays. Their columns are split into `parts` equal parts, each of which
 * counts as an array. */
static struct norms measured_norms(const struct KS(measured) *s, const struct KS(layer) *l,
                                   size_t parts)
{
    struct norms sum = {0};
    size_t at = l->offset;

    for (size_t k = 0; k < l->n_params; k++) {
        size_t n = KS(array_size)(&l->param[k]);
        size_t rows = parts > 1 ? n / l->param[k].columns : 1, width = n / rows;

        for (size_t part = 0; part < parts; part++) {
            size_t from = at + part * (width / parts);
            struct norms one = array_norms(rows, width, width / parts, s->t->w + from, s->g + from);

            norms_add(&one, &sum);
        }
        at += n;
    }
    return sum;
}

/* Whether norms of this layer are measured: it has a kernel. */
static bool has_norms(const struct KS(layer) *l)
{
    return l->n_params > 0 && l->param[0].orthogonal;
}

/* The published actor has a layer for the means and one for the log-stds. */
static void measure_gradient(struct KS(measured) *s)
{
    const struct KS(arch) *arch = s->net->arch;
    struct norms all = {0};

    for (size_t i = 0; i < arch->n_layers && s->updated; i++)
        if (has_norms(&arch->layer[i])) {
            struct norms n = measured_norms(s, &arch->layer[i],
                                            is_last(arch, i) && !arch->policy.fixed ? 2 : 1);

            norms_add(&n, &all);
        }
    measured_add(s, "grad_norm_xqc", ALL_LAYERS, s->updated ? sqrt(all.g2) : NAN);
    measured_add(s, "effective_lr_xqc", ALL_LAYERS, s->updated ? all.rates / all.count : NAN);
}

/* The published code records log-stds within their bounds. */
static void bound_log_stds(const struct KS(agent) *a)
{
    const struct ks_policy *policy = &a->actor_arch->policy;
    real *head = KS(net_output)(a->actor_train, a->actor.primal);
    size_t n = policy->actions;

    for (size_t i = 0; i < a->config.batch && !policy->fixed; i++)
        for (size_t j = n; j < 2 * n; j++)
            head[i * 2 * n + j] = KS(policy_log_std)(policy, head[i * 2 * n + j]);
}

static ks_status measure_critics(struct KS(agent) *a, struct KS(measured) *s, double *score)
{
    size_t start = s->n;

    for (size_t e = 0; e < a->config.ensemble; e++) {
        const struct KS(trained) *c = &a->critic[e];

        if (s->updated)
            KS(net_forward)(a->critic_both, c->w, NULL, a->input, c->primal);
        s->t = c;
        s->first = e == 0;
        s->n = start;
        measure_units(s, score);
        KS_TRY(measure_rank(s));
    }
    return KS_OK;
}

static ks_status measure_actor(struct KS(agent) *a, struct KS(measured) *s, double *score)
{
    if (s->updated)
        bound_log_stds(a);
    measure_units(s, score);
    KS_TRY(measure_rank(s));
    measure_gradient(s);
    return KS_OK;
}

/* ks_agent_measure for the quantities that end in _xqc. */
static ks_status measure_published(struct KS(agent) *a, const struct ks_batch *batch,
                                   struct ks_measure *list, size_t *n)
{
    ks_status status = KS_OK;
    size_t critic = KS(widest)(a->critic_arch), actor = KS(widest)(a->actor_arch);
    struct KS(measured) s = {.updated = batch != NULL, .list = list};
    double *score = NULL;
    real *actor_g = NULL;

    KS_GO(ks_alloc(critic > actor ? critic : actor, sizeof *score, &score));
    KS_GO(ks_alloc(a->actor_arch->parameters, sizeof *actor_g, &actor_g));
    if (batch)
        KS(agent_recompute_last)(a, batch, actor_g);
    s.name = "critic", s.net = a->critic_both, s.weight = 1 / (double)a->config.ensemble;
    KS_GO(measure_critics(a, &s, score));
    s.name = "actor", s.net = a->actor_train, s.weight = 1, s.first = true;
    s.t = &a->actor, s.g = actor_g;
    KS_GO(measure_actor(a, &s, score));
    *n = s.n;
done:
    free(score);
    free(actor_g);
    return status;
}

static void report_norms(struct KS(measured) *s, int layer, const struct norms *n)
{
    measured_add(s, "param_norm", layer, sqrt(n->w2));
    measured_add(s, "grad_norm", layer, sqrt(n->g2));
    measured_add(s, "effective_lr", layer, n->count > 0 ? n->rates / n->count : 0);
}

static void measure_norms(struct KS(measured) *s)
{
    struct norms all = {0};

    for (size_t i = 0; i < s->net->arch->n_layers; i++) {
        const struct KS(layer) *l = &s->net->arch->layer[i];
        struct norms n;

        if (!has_norms(l))
            continue;
        n = measured_norms(s, l, 1);
        report_norms(s, (int)l->number, &n);
        norms_add(&n, &all);
    }
    report_norms(s, ALL_LAYERS, &all);
    measured_add(s, "definition_1_lr", ALL_LAYERS, s->rate / sqrt(all.w2));
}

double KS(unit_activity)(size_t rows, size_t d, const real *y, size_t unit)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += fabs((double)y[i * d + unit]);
    return sum;
}

static size_t count_dormant(size_t rows, size_t d, const real *y)
{
    size_t dormant = 0;

    for (size_t j = 0; j < d; j++)
        dormant += KS(unit_activity)(rows, d, y, j) <= 0;
    return dormant;
}

static void measure_activations(struct KS(measured) *s)
{
    size_t dormant = 0, units = 0, rows = s->net->rows;

    for (size_t i = 0; i + 1 < s->net->arch->n_layers; i++) {
        const struct KS(layer) *l = &s->net->arch->layer[i];
        const real *y = s->t->primal + s->net->at[i].y;
        size_t silent;

        if (l->kind->role != KS_ACTIVATION)
            continue;
        silent = count_dormant(rows, l->out, y);
        measured_add(s, "feature_norm", (int)l->number,
                     s->updated ? row_norm(rows, l->out, y) : NAN);
        measured_add(s, "dormant", (int)l->number,
                     s->updated ? (double)silent / (double)l->out : NAN);
        dormant += silent;
        units += l->out;
    }
    measured_add(s, "dormant", ALL_LAYERS,
                 s->updated && units > 0 ? (double)dormant / (double)units : NAN);
}

static ks_status measure_features(struct KS(measured) *s)
{
    size_t d = s->net->arch->layer[s->net->arch->n_layers - 1].in;
    double rank = NAN, norm = NAN;

    if (s->updated && s->net->arch->n_layers > 1) {
        const real *y = KS(net_features)(s->net, s->t->primal);

        norm = row_norm(s->net->rows, d, y);
        KS_TRY(feature_rank(s->net->rows, d, y, &rank));
    }
    measured_add(s, "feature_norm", ALL_LAYERS, norm);
    measured_add(s, "feature_rank", ALL_LAYERS, rank);
    return KS_OK;
}

/* The learning rate of the last step. */
static double last_rate(const struct ks_adam *adam)
{
    return adam->step > 0 ? KS(rate_at)(&adam->rate, adam->step - 1) : NAN;
}

static ks_status measure(struct KS(measured) *s)
{
    measure_norms(s);
    measure_activations(s);
    return measure_features(s);
}

/* All quantities but those in _xqc. The critics' input rows are (s, a). */
static ks_status measure_agent(struct KS(agent) *a, struct ks_measure *list, size_t *n)
{
    bool updated = a->updates > 0;
    struct KS(measured) s = {.n = 0};

    for (size_t e = 0; e < a->config.ensemble; e++) {
        struct KS(trained) *c = &a->critic[e];

        if (updated)
            KS(net_forward)(a->critic_eval, c->w, c->state, a->input, c->primal);
        s = (struct KS(measured)){.name = "critic",
                                  .net = a->critic_eval,
                                  .t = c,
                                  .g = c->g,
                                  .rate = last_rate(&a->critic_adam),
                                  .updated = updated,
                                  .list = list,
                                  .weight = 1 / (double)a->config.ensemble,
                                  .first = e == 0};
        KS_TRY(measure(&s));
    }
    if (updated)
        KS(net_forward)(a->actor_eval, a->actor.w, a->actor.state, a->s, a->actor.primal);
    s = (struct KS(measured)){.name = "actor",
                              .net = a->actor_eval,
                              .t = &a->actor,
                              .g = a->actor.g,
                              .rate = last_rate(&a->actor_adam),
                              .updated = updated,
                              .list = list,
                              .n = s.n,
                              .weight = 1,
                              .first = true};
    KS_TRY(measure(&s));
    *n = s.n;
    return KS_OK;
}

ks_status KS(agent_measure)(struct KS(agent) *a, const struct ks_batch *batch,
                            struct ks_measure *list, size_t *n)
{
    size_t own, published;

    KS_TRY(measure_agent(a, list, &own));
    KS_TRY(measure_published(a, batch, list + own, &published));
    *n = own + published;
    return KS_OK;
}

/* Per network: 7 quantities of all layers and 5 that end in _xqc; per layer 3 and 2. */
size_t KS(agent_measures)(const struct KS(agent) *a)
{
    return 24 + 5 * (a->critic_arch->n_layers + a->actor_arch->n_layers);
}
