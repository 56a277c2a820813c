/* What an analysis takes: how it divides its memory, and its lines on standard error meanwhile. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"
#include "operators/ranks.h"

/* --- memory --- */

/* The vectors in memory beside the operator: the Lanczos basis; the dense matrix; or on rank 0 all
 * vectors of --apply and the file of their products, which is built in memory, and on every rank a
 * factor and its product. Eigenvectors, and on rank 0 their file, come beside the basis; for
 * tolerances of the trace or of lambda_max, a vector and its product for every thread, and one
 * vector more. */
static double held_bytes(const struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    const struct ks_budget *b = &p->budget;
    const struct ks_networks *critic = &p->checkpoint->critic;
    const double full = (double)ks_networks_parameters(critic);
    const size_t n = b->dimension;

    if (p->factors)
        return ((ks_pipeline_leads(p) ? 2 * (double)b->vectors : 1) * full + 2 * (double)n) *
               sizeof(double);
    if (o->eigenvectors > 0)
        return ks_lanczos_bytes(n, o->order, b->basis_f32, ks_ranks_count(&p->problem)) +
               (double)o->eigenvectors * ((double)n + (ks_pipeline_leads(p) ? 2 * full : 0)) *
                   sizeof(double) +
               3 * full * sizeof(double);
    if (o->exact)
        return (double)n * (double)n * sizeof(double);
    return ks_lanczos_bytes(n, o->order, b->basis_f32, ks_ranks_count(&p->problem)) +
           (o->published ? 0 : ks_certificates_bytes(n)) +
           (o->tolerances.n > 0
                ? (2 * (double)omp_get_max_threads() + 1) * (double)n * sizeof(double)
                : 0) +
           (o->gradient_probe ? 2 * full * sizeof(double) : 0);
}

double ks_budget_limit(const struct ks_pipeline *p, size_t fixed)
{
    const struct ks_spectrum_options *o = p->options;
    double left = (double)ks_memory_available("", p->ranks_here > 0 ? p->ranks_here : 1);

    if (o->memory == 0)
        return ((double)fixed + left) / 2;
    return left > 0 ? fmin((double)o->memory, (double)fixed + left) : (double)o->memory;
}

ks_status ks_budget_check(const struct ks_pipeline *p, double bytes, const char *what)
{
    const double limit = ks_budget_limit(p, 0);

    if (bytes <= limit)
        return KS_OK;
    return ks_fail(KS_MEMORY, "%s: --memory: expected at least %.0fK, found %.0fK: %s %.0fK",
                   p->path, ceil(bytes / 1024), floor(limit / 1024), what, ceil(bytes / 1024));
}

/* The file that a refusal names: the file of factors if a single vector of it would fit, else the
 * checkpoint. */
static const char *too_large(const struct ks_pipeline *p, double limit, double held)
{
    const double vector = (double)ks_networks_parameters(&p->checkpoint->critic) * sizeof(double);

    return p->factors && held - 2 * ((double)p->budget.vectors - 1) * vector <= limit ? p->factors
                                                                                      : p->path;
}

static ks_status divide(struct ks_pipeline *p, double all, double held)
{
    struct ks_budget *b = &p->budget;
    const double fixed = (double)b->fixed;

    if (fixed + held > all)
        return ks_fail(KS_MEMORY,
                       "%s: --memory: expected at least %.0fK, found %.0fK: checkpoint and "
                       "operator take %.0fK, %s in %zu dimensions %.0fK",
                       too_large(p, all - fixed, held), ceil((fixed + held) / 1024),
                       floor(all / 1024), ceil(fixed / 1024),
                       p->options->exact ? "the dense matrix with columns"
                       : p->factors      ? "vectors and products"
                                         : "the Lanczos vectors in float32",
                       b->dimension, ceil(held / 1024));
    b->held = (size_t)held;
    b->kept = (size_t)(all - fixed - held);
    return KS_OK;
}

ks_status ks_budget_divide(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_budget *b = &p->budget;
    const double all = ks_budget_limit(p, b->fixed);
    const bool basis = !o->exact && !p->factors, asked = o->published || o->basis_f32;
    double held, short_of;

    b->basis_f32 = false;
    held = held_bytes(p);
    short_of = (double)b->fixed + held > all; /* on how many ranks */
    KS_TRY(ks_ranks_sum(&p->problem, 1, &short_of));
    b->squeezed = basis && !asked && short_of > 0;
    b->basis_f32 = basis && (asked || short_of > 0);
    if (b->basis_f32)
        held = held_bytes(p);
    return divide(p, all, held);
}

