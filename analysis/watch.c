#include <stdio.h>
#include <stdlib.h>

#include "ks/analysis.h"
#include "ks/jacobi.h"
#include "ks/memory.h"

static const double LONG_RUN = 10;     /* seconds from which a run's cost is announced */
static const double NOTE_INTERVAL = 1; /* seconds between two looks at the largest Ritz value */

ks_status ks_watch_start(struct ks_watch *w)
{
    KS_TRY(ks_alloc(2 * w->order, sizeof *w->work, &w->work));
    ks_progress_start(&w->progress, "products", w->products, w->quiet);
    w->started = ks_seconds();
    return KS_OK;
}

void ks_watch_end(struct ks_watch *w)
{
    if (w->work)
        ks_progress_end(&w->progress);
    free(w->work);
    w->work = NULL;
}

/* The second product's time is that of all others: the first one also pays for fresh memory. */
static void announce(struct ks_watch *w, size_t done)
{
    double product = ks_seconds() - w->started, all = product * (double)w->products;

    if (done == 1)
        w->started = ks_seconds();
    if (done != 2)
        return;
    if (w->quiet || all < LONG_RUN)
        return;
    fprintf(stderr,
            "%s: %zu products in %zu dimensions, %.3g s each, about %.0f s; memory: %.2f GB for "
            "vectors, up to %.2f GB for activations\n",
            w->checkpoint, w->products, w->dimension, product, all, 1e-9 * (double)w->held,
            1e-9 * (double)w->kept);
}

void ks_watch_step(void *watch, const struct ks_lanczos *l)
{
    struct ks_watch *w = watch;
    size_t done = (size_t)l->probe * w->order + l->steps;
    char note[64];

    announce(w, done);
    if (w->quiet || ks_seconds() - w->progress.printed < NOTE_INTERVAL)
        return;
    snprintf(note, sizeof note, "largest %.4g",
             ks_jacobi_largest(l->steps, l->alpha, l->beta, w->work));
    ks_progress_update(&w->progress, done, note);
}

void ks_watch_product(void *watch, size_t products)
{
    struct ks_watch *w = watch;

    announce(w, products);
    ks_progress_update(&w->progress, products, NULL);
}
