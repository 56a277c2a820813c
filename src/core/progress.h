/* Progress on standard error, and the clock that it goes by. */
#ifndef KS_CORE_PROGRESS_H
#define KS_CORE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* A bar with rate and time left on a terminal, a line now and then elsewhere, nothing if `quiet`.
 * The rate is that of the last minute or so. The first call prints the line of ks_blas_warning, if
 * any. */
struct ks_progress {
    const char *label;
    size_t total, done; /* done: when it was printed last */
    bool quiet;
    double printed, rate; /* seconds; 1/s, 0 before the first print */
};
void ks_progress_start(struct ks_progress *p, const char *label, size_t total, bool quiet);
/* `done` were done before, or at another pace: the rate counts from here on. */
void ks_progress_restart(struct ks_progress *p, size_t done);
/* `done` of total are done; `note` (may be NULL) stands at the end of the line. */
void ks_progress_update(struct ks_progress *p, size_t done, const char *note);
void ks_progress_end(struct ks_progress *p);

/* The line of ks_blas_warning, if any, once a program; for progress that is not a ks_progress. */
void ks_progress_warn(bool quiet);

/* Seconds of a monotonic clock. */
double ks_seconds(void);

#endif
