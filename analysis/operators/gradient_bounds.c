#include "operators/gradient_bounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "core/number.h"
#include "operators/fold.h"
#include "operators/primal.h"

static bool has_loss(const struct ks_problem *problem, const char *name)
{
    return strcmp(problem->checkpoint->critic.arch->loss.kind->name, name) == 0;
}

bool ks_gradient_bounds_exist(const struct ks_problem *problem)
{
    return (has_loss(problem, "ce") || has_loss(problem, "mse")) &&
           problem->checkpoint->critic.arch->loss.weight > 0;
}

/* --- the gradient in the outputs of every row, g of every minibatch --- */

/* A critic on a minibatch, and their place among the results. */
struct pair {
    size_t critic, n, at;
};

/* |g|, |g_h| and the cosine of theta_h and g_h, where the gradient of the computed loss is `size`
 * times g. */
static void measure_gradient(const struct ks_primal *primal, const struct ks_primal_worker *w,
                             struct pair pair, double size, struct ks_gradient_bounds *b)
{
    const struct ks_problem *problem = primal->problem;
    const struct ks_networks *critics = &problem->checkpoint->critic;
    const double *theta = critics->w + pair.critic * critics->arch->parameters, *g = w->gradient;
    double hidden, radius = sqrt(ks_hidden_dot(problem, theta, theta));

    ks_fold_adjoint(primal->fold, &(struct ks_fold_adjoint){
                                      .w = theta, .bar_dot = w->folded, .out = w->gradient});
    hidden = sqrt(ks_hidden_dot(problem, g, g));
    b->gradient[pair.at] = cblas_dnrm2((int)critics->arch->parameters, g, 1) / size;
    b->hidden[pair.at] = hidden / size;
    b->radial[pair.at] = hidden * radius > 0
                             ? fabs(ks_hidden_dot(problem, theta, g)) / (hidden * radius)
                             : 0;
}

static void measure_pair(const struct ks_primal *primal, const struct ks_primal_worker *w,
                         struct pair pair, struct ks_gradient_bounds *b)
{
    const struct ks_checkpoint *c = primal->problem->checkpoint;
    size_t outputs = c->critic.arch->out;
    /* the computed loss of one row is 1 / (N B) times its weight over the unit (primal.h) */
    double row_weight = primal->output_scale * primal->fold->arch->loss.weight;
    const double *weight = ks_checkpoint_weight(c, pair.n);
    double *output = b->output + pair.at * c->loss_rows, weights = 0; /* their sum */

    memset(w->folded, 0, primal->fold->arch->parameters * sizeof *w->folded);
    for (size_t k = 0; k < primal->microbatches; k++) {
        const struct ks_microbatch m = ks_microbatch(primal, pair.n * primal->microbatches + k);
        const struct ks_primal_pass pass = ks_primal_compute(primal, pair.critic, m, w->block,
                                                             b->squared ? NULL : w->folded);
        const double *f_bar = KS(net_output_bar)(primal->net, pass.adjoint);

        for (size_t i = m.first; i < m.first + m.rows; i++, f_bar += outputs) {
            double w_i = weight ? weight[i] : 1;

            output[i] = w_i > 0 ? cblas_dnrm2((int)outputs, f_bar, 1) / (row_weight * w_i) : 0;
            output[i] *= b->squared ? (double)outputs : 1; /* L = |f - y|^2 / (2 K) */
            weights += w_i;
        }
    }
    if (!b->squared && weights > 0)
        measure_gradient(primal, w, pair, row_weight * weights, b);
}

static ks_status measure_pairs(const struct ks_problem *problem, struct ks_gradient_bounds *bounds)
{
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    size_t all = problem->minibatches;
    size_t first = ks_primal_first_critic(problem), critics = ks_primal_critics(problem);
    KS_OWNED_BY(ks_primal_free) struct ks_primal *primal = NULL;
    struct ks_primal_workers workers = {.n = ks_primal_threads(problem),
                                        .parameters = problem->checkpoint->critic.arch->parameters};

    KS_TRY(ks_primal_new(problem, false, &primal));
    workers.primal = primal;
    KS_TRY(ks_arena_make(&arena, ks_primal_lay_out_workers, &workers));
    if (ks_counting())
        return KS_OK;
#pragma omp parallel for num_threads((int)workers.n) schedule(static, 1)
    for (size_t k = 0; k < workers.n; k++)
        for (size_t e = 0; e < critics; e++)
            for (size_t n = k; n < all; n += workers.n)
                measure_pair(primal, &workers.worker[k], (struct pair){first + e, n, e * all + n},
                             bounds);
    return KS_OK;
}

/* --- singular values --- */

/* Row `number` of KS_JACOBIAN_ROWS, which are spread evenly over all critics and minibatches, and
 * in these over their rows. */
