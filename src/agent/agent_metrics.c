#include "agent/agent_metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <lapacke.h>

#include "agent/actor.h"
#include "core/memory.h"

const struct ks_quantity KS(quantities)[] = {
    {"param_norm", "Euclidean norm of the dense kernels and biases"},
    {"grad_norm", "norm of the gradient of the last optimizer step in these parameters. "
                  "`actor_grad_norm_xqc`: of the last update, at which the actor may have made no "
                  "step"},
    {"effective_lr",
     "norm of the gradient over norm of the parameters, of each kernel and bias that "
     "is not 0; mean weighted by their sizes. `actor_effective_lr_xqc` uses that "
     "other gradient, and the heads for means and log standard deviations are two "
     "layers"},
    {"definition_1_lr", "the learning rate of the last step over `param_norm`: the XQC paper's "
                        "Definition 1"},
    {"feature_norm", "mean norm of a row of activations; without `_NN` of the last hidden layer, "
                     "with `_xqc` summed over all layers, outputs included"},
    {"dormant",
     "share of units whose mean absolute activation is 0 (Sokar et al., ICML 2023); with "
     "`_xqc` of units j with mean_i y_ij / (mean_k y_ik + 1e-6) <= 0 over rows i. Without "
     "`_NN` of all hidden units (`_xqc`: mean over layers, outputs included)"},
    {"feature_rank", "how many singular values of the last hidden layer's activations hold 99% of "
                     "their sum (Kumar et al., ICLR 2021); with `_xqc` at least 1"},
    {NULL, NULL},
};

enum { ALL_LAYERS = -1 };

/* A network whose metrics are computed, and the list to which its quantities are added. The
 * networks of an ensemble share the entries of the list: each adds its values with weight
 * 1/ensemble. */
struct measured {
    bool published; /* the quantities that end in _xqc, with the definitions of XQC's code */
    const char *name;
    const struct KS(net) *net;
    const struct KS(trained) *t; /* its primal block holds the activations of a pass of `net` */
    const real *g;               /* [P]: gradient                                             */
    double rate;                 /* learning rate of the last gradient step; NaN before the first */
    bool updated;                /* an update has been made: activations exist                */
    double weight;
    bool first;    /* the first network of the ensemble: sets the entries instead of adding */
    double *score; /* [largest number of units of a layer]: work space                      */
    struct ks_metric *list;
    size_t n;
};

/* Adds weight * value to the next entry of the list, which is named NAME_QUANTITY_LAYER; without
 * LAYER for ALL_LAYERS. */
static void add(struct measured *s, const char *quantity, int layer, double value)
{
    const char *suffix = s->published ? "_xqc" : "";
    struct ks_metric *m = &s->list[s->n++];

    if (layer == ALL_LAYERS)
        snprintf(m->name, sizeof m->name, "%s_%s%s", s->name, quantity, suffix);
    else
        snprintf(m->name, sizeof m->name, "%s_%s%s_%02d", s->name, quantity, suffix, layer);
    m->value = (s->first ? 0 : m->value) + s->weight * value;
}

static bool is_last(const struct KS(arch) *arch, size_t i)
{
    return i + 1 == arch->n_layers;
}

/* --- norms of parameters and gradients --- */

