#include "ks/progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ks/blas.h"

static const double LINE_INTERVAL = 10, BAR_INTERVAL = 0.1; /* seconds between updates */
static const double RATE_AGE = 60;                          /* seconds */

double ks_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void ks_progress_warn(bool quiet)
{
    static bool warned;

    if (quiet || warned || !ks_blas_warning())
        return;
    fprintf(stderr, "note: %s\n", ks_blas_warning());
    warned = true;
}

void ks_progress_start(struct ks_progress *p, const char *label, size_t total, bool quiet)
{
    *p = (struct ks_progress){.label = label, .total = total, .quiet = quiet};
    p->printed = ks_seconds();
    ks_progress_warn(quiet);
}

static double seconds_left(const struct ks_progress *p)
{
    return p->rate > 0 ? (double)(p->total - p->done) / p->rate : 0;
}

static void print_bar(const struct ks_progress *p, const char *note)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    size_t filled = p->total > 0 ? p->done * WIDTH / p->total : WIDTH;

    for (size_t i = 0; i < WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %zu/%zu, %.3g/s, %.0f s left%s%s\033[K", p->label, bar, p->done,
            p->total, p->rate, seconds_left(p), note ? ", " : "", note ? note : "");
}

/* The mean of the rates between prints, weighted by e^(-age/RATE_AGE). */
static void count(struct ks_progress *p, size_t done, double interval)
{
    double now = (double)(done - p->done) / interval, kept = exp(-interval / RATE_AGE);

    p->rate = p->rate > 0 ? kept * p->rate + (1 - kept) * now : now;
    p->done = done;
}

void ks_progress_update(struct ks_progress *p, size_t done, const char *note)
{
    bool terminal = isatty(STDERR_FILENO);
    double now = ks_seconds(), interval = now - p->printed;

    if (p->quiet || interval < (terminal ? BAR_INTERVAL : LINE_INTERVAL))
        return;
    count(p, done, interval);
    p->printed = now;
    if (terminal)
        print_bar(p, note);
    else
        fprintf(stderr, "%s %zu/%zu, %.3g/s, %.0f s left%s%s\n", p->label, done, p->total, p->rate,
                seconds_left(p), note ? ", " : "", note ? note : "");
}

void ks_progress_end(struct ks_progress *p)
{
    if (!p->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}
