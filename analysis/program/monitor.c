#include "program/monitor.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/jacobi.h"

static const double LONG_RUN = 10;     /* seconds from which a run's time is announced */
static const double LARGE_RUN = 5e8;   /* bytes from which its memory is announced             */
static const double NOTE_INTERVAL = 1; /* seconds between two looks at the largest Ritz value */

/* What the run takes, once. */
static void tell(struct ks_monitor *w)
{
    const struct ks_budget *b = w->budget;

    if (w->quiet || w->told)
        return;
    w->told = true;
    ks_say("%s: %zu products in %zu dimensions; memory: %.2f GB for vectors%s, %.2f GB for "
           "activations, %.2f GB for checkpoint and workspace",
           w->checkpoint, w->products - w->skipped, w->dimension, 1e-9 * (double)b->held,
           b->squeezed ? " (in float32: in float64 they do not fit)" : "", 1e-9 * (double)b->kept,
           1e-9 * (double)b->fixed);
}

ks_status ks_monitor_start(struct ks_monitor *w)
{
    const struct ks_budget *b = w->budget;

    KS_TRY(ks_alloc(KS_JACOBI_WORK * w->order, sizeof *w->work, &w->work));
    ks_progress_start(&w->progress, "products", w->products, w->quiet);
    if (b->squeezed || (double)(b->held + b->kept + b->fixed) > LARGE_RUN)
        tell(w);
    w->started = ks_seconds();
    return KS_OK;
}

void ks_monitor_end(struct ks_monitor *w)
{
    if (w->work)
        ks_progress_end(&w->progress);
    free(w->work);
    w->work = NULL;
}

/* The second product takes as long as all others; the first also pays for fresh memory. But where
 * the first alone takes long, nobody waits for the second. */
static void announce(struct ks_monitor *w, size_t done)
{
    double product = ks_seconds() - w->started;
    double all = product * (double)(w->products - w->skipped);
    bool sure = done == 2 || product >= LONG_RUN;

    if (done > 2 || w->announced)
        return;
    w->started = ks_seconds();
    if (!sure || all < LONG_RUN || w->quiet)
        return;
    w->announced = true;
    tell(w);
    ks_say("%s: %.3g s per product, about %.0f s in all", w->checkpoint, product, all);
}

void ks_monitor_resumed(void *watch, const struct ks_lanczos *l)
{
    struct ks_monitor *w = watch;

    w->skipped += l->steps;
    w->progress.total = w->products - w->skipped;
    if (!w->quiet)
        ks_say("%s: probe %llu: %zu of %zu steps are there", w->checkpoint,
               (unsigned long long)l->probe, l->steps, l->order);
}

void ks_monitor_step(void *watch, const struct ks_lanczos *l)
{
    struct ks_monitor *w = watch;
    size_t probe = l->probe == KS_PROBE_GRADIENT ? w->probes : (size_t)l->probe;
    size_t done = w->before + probe / w->groups * w->order + l->steps - w->skipped;
    double largest, residual;
    char note[96];

    announce(w, done);
    if (w->quiet || ks_seconds() - w->progress.printed < NOTE_INTERVAL)
        return;
    largest = ks_jacobi_largest(l->steps, l->alpha, l->beta, w->work, &residual);
    snprintf(note, sizeof note, "largest Ritz value %.6g, residual %.1e", largest, residual);
    ks_progress_update(&w->progress, done, note);
}

void ks_monitor_product(void *watch, size_t products)
{
    struct ks_monitor *w = watch;

    announce(w, products);
    ks_progress_update(&w->progress, products, NULL);
}
