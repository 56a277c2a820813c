/* Progress on standard error, and a monotonic clock. */
#ifndef KS_CORE_PROGRESS_H
#define KS_CORE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Shows a progress bar with rate and time left on a terminal; otherwise prints a line after ten
 * seconds and then one a minute; nothing if `quiet`. The rate is averaged over about the last
 * minute. The first start also prints ks_blas_warning's line, if any. */
struct ks_progress_bar {
    const char *label;
    size_t total, done; /* done: as of the last print */
    bool quiet;
    double printed, rate; /* time of the last print in s; rate in 1/s, 0 before the first print */
    size_t lines;         /* printed */
};
void ks_progress_start(struct ks_progress_bar *p, const char *label, size_t total, bool quiet);
/* Restarts the measurement of the rate: `done` items were done earlier or at a different pace. */
void ks_progress_restart(struct ks_progress_bar *p, size_t done);
/* Reports that `done` of total items are done; less than before counts as no progress. `note` (may
 * be NULL) ends the printed line. */
void ks_progress_update(struct ks_progress_bar *p, size_t done, const char *note);
void ks_progress_end(struct ks_progress_bar *p);

/* One line about work of several jobs: a terminal shows the last one alone, others get a line at
 * the times of a progress bar. */
struct ks_progress_line {
    bool quiet;
    double printed; /* time of the last print in s */
    size_t lines;   /* printed */
};
void ks_progress_line_start(struct ks_progress_line *p, bool quiet);
/* Whether it is time for a line. */
bool ks_progress_line_due(const struct ks_progress_line *p);
void ks_progress_line_print(struct ks_progress_line *p, const char *text);
/* Clears it on a terminal; the next one is due at once there. */
void ks_progress_line_clear(struct ks_progress_line *p);

/* Prints ks_blas_warning's line, if any, once per process; for programs that show no bar. */
void ks_progress_warn(bool quiet);

/* "2 h 05 min", "5 min" or "90 s". */
void ks_print_duration(double seconds, char text[32]);

/* Seconds of a monotonic clock. */
double ks_seconds(void);

#endif