static ks_status measure_jacobian(const struct ks_problem *problem, size_t number,
                                  struct ks_gradient_bounds *b)
{
    size_t all = problem->minibatches, rows = problem->checkpoint->loss_rows;
    size_t pair = number * ks_primal_critics(problem) * all / KS_JACOBIAN_ROWS;
    struct ks_jacobian_row row = {ks_primal_first_critic(problem) + pair / all, pair % all,
                                  (2 * number + 1) * rows / (2 * KS_JACOBIAN_ROWS)};

    return ks_row_jacobian(problem, row, number, &b->jacobian[number], &b->hidden_jacobian[number]);
}

/* The smallest |theta_h| of the critics. */
static double find_hidden_norm(const struct ks_problem *problem)
{
    const struct ks_networks *critics = &problem->checkpoint->critic;
    size_t first = ks_primal_first_critic(problem);
    double smallest = INFINITY;

    for (size_t e = first; e < first + ks_primal_critics(problem); e++) {
        const double *theta = critics->w + e * critics->arch->parameters;

        smallest = fmin(smallest, sqrt(ks_hidden_dot(problem, theta, theta)));
    }
    return smallest;
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct ks_gradient_bounds *b = object;

    b->output = KS_TAKE(arena, b->rows, double);
    b->gradient = KS_TAKE(arena, b->pairs, double);
    b->hidden = KS_TAKE(arena, b->pairs, double);
    b->radial = KS_TAKE(arena, b->pairs, double);
}

ks_status ks_gradient_bounds_measure(const struct ks_problem *problem, struct ks_gradient_bounds *b)
{
    size_t before;

    *b = (struct ks_gradient_bounds){0};
    b->pairs = ks_primal_critics(problem) * problem->minibatches;
    b->rows = b->pairs * problem->checkpoint->loss_rows;
    b->weighted = problem->checkpoint->weight != NULL;
    b->squared = has_loss(problem, "mse");
    b->hidden_parameters = b->squared ? 0 : ks_hidden_parameters(problem);
    b->hidden_norm = ks_counting() ? 0 : find_hidden_norm(problem);
    KS_TRY(ks_arena_make(&b->arena, lay_out, b));
    before = ks_alloc_total();
    KS_TRY(measure_pairs(problem, b));
    for (size_t k = 0; k < KS_JACOBIAN_ROWS && !b->squared; k++)
        KS_TRY(measure_jacobian(problem, k, b));
    ks_alloc_freed_since(before);
    return KS_OK;
}

/* --- statistics --- */

/* NAME_largest and NAME_median of x [n], which is sorted here; n = 0: NaN. */
static void add(const char *name, size_t n, double *x, struct ks_attributes *statistics)
{
    char text[KS_ATTRIBUTE_NAME];
    double median = n > 0 ? ks_median(n, x) : NAN;

    snprintf(text, sizeof text, "%s_largest", name);
    ks_attribute_add_number(statistics, text, n > 0 ? x[n - 1] : NAN);
    snprintf(text, sizeof text, "%s_median", name);
    ks_attribute_add_number(statistics, text, median);
}

/* Removes the entries that are 0; returns how many are left. */
static size_t without_zeros(size_t n, double *x)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        if (x[i] != 0)
            x[left++] = x[i];
    return left;
}

void ks_gradient_bounds_add(struct ks_gradient_bounds *b, struct ks_attributes *statistics)
{
    bool hidden = b->hidden_parameters > 0;
    size_t jacobians = b->squared || b->rows == 0 ? 0 : KS_JACOBIAN_ROWS, rows = b->rows;
    size_t pairs = b->squared ? 0 : b->pairs, hidden_pairs = hidden ? pairs : 0;
    double radial = 0;

    for (size_t i = 0; i < hidden_pairs; i++)
        radial = fmax(radial, b->radial[i]);
    if (b->weighted) {
        rows = without_zeros(rows, b->output);
        pairs = without_zeros(pairs, b->gradient);
        hidden_pairs = without_zeros(hidden_pairs, b->hidden);
    }
    add("logit_gradient", b->squared ? 0 : rows, b->output, statistics);
    add("minibatch_gradient", pairs, b->gradient, statistics);
    add("logit_jacobian", jacobians, b->jacobian, statistics);
    ks_attribute_add_number(statistics, "logit_jacobian_rows",
                            jacobians > 0 ? KS_JACOBIAN_ROWS : NAN);
    add("minibatch_gradient_hidden", hidden_pairs, b->hidden, statistics);
    add("logit_jacobian_hidden", hidden ? jacobians : 0, b->hidden_jacobian, statistics);
    ks_attribute_add_number(statistics, "hidden_norm", hidden ? b->hidden_norm : NAN);
    ks_attribute_add_number(statistics, "hidden_radial_largest", hidden ? radial : NAN);
    add("prediction_error", b->squared ? rows : 0, b->output, statistics);
}
