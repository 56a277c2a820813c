/* What an audit computes: the analyses, their sizes and how long they take.
 *
 * The default audit answers in about two minutes for a critic of 100,000 parameters and 50
 * minibatches of 256 rows, on two cores. A thorough one takes three times as long. */
#ifndef KS_AUDIT_PLAN_H
#define KS_AUDIT_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "audit/audit.h"

/* One analysis: the options that differ from the analyzer's defaults. */
struct ks_audit_task {
    const char *operator_name;
    size_t order, batches; /* Lanczos steps; how many minibatches, from the first on */
    bool gradient;         /* with a probe at the gradient                           */
    bool layers;           /* of the block of each layer, in place of the whole      */
    bool trial;            /* for its time alone: without certificates               */
};

/* Task 0 to KS_AUDIT_SPECTRA - 1 is a spectrum, the last one is the table of layers. */
enum { KS_AUDIT_LAYERS = KS_AUDIT_SPECTRA, KS_AUDIT_TASKS };
struct ks_audit_task ks_audit_task(const struct ks_audit *audit, size_t which);
/* Whether the audit has it: half of one minibatch and second moments that are not there cannot be
 * analyzed, and layers may be left out. */
bool ks_audit_has_task(const struct ks_audit *audit, size_t which);

/* How many of the file's minibatches a default audit uses: so many that rows times parameters stay
 * within a limit, which only the critics of large networks exceed, and at least FEWEST. */
size_t ks_audit_minibatches(size_t stored, size_t rows, size_t parameters);

/* Prints which of the analyses begins and the time left. Nothing if the audit is quiet. */
struct ks_audit_clock {
    const struct ks_audit *audit;
    bool done[KS_AUDIT_TASKS];
    double pace, started; /* seconds per product with one minibatch; when the last task began */
};
void ks_audit_begin(struct ks_audit_clock *clock, size_t which);
/* Takes the pace from the task that has ended. */
void ks_audit_end(struct ks_audit_clock *clock, size_t which);

#endif
