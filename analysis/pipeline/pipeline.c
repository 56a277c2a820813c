/* How an analysis goes: ks_pipeline_spectrum reads as the algorithm. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "core/memory.h"
#include "io/h5.h"
#include "lanczos/jacobi.h"
#include "lanczos/slq.h"
#include "net/arch.h"
#include "operators/gradient.h"
#include "statistics/probe.h"

/* --- the null space --- */

/* Tests the null directions by products, which also find dead coordinates. */
static ks_status find_null_space(struct ks_pipeline *p)
{
    ks_status status;
    char text[512];

    ks_monitor_start(p);
    if (!p->space)
        return KS_OK;
    status = ks_null_measure(p->space, p->a, ks_monitor_product, p, &p->null);
    if (status == KS_NUMBER && !p->options->exact) {
        snprintf(text, sizeof text, "%s", ks_error_text());
        status = ks_fail(status, "before Lanczos step 1 of %zu: %s", p->options->order, text);
    }
    if (status == KS_OK)
        status = ks_null_basis_update(p->space, &p->null, &p->basis);
    return status;
}

/* --- nodes and weights --- */

/* A Krylov space that ends early, of dimension below the order. The table of layers has a column
 * for it. */
static void say_breakdowns(const struct ks_pipeline *p)
{
    const struct ks_spectrum *s = p->spectrum;

    for (size_t i = 0; !p->quiet && !p->by_layers && s->steps && i < s->probes; i++)
        if ((size_t)s->steps[i] < s->order)
            ks_say("%s: probe %zu: the Krylov space%s ends after %lld of %zu steps", p->path, i,
                   strcmp(ks_spectrum_start(s, i), "complement") == 0 ? " in the complement" : "",
                   (long long)s->steps[i], s->order);
}

static ks_status count_exact_product(void *context, size_t products)
{
    struct ks_pipeline *p = context;

    return ks_monitor_product(p, (p->space ? ks_null_products(p->space) : 0) + products);
}

/* Room in float64 for the products that follow the steps. */
static void free_operators(struct ks_pipeline *p)
{
    ks_operator_free(p->a);
    p->a = NULL;
    if (p->by_layers)
        return;
    ks_operator_free(p->full);
    p->full = NULL;
}

/* How far rounding moves the published code's kappa, which no bound says: kappa jumps where a Ritz
 * value passes zero. In exact arithmetic its recurrence has the vectors of ks_lanczos_step, so the
 * iteration runs once more, from the same start vector, all in float64. */
static ks_status measure_rounding(struct ks_pipeline *p)
{
    const size_t order = p->options->order, before = p->monitor.null_products + order;
    KS_OWNED_BY(ks_operator_free) struct ks_operator *wide = NULL;
    KS_OWNED_BY(ks_lanczos_free) struct ks_lanczos *l = NULL;
    KS_OWNED double *ritz = NULL;

    free_operators(p);
    ks_count_next();
    KS_TRY(ks_problem_operator(&p->problem, false, p->budget.wide, &wide));
    KS_TRY(ks_lanczos_new(wide, order, false, &l));
    if (ks_counting())
        return KS_OK;
    ks_lanczos_start(l, p->options->seed, 0);
    while (l->steps < order && !l->exhausted) {
        KS_TRY(ks_lanczos_step(l));
        KS_TRY(ks_monitor_product(p, before + l->steps));
    }
    KS_TRY(ks_alloc(3 * order, sizeof *ritz, &ritz)); /* and weights and residuals */
    KS_TRY(ks_jacobi_ritz(&(struct ks_jacobi){l->steps, l->alpha, l->beta}, ritz, ritz + order,
                          ritz + 2 * order));
    p->kappa_f64 = ks_probe_kappa(&(struct ks_probe){.steps = l->steps, .theta = ritz});
    return KS_OK;
}