/* --- progress --- */

static const double LONG_RUN = 10;     /* seconds: the time of longer runs is announced        */
static const double LARGE_RUN = 5e8;   /* bytes: the memory of larger runs is announced        */
static const double NOTE_INTERVAL = 1; /* seconds between computations of the largest Ritz value */

/* Whether fewer products may be enough. */
static bool ends_early(const struct ks_pipeline *p)
{
    return p->options->tolerances.n > 0 || p->options->eigenvectors > 0;
}

/* Prints, once, the number of products and the memory. */
static void say_size(struct ks_pipeline *p)
{
    const struct ks_budget *b = &p->budget;
    struct ks_monitor *m = &p->monitor;

    if (p->quiet || m->size_said)
        return;
    m->size_said = true;
    ks_say("%s: %s%zu products in %zu dimensions; memory: %.2f GB for vectors%s, %.2f GB for "
           "activations, %.2f GB for checkpoint and workspace",
           p->path, ends_early(p) ? "at most " : "", m->products, m->dimension,
           1e-9 * (double)b->held,
           b->squeezed ? " (in float32, since they do not fit in float64)" : "",
           1e-9 * (double)b->kept, 1e-9 * (double)b->fixed);
}

void ks_monitor_set(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t n = p->budget.dimension, probes = o->probes + o->gradient_probe;
    const size_t null_products = p->space ? ks_null_products(p->space) : 0;

    p->monitor = (struct ks_monitor){.dimension = n,
                                     .products = (o->exact ? n : o->order * probes) + null_products,
                                     .null_products = null_products};
}

void ks_monitor_start(struct ks_pipeline *p)
{
    const struct ks_budget *b = &p->budget;
    struct ks_monitor *m = &p->monitor;

    ks_progress_start(&m->progress, "products", m->products, p->quiet);
    if (b->squeezed || (double)(b->held + b->kept + b->fixed) > LARGE_RUN)
        say_size(p);
    m->started = ks_seconds();
}

void ks_monitor_end(struct ks_pipeline *p)
{
    struct ks_monitor *m = &p->monitor;

    if (m->started > 0)
        ks_progress_end(&m->progress);
    m->started = 0;
}

/* Announces the run's time by the second product: the first is slower, since it touches fresh
 * memory. If the first alone takes long, it is announced by that. */
static void announce(struct ks_pipeline *p)
{
    struct ks_monitor *m = &p->monitor;
    const size_t done = m->done;
    double product = ks_seconds() - m->started;
    double all = product * (double)m->products;
    bool representative = done == 2 || product >= LONG_RUN;

    if (done > 2 || m->time_said)
        return;
    m->started = ks_seconds();
    if (!representative || all < LONG_RUN || p->quiet)
        return;
    m->time_said = true;
    say_size(p);
    ks_say("%s: %.3g s per product, %s %.0f s in all", p->path, product,
           ends_early(p) ? "at most" : "about", all);
}

void ks_monitor_step(struct ks_pipeline *p, const struct ks_lanczos *l)
{
    struct ks_monitor *m = &p->monitor;
    size_t probe = l->probe == KS_PROBE_GRADIENT ? p->options->probes : (size_t)l->probe;
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    double largest, residual;
    char note[96];

    m->done = m->earlier + m->null_products + probe * p->options->order + l->steps + m->sampled;
    announce(p);
    if (p->quiet || ks_seconds() - m->progress.printed < NOTE_INTERVAL)
        return;
    largest = ks_jacobi_largest(&t, &residual);
    snprintf(note, sizeof note, "largest Ritz value %.6g, residual %.1e", largest, residual);
    ks_progress_update(&m->progress, m->done, note);
}

void ks_monitor_product(void *pipeline, size_t products)
{
    struct ks_pipeline *p = pipeline;
    struct ks_monitor *m = &p->monitor;

    m->done = m->earlier + products + m->sampled;
    announce(p);
    ks_progress_update(&m->progress, m->done, NULL);
}

void ks_monitor_sample(struct ks_pipeline *p, size_t vectors)
{
    struct ks_monitor *m = &p->monitor;
    const size_t earlier = m->sampled;
    char note[96];

    m->sampled = vectors / p->problem.minibatches;
    m->done += m->sampled - earlier;
    snprintf(note, sizeof note, "trace: %zu random vectors, each with one minibatch", vectors);
    ks_progress_update(&m->progress, m->done, note);
}
