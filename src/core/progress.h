/* Progress on standard error, and a monotonic clock. */
#ifndef KS_CORE_PROGRESS_H
#define KS_CORE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Shows a progress bar with rate and time left on a terminal; otherwise prints a line every ten
 * seconds; nothing if `quiet`. The rate is averaged over about the last minute. The first start
 * also prints ks_blas_warning's line, if any. */
struct ks_progress_bar {
    const char *label;
    size_t total, done; /* done: as of the last print */
    bool quiet;
    double printed, rate; /* time of the last print in s; rate in 1/s, 0 before the first print */
};
void ks_progress_start(struct ks_progress_bar *p, const char *label, size_t total, bool quiet);
/* Restarts the measurement of the rate: `done` items were done earlier or at a different pace. */
void ks_progress_restart(struct ks_progress_bar *p, size_t done);
/* Reports that `done` of total items are done; less than before counts as no progress. `note` (may
 * be NULL) ends the printed line. */
void ks_progress_update(struct ks_progress_bar *p, size_t done, const char *note);
void ks_progress_end(struct ks_progress_bar *p);

/* Prints ks_blas_warning's line, if any, once per process; for programs that show no bar. */
void ks_progress_warn(bool quiet);

/* "2 h 05 min", "5 min" or "90 s". */
void ks_print_duration(double seconds, char text[32]);

/* Seconds of a monotonic clock. */
double ks_seconds(void);

#endif