/* Lanczos from every start vector, or LAPACK. */
static ks_status run_probes(struct ks_pipeline *p)
{
    if (p->options->gradient_probe)
        KS_TRY(ks_gradient_start(&p->problem, &p->gradient));
    if (!p->options->exact) {
        KS_TRY(ks_probes_run(p));
        if (ks_pipeline_measures_rounding(p->options))
            KS_TRY(measure_rounding(p));
    } else {
        KS_TRY(ks_probes_allocate(p, p->options->order));
        KS_TRY(ks_exact(p->a, count_exact_product, p, p->spectrum));
    }
    ks_monitor_end(p);
    if (!ks_pipeline_is_short(p))
        say_breakdowns(p);
    return KS_OK;
}

/* --- products in float64 --- */

/* If float32 products gave all eigenvalues: measures their error, and finds the dead coordinates by
 * float64 products, since in float32 a product may also be zero by underflow. */
static ks_status check_exact(struct ks_pipeline *p)
{
    const struct ks_budget *b = &p->budget;
    const size_t memory = b->wide > b->kept ? b->wide - b->kept : 0;
    KS_OWNED_BY(ks_operator_free) struct ks_operator *wide = NULL;
    KS_CLEARED_BY(ks_null_clear) struct ks_null null = {.is_dead = NULL};

    if (!p->options->products_f32 || !p->space)
        return KS_OK;
    ks_count_next();
    KS_TRY(ks_problem_operator(&p->problem, false, memory, &wide));
    KS_TRY(ks_exact_error(p->a, wide, &p->exact_error));
    KS_TRY(ks_null_measure(p->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&p->null, &null);
    KS_TRY(ks_null_basis_update(p->space, &p->null, &p->basis));
    return KS_OK;
}

/* Products of the vectors behind the bounds; of all eigenvalues, the error of float32 products. */
static ks_status certify(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    size_t others; /* minibatches after the analyzed ones */

    if (ks_pipeline_is_short(p))
        return KS_OK;
    if (o->exact)
        return check_exact(p);
    if (!ks_pipeline_has_certificates(p) || !o->certificates)
        return KS_OK;
    others = p->most_minibatches > 0 ? p->most_minibatches - p->minibatches : 0;
    p->certificates.held_out = others < p->minibatches ? others : p->minibatches;
    if (!p->in_library)
        free_operators(p);
    ks_count_next();
    p->certificates.gradient = p->gradient;
    if (!p->problem.kind)
        return ks_certify_operator(&p->certificates, p->wide ? p->wide : p->a);
    return ks_certify(&p->certificates, &p->problem,
                      p->budget.wide / (size_t)omp_get_max_threads());
}

/* --- statistics --- */

ks_status ks_pipeline_statistics(struct ks_pipeline *p)
{
    const struct ks_statistics_inputs inputs = ks_pipeline_terms(p);

    if (p->options->published && !p->options->exact)
        ks_statistics_unweight(p->spectrum);
    return ks_statistics(p->spectrum, &inputs);
}

ks_status ks_pipeline_measure_noise(struct ks_pipeline *p)
{
    const size_t n = p->problem.minibatches,
                 held = p->options->order / 3 + 16; /* half of a basis */
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    const size_t before = ks_alloc_total();
    double *gram;

    KS_TRY(ks_arena_numbers(&arena, n * n, &gram));
    if (n > 1)
        KS_TRY(ks_gradient_gram(&p->problem, held, gram));
    if (!ks_counting())
        KS_TRY(ks_gradient_noise_find(n, gram, &p->noise));
    ks_arena_free(&arena);
    ks_alloc_freed_since(before);
    return KS_OK;
}

/* With the Hessian alone, since the step is the same with every operator. */
static bool has_step(const struct ks_pipeline *p)
{
    return p->options->certificates && ks_step_exists(&p->problem) &&
           p->problem.kind == ks_operator_kind_find("hessian");
}

ks_status ks_pipeline_measure_gradients(struct ks_pipeline *p)
{
    const struct ks_problem *q = &p->problem;

    p->has_gradients = !p->options->published && q->kind;
    if (!p->has_gradients)
        return KS_OK;
    KS_TRY(ks_pipeline_measure_noise(p));
    if (has_step(p))
        KS_TRY(ks_step_measure(q, ks_learning_rate(p), &p->step));
    if (q->layer < 0 && !q->arrays && ks_gradient_bounds_exist(q))
        KS_TRY(ks_gradient_bounds_measure(q, &p->bounds));
    return KS_OK;
}

static void add_gradients(struct ks_pipeline *p)
{
    const struct ks_problem *q = &p->problem;
    const struct ks_step *step = &p->step;

    if (q->layer < 0 && !q->arrays)
        ks_gradient_bounds_add(&p->bounds, &p->spectrum->statistics);
    ks_gradient_noise_add(&p->noise, &p->spectrum->statistics);
    if (!has_step(p))
        return;
    ks_statistic_add(p->spectrum, KS_STAT_STEP_CURVATURE, "", step->curvature);
    ks_statistic_add(p->spectrum, KS_STAT_STEP_CHANGE, "", step->change);
    ks_statistic_add(p->spectrum, KS_STAT_STEP_CHANGE_QUADRATIC, "", step->quadratic);
    ks_statistic_add(p->spectrum, KS_STAT_CRITICAL_SHARPNESS, "", step->critical);
    ks_statistic_add_interval(p->spectrum, KS_STAT_CRITICAL_SHARPNESS, "", step->in);
}

/* The layer that holds a coordinate of a critic's parameters. */
static const struct KS(layer) *find_layer(const struct KS(arch) *arch, size_t parameter)
{
    for (size_t k = 0; k < arch->n_layers; k++) {
        const struct KS(layer) *l = &arch->layer[k];

        if (parameter >= l->offset && parameter - l->offset < l->parameters)
            return l;
    }
    return NULL;
}

void ks_pipeline_warn(const struct ks_pipeline *p)
{
    double error = ks_statistic_value(p->spectrum, KS_STAT_PRODUCT_ERROR);
    size_t at = p->certificates.worst;
    const struct KS(arch) *arch;
    char name[32] = "?";

    if (p->quiet || !p->options->products_f32 || !(error > KS_WRONG_PRODUCT))
        return;
    arch = p->checkpoint->critic.arch;
    at = p->selection->index ? p->selection->index[at] : at;
    if (find_layer(arch, at % arch->parameters))
        KS(arch_group)(find_layer(arch, at % arch->parameters), name);
    ks_say("%s: float32 products are wrong by %.2g of the largest |eigenvalue|, most of all in "
           "layer %s of critic %zu: use --precision f64",
           p->path, error, name, at / arch->parameters);
}

/* Statistics, density and attributes. */
static ks_status complete(struct ks_pipeline *p)
{
    const struct ks_statistics_inputs inputs = ks_pipeline_terms(p);

    KS_TRY(ks_pipeline_statistics(p));
    if (ks_pipeline_measures_rounding(p->options))
        ks_statistic_add(p->spectrum, KS_STAT_KAPPA_F64, "", p->kappa_f64);
    if (p->problem.kind)
        ks_attributes_sharpness(p);
    KS_TRY(ks_density(p->spectrum));
    if (p->options->tolerances.n > 0)
        KS_TRY(ks_attributes_tolerances(p));
    KS_TRY(ks_attributes_probes(p));
    KS_TRY(ks_attributes_spectrum(p, &inputs));
    if (p->has_gradients)
        add_gradients(p);
    return p->spectrum->statistics.status;
}

/* --- one spectrum --- */

ks_status ks_pipeline_from_operator(struct ks_pipeline *p)
{
    KS_TRY(find_null_space(p));
    KS_TRY(run_probes(p));
    return certify(p);
}

ks_status ks_pipeline_analyze(struct ks_pipeline *p)
{
    ks_monitor_set(p);
    KS_TRY(ks_pipeline_measure_gradients(p));
    KS_TRY(ks_pipeline_from_operator(p));
    KS_TRY(complete(p));
    ks_pipeline_warn(p);
    return KS_OK;
}

/* Back to the state before the problem was posed, with more minibatches. */
static void begin_again(struct ks_pipeline *p)
{
    p->spent += ks_products_spent(p);
    ks_pipeline_clear(p);
    ks_operator_free(p->full);
    p->full = NULL;
    p->problem.minibatches = p->minibatches;
    ks_alloc_freed_since(p->allocated_read);
}

/* Stochastic Lanczos quadrature of A, a curvature of the loss L at the checkpoint's theta:
 *
 *   pose              theta, the minibatches; L(theta), the coordinates of A
 *   measure_gradients their noise, their bounds, the loss along the step of Adam
 *   make_operator     v -> A v
 *   find_null_space   directions u with A u = 0, which the architecture implies
 *   run_probes        A Q = Q T + beta q e' from random start vectors: the eigenvalues of T are the
 *                     nodes, the squared first components of its eigenvectors the weights
 *   measure_rounding  as in the published code: the same recurrence in float64
 *   certify           A y in float64 for the vectors y behind the bounds
 *   grow              with tolerances: again with more minibatches, if the error from few is too
 *                     large; then run_probes ends as soon as that is known
 *   complete          statistics, density, attributes */
static ks_status find_spectrum(struct ks_pipeline *p)
{
    bool grows;

    ks_minibatches_begin(p);
    do {
        KS_TRY(ks_pipeline_pose_loss(p, p->options->layer));
        KS_TRY(ks_pipeline_measure_gradients(p));
        KS_TRY(ks_pipeline_pose_products(p));
        KS_TRY(ks_pipeline_make_operator(p));
        KS_TRY(ks_pipeline_from_operator(p));
        grows = ks_minibatches_grow(p);
        if (grows)
            begin_again(p);
    } while (grows);
    return complete(p);
}

ks_status ks_pipeline_spectrum(struct ks_pipeline *p)
{
    KS_TRY(ks_pipeline_name(p, find_spectrum(p)));
    ks_pipeline_warn(p);
    return KS_OK;
}

/* --- the end --- */

/* Frees what was measured. */
static void clear_results(struct ks_pipeline *p)
{
    ks_monitor_end(p);
    ks_spectrum_free(p->spectrum);
    free(p->gradient);
    ks_certificates_clear(&p->certificates);
    ks_null_basis_free(p->basis);
    ks_null_clear(&p->null);
    ks_arena_free(&p->bounds.arena);
    p->spectrum = NULL, p->gradient = NULL, p->basis = NULL;
    p->certificates = (struct ks_certificates){.n = 0};
    p->null = (struct ks_null){.dimension = 0};
    p->bounds = (struct ks_gradient_bounds){.rows = 0};
    p->has_gradients = false;
    p->trace = (struct ks_trace_samples){.rounds = 0};
    p->early_error = (struct ks_early_error){.steps = 0};
    p->exact_error = 0;
}

static void clear_problem(struct ks_pipeline *p)
{
    ks_operator_free(p->a);
    ks_null_space_free(p->space);
    ks_selection_free(p->selection);
    p->a = NULL, p->space = NULL, p->selection = NULL;
}

void ks_pipeline_clear(struct ks_pipeline *p)
{
    clear_results(p);
    if (!p->in_library)
        clear_problem(p);
}

void ks_pipeline_close(struct ks_pipeline *p)
{
    clear_results(p);
    clear_problem(p);
    ks_operator_free(p->full);
    free(p->rows);
    ks_h5_close(p->factors_file);
    ks_arena_free(&p->vectors.arena);
    if (!p->in_library)
        ks_checkpoint_free(p->checkpoint);
}