static double squares(size_t n, const real *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
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

static void norms_add(const struct norms *from, struct norms *to)
{
    to->w2 += from->w2;
    to->g2 += from->g2;
    to->rates += from->rates;
    to->count += from->count;
}

/* The norms of a layer's arrays. Their columns are split into `blocks` equal blocks, each of which
 * counts as an array. */
static struct norms layer_norms(const struct measured *s, const struct KS(layer) *l, size_t blocks)
{
    struct norms sum = {0};
    size_t at = l->offset;

    for (size_t k = 0; k < l->n_params; k++) {
        size_t n = KS(array_size)(&l->param[k]);
        size_t rows = blocks > 1 ? n / l->param[k].columns : 1, width = n / rows;

        for (size_t block = 0; block < blocks; block++) {
            size_t from = at + block * (width / blocks);
            struct norms one = array_norms(rows, width, width / blocks, s->t->w + from,
                                           s->g + from);

            norms_add(&one, &sum);
        }
        at += n;
    }
    return sum;
}

static void report_norms(struct measured *s, int layer, const struct norms *n)
{
    add(s, "param_norm", layer, sqrt(n->w2));
    add(s, "grad_norm", layer, sqrt(n->g2));
    add(s, "effective_lr", layer, n->count > 0 ? n->rates / n->count : 0);
}

/* The published code lists norms only of the actor's gradient, whose head it splits into a layer
 * for the means and one for the log-stds. */
static void list_norms(struct measured *s)
{
    const struct KS(arch) *arch = s->net->arch;
    struct norms all = {0};

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        const bool heads = s->published && is_last(arch, i) && !arch->policy.fixed;
        struct norms n;

        if (l->n_params == 0 || !l->param[0].orthogonal) /* it has no kernel */
            continue;
        n = layer_norms(s, l, heads ? 2 : 1);
        if (!s->published)
            report_norms(s, (int)l->number, &n);
        norms_add(&n, &all);
    }
    if (s->published) {
        add(s, "grad_norm", ALL_LAYERS, s->updated ? sqrt(all.g2) : NAN);
        add(s, "effective_lr", ALL_LAYERS, s->updated ? all.rates / all.count : NAN);
    } else {
        report_norms(s, ALL_LAYERS, &all);
        add(s, "definition_1_lr", ALL_LAYERS, s->rate / sqrt(all.w2));
    }
}

/* --- activations --- */

static const double EPS = 1e-6;

/* The mean norm of the rows of y [rows, d]. */
static double row_norm(size_t rows, size_t d, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += sqrt(squares(d, y + i * d));
    return sum / (double)rows;
}

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

/* Layers: the activation functions; in the published code also the last layer. */
static void list_units(struct measured *s)
{
    const struct KS(arch) *arch = s->net->arch;
    const size_t rows = s->net->rows;
    double norms = 0, shares = 0, layers = 0;
    size_t dormant = 0, units = 0;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        const real *y = s->t->primal + s->net->at[i].y;
        double norm, share;
        size_t silent;

        if (is_last(arch, i) ? !s->published : l->kind->role != KS_ACTIVATION)
            continue;
        silent = s->published ? published_count_dormant(rows, l->out, y, s->score)
                              : count_dormant(rows, l->out, y);
        norm = s->updated ? row_norm(rows, l->out, y) : NAN;
        share = s->updated ? (double)silent / (double)l->out : NAN;
        add(s, "feature_norm", (int)l->number, norm);
        add(s, "dormant", (int)l->number, share);
        norms += norm, shares += share, layers++;
        dormant += silent, units += l->out;
    }
    if (s->published)
        add(s, "feature_norm", ALL_LAYERS, norms);
    add(s, "dormant", ALL_LAYERS,
        s->published              ? shares / layers
        : s->updated && units > 0 ? (double)dormant / (double)units
                                  : NAN);
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

/* *rank: how many of the largest singular values of y [rows, d] make up 99% of the sum of all; NaN
 * if y is not finite. LAPACK reads y as the column-major transpose, which has the same singular
 * values. Fails with KS_MEMORY. */
static ks_status feature_rank(size_t rows, size_t d, const real *y, double *rank)
{
    size_t n = rows < d ? rows : d;
    KS_OWNED double *copy = NULL, *values = NULL;

    KS_TRY(ks_alloc(rows * d, sizeof *copy, &copy));
    KS_TRY(ks_alloc(n, sizeof *values, &values));
    for (size_t i = 0; i < rows * d; i++)
        copy[i] = (double)y[i];
    if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', (int)d, (int)rows, copy, (int)d, values, NULL, 1,
                       NULL, 1) == 0)
        *rank = effective_rank(n, values);
    else
        *rank = NAN; /* the features contain NaN: no rank, but not an error here */
    return KS_OK;
}

/* Of the last layer's input; in the published code of the last activation function, if any, and
 * its count starts at 1. */
