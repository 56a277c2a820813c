/* What the analyzer says while it works: progress, and before a long run one line with its cost. */
#ifndef KS_PROGRAM_MONITOR_H
#define KS_PROGRAM_MONITOR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/progress.h"
#include "lanczos/lanczos.h"
#include "program/budget.h"

/* Of one checkpoint. */
struct ks_monitor {
    const char *checkpoint;
    size_t dimension, products; /* of the operator; in all */
    size_t before;              /* products before the first Lanczos step */
    size_t probes;              /* with random start vectors             */
    size_t order, groups; /* steps per probe; groups of processes, which take turns at probes */
    const struct ks_budget *budget;
    bool quiet;
    /* From here on the watch's own. */
    double started;       /* the clock at the start, then after the first products */
    bool told, announced; /* what the run takes; its time */
    size_t skipped;       /* products whose steps were on disk */
    double *work;         /* [KS_JACOBI_WORK order]; owned     */
    struct ks_progress progress;
};
/* Starts the clock, with the fields up to `quiet` set. */
ks_status ks_monitor_start(struct ks_monitor *watch);
void ks_monitor_end(struct ks_monitor *watch);

/* To be called back, by ks_slq for steps found on disk and after a step, by ks_exact after a
 * product; `watch` is a struct ks_monitor. */
void ks_monitor_resumed(void *watch, const struct ks_lanczos *lanczos);
void ks_monitor_step(void *watch, const struct ks_lanczos *lanczos);
void ks_monitor_product(void *watch, size_t products);

#endif
