/* The lines on standard error while an analysis works, and who watches it in the library. */
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "lanczos/jacobi.h"

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
    const size_t n = p->budget.dimension, probes = o->probes + o->gradient_probe + o->complement;
    const size_t null_products = p->space ? ks_null_products(p->space) : 0;

    p->monitor = (struct ks_monitor){.dimension = n,
                                     .products = (o->exact ? n : o->order * probes) +
                                                 null_products +
                                                 (ks_pipeline_measures_rounding(o) ? o->order : 0),
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

/* How many probes were before this one. */
static size_t earlier_probes(const struct ks_spectrum_options *o, uint64_t probe)
{
    return probe == KS_PROBE_BESIDE     ? o->probes
           : probe == KS_PROBE_GRADIENT ? o->probes + o->complement
                                        : (size_t)probe;
}

static ks_status tell_watcher(const struct ks_pipeline *p)
{
    const struct ks_monitor *m = &p->monitor;

    if (!p->watch || p->watch(p->watcher, m->done, m->products) == 0)
        return KS_OK;
    return ks_fail(KS_RUN, "stopped after %zu of %zu products", m->done, m->products);
}

ks_status ks_monitor_step(struct ks_pipeline *p, const struct ks_lanczos *l)
{
    struct ks_monitor *m = &p->monitor;
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    double largest, residual;
    char note[96];

    m->done = m->earlier + m->null_products +
              earlier_probes(p->options, l->probe) * p->options->order + l->steps + m->sampled;
    announce(p);
    if (p->quiet || ks_seconds() - m->progress.printed < NOTE_INTERVAL)
        return tell_watcher(p);
    largest = ks_jacobi_largest(&t, &residual);
    snprintf(note, sizeof note, "largest Ritz value %.6g, residual %.1e", largest, residual);
    ks_progress_update(&m->progress, m->done, note);
    return tell_watcher(p);
}

ks_status ks_monitor_product(void *pipeline, size_t products)
{
    struct ks_pipeline *p = pipeline;
    struct ks_monitor *m = &p->monitor;

    m->done = m->earlier + products + m->sampled;
    announce(p);
    ks_progress_update(&m->progress, m->done, NULL);
    return tell_watcher(p);
}

ks_status ks_monitor_sample(struct ks_pipeline *p, size_t vectors)
{
    struct ks_monitor *m = &p->monitor;
    const size_t earlier = m->sampled;
    char note[96];

    m->sampled = vectors / p->problem.minibatches;
    m->done += m->sampled - earlier;
    snprintf(note, sizeof note, "trace: %zu random vectors, each with one minibatch", vectors);
    ks_progress_update(&m->progress, m->done, note);
    return tell_watcher(p);
}