static ks_status list_features(struct measured *s)
{
    const struct KS(arch) *arch = s->net->arch;
    size_t i = arch->n_layers, d = 0;
    const real *y = NULL;
    double rank = NAN, norm = NAN;

    while (s->published && i > 0 && arch->layer[i - 1].kind->role != KS_ACTIVATION)
        i--;
    if (s->published && i > 0) {
        y = s->t->primal + s->net->at[i - 1].y;
        d = arch->layer[i - 1].out;
    } else if (!s->published && i > 1) {
        y = KS(net_features)(s->net, s->t->primal);
        d = arch->layer[i - 1].in;
    }
    if (s->updated && y) {
        norm = row_norm(s->net->rows, d, y);
        KS_TRY(feature_rank(s->net->rows, d, y, &rank));
    }
    if (!s->published)
        add(s, "feature_norm", ALL_LAYERS, norm);
    add(s, "feature_rank", ALL_LAYERS, s->published && rank < 1 ? 1 : rank);
    return KS_OK;
}

/* --- networks --- */

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

/* The learning rate of the last step. */
static double last_rate(const struct ks_adam *adam)
{
    return adam->step > 0 ? KS(rate_at)(&adam->rate, adam->step - 1) : NAN;
}

/* Makes the pass from which the metrics follow. The critics' input rows are (s, a); for the
 * published quantities also (s', a'), and agent_recompute_last has made the actor's pass. */
static void forward(struct KS(agent) *a, const struct measured *s, struct KS(trained) *t)
{
    const bool critic = t != &a->actor;
    real *state = s->published && critic ? KS(trained_state)(a->critic_arch, t) : t->state;

    if (critic || !s->published)
        KS(net_forward)(s->net, t->w, state, critic ? a->input : a->s, t->primal);
    else
        bound_log_stds(a);
}

/* The critics and then the actor, whose gradient is actor_g. */
static ks_status list_networks(struct KS(agent) *a, const real *actor_g, struct measured *s)
{
    const size_t critics = a->config.ensemble, start = s->n;

    for (size_t e = 0; e <= critics; e++) {
        const bool critic = e < critics;
        struct KS(trained) *t = critic ? &a->critic[e] : &a->actor;

        if (critic)
            s->n = start;
        s->name = critic ? "critic" : "actor";
        s->net = critic         ? s->published ? a->critic_both : a->critic_eval
                 : s->published ? a->actor_train
                                : a->actor_eval;
        s->t = t;
        s->g = critic ? t->g : actor_g;
        s->rate = last_rate(critic ? &a->critic_adam : &a->actor_adam);
        s->weight = critic ? 1 / (double)critics : 1;
        s->first = e == 0 || !critic;
        if (s->updated)
            forward(a, s, t);
        if (!s->published)
            list_norms(s);
        list_units(s);
        KS_TRY(list_features(s));
        if (s->published && !critic)
            list_norms(s);
    }
    return KS_OK;
}

ks_status KS(agent_metrics)(struct KS(agent) *a, const struct ks_batch *batch,
                            struct ks_metric *list, size_t *n)
{
    const size_t critic = KS(widest)(a->critic_arch), actor = KS(widest)(a->actor_arch);
    struct measured s = {.updated = batch != NULL, .list = list};
    KS_OWNED double *score = NULL;
    KS_OWNED real *actor_g = NULL;

    KS_TRY(ks_alloc(critic > actor ? critic : actor, sizeof *score, &score));
    s.score = score;
    KS_TRY(ks_alloc(a->actor_arch->parameters, sizeof *actor_g, &actor_g));
    if (batch && a->pixels) /* there may have been no update since the last metrics */
        KS(agent_recompute_last)(a, batch, actor_g);
    KS_TRY(list_networks(a, a->actor.g, &s));
    if (batch)
        KS(agent_recompute_last)(a, batch, actor_g);
    s.published = true;
    KS_TRY(list_networks(a, actor_g, &s));
    *n = s.n;
    return KS_OK;
}

/* Per network: 7 quantities of all layers and 5 that end in _xqc; per layer 3 and 2. */
size_t KS(agent_most_metrics)(const struct KS(agent) *a)
{
    return 24 + 5 * (a->critic_arch->n_layers + a->actor_arch->n_layers);
}
