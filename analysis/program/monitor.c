#include "program/monitor.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/jacobi.h"

static const double LONG_RUN = 10;     /* seconds: the time of longer runs is announced        */
static const double LARGE_RUN = 5e8;   /* bytes: the memory of larger runs is announced        */
static const double NOTE_INTERVAL = 1; /* seconds between computations of the largest Ritz value */

/* Prints, once, the number of products and the memory. */
static void say_size(struct ks_monitor *m)
{
    const struct ks_budget *b = m->budget;

    if (m->quiet || m->size_said)
        return;
    m->size_said = true;
    ks_say("%s: %s%zu products in %zu dimensions; memory: %.2f GB for vectors%s, %.2f GB for "
           "activations, %.2f GB for checkpoint and workspace",
           m->checkpoint, m->at_most ? "at most " : "", m->products, m->dimension,
           1e-9 * (double)b->held,
           b->squeezed ? " (in float32, since they do not fit in float64)" : "",
           1e-9 * (double)b->kept, 1e-9 * (double)b->fixed);
}

ks_status ks_monitor_start(struct ks_monitor *m)
{
    const struct ks_budget *b = m->budget;

    KS_TRY(ks_alloc(KS_JACOBI_WORK * m->order, sizeof *m->work, &m->work));
    ks_progress_start(&m->progress, "products", m->products, m->quiet);
    if (b->squeezed || (double)(b->held + b->kept + b->fixed) > LARGE_RUN)
        say_size(m);
    m->started = ks_seconds();
    return KS_OK;
}

void ks_monitor_end(struct ks_monitor *m)
{
    if (m->work)
        ks_progress_end(&m->progress);
    free(m->work);
    m->work = NULL;
}

/* Announces the run's time by the second product: the first is slower, since it touches fresh
 * memory. If the first alone takes long, it is announced by that. */
static void announce(struct ks_monitor *m, size_t done)
{
    double product = ks_seconds() - m->started;
    double all = product * (double)m->products;
    bool representative = done == 2 || product >= LONG_RUN;

    if (done > 2 || m->time_said)
        return;
    m->started = ks_seconds();
    if (!representative || all < LONG_RUN || m->quiet)
        return;
    m->time_said = true;
    say_size(m);
    ks_say("%s: %.3g s per product, %s %.0f s in all", m->checkpoint, product,
           m->at_most ? "at most" : "about", all);
}

void ks_monitor_step(void *monitor, const struct ks_lanczos *l)
{
    struct ks_monitor *m = monitor;
    size_t probe = l->probe == KS_PROBE_GRADIENT ? m->probes : (size_t)l->probe;
    size_t done = m->earlier + m->null_products + probe / m->groups * m->order + l->steps +
                  m->sampled;
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    double largest, residual;
    char note[96];

    m->done = done;
    announce(m, done);
    if (m->quiet || ks_seconds() - m->progress.printed < NOTE_INTERVAL)
        return;
    largest = ks_jacobi_largest(&t, m->work, &residual);
    snprintf(note, sizeof note, "largest Ritz value %.6g, residual %.1e", largest, residual);
    ks_progress_update(&m->progress, done, note);
}

void ks_monitor_product(void *monitor, size_t products)
{
    struct ks_monitor *m = monitor;

    m->done = m->earlier + products + m->sampled;
    announce(m, m->done);
    ks_progress_update(&m->progress, m->done, NULL);
}

void ks_monitor_sample(void *monitor, size_t vectors)
{
    struct ks_monitor *m = monitor;
    const size_t earlier = m->sampled;
    char note[96];

    m->sampled = vectors / m->minibatches;
    m->done += m->sampled - earlier;
    snprintf(note, sizeof note, "trace: %zu random vectors, each with one minibatch", vectors);
    ks_progress_update(&m->progress, m->done, note);
}
