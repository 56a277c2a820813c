/* The analyzer's lines on standard error while it works: progress, and once the memory of a large
 * run and the time of a long one. */
#ifndef KS_PROGRAM_MONITOR_H
#define KS_PROGRAM_MONITOR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/progress.h"
#include "lanczos/lanczos.h"
#include "program/budget.h"

/* Of one checkpoint. The caller sets the fields up to `quiet`; the others are zero. */
struct ks_monitor {
    const char *checkpoint;
    size_t dimension;     /* dimension of the operator                                */
    size_t products;      /* all products that will be computed                       */
    size_t earlier;       /* products of the layers before this one (--layers)        */
    size_t null_products; /* products before the first Lanczos step of this spectrum  */
    size_t probes;        /* probes with random start vectors                         */
    size_t minibatches;   /* that one product sums over                               */
    size_t order, groups; /* steps per probe; groups of ranks, which take probes in turn */
    const struct ks_budget *budget;
    bool at_most; /* fewer products may be enough: --tolerance */
    bool quiet;
    double started;            /* the clock at the start, then after the first products */
    bool size_said, time_said; /* lines that have been printed                         */
    size_t done;    /* products of Lanczos steps, of the null space and of earlier layers */
    size_t sampled; /* products' worth of random vectors for the trace, of this spectrum  */
    double *work;   /* [KS_JACOBI_WORK order]; owned                         */
    struct ks_progress_bar progress;
};
/* Starts the clock. KS_MEMORY. */
ks_status ks_monitor_start(struct ks_monitor *monitor);
/* Ends the progress, if it was started, and frees `work`. */
void ks_monitor_end(struct ks_monitor *monitor);

/* Callbacks, whose first argument is a struct ks_monitor: after each Lanczos step; after each other
 * product, of which `products` were computed for this spectrum; and after `vectors` random vectors
 * for the trace were multiplied, each by a minibatch. */
void ks_monitor_step(void *monitor, const struct ks_lanczos *lanczos);
void ks_monitor_product(void *monitor, size_t products);
void ks_monitor_sample(void *monitor, size_t vectors);

#endif
