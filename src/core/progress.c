#include "core/progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/blas.h"

static const double LINE_INTERVAL = 10, BAR_INTERVAL = 0.1; /* seconds between prints */
static const double RATE_AGE = 60; /* decay time of the rate's average, seconds */

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

void ks_progress_start(struct ks_progress_bar *p, const char *label, size_t total, bool quiet)
{
    *p = (struct ks_progress_bar){.label = label, .total = total, .quiet = quiet};
    p->printed = ks_seconds();
    ks_progress_warn(quiet);
}

void ks_progress_restart(struct ks_progress_bar *p, size_t done)
{
    p->done = done;
    p->rate = 0;
    p->printed = ks_seconds();
}

void ks_print_duration(double seconds, char text[32])
{
    long minutes = (long)(seconds / 60);

    if (minutes >= 60)
        snprintf(text, 32, "%ld h %02ld min", minutes / 60, minutes % 60);
    else if (minutes >= 2)
        snprintf(text, 32, "%ld min", minutes);
    else
        snprintf(text, 32, "%.0f s", seconds);
}

/* One fprintf, so that lines of concurrent programs do not interleave. */
static void print(const struct ks_progress_bar *p, const char *before, const char *bar,
                  const char *note, const char *after)
{
    char duration[32], label[256], pace[64] = "";

    if (p->rate > 0) {
        ks_print_duration((double)(p->total - p->done) / p->rate, duration);
        snprintf(pace, sizeof pace, ", %.*f/s, %s left", p->rate < 10 ? 2 : 0, p->rate, duration);
    }
    ks_escape(p->label, sizeof label, label);
    fprintf(stderr, "%s%s%s %zu/%zu%s%s%s%s", before, label, bar, p->done, p->total, pace,
            note ? ", " : "", note ? note : "", after);
}

static void print_bar(const struct ks_progress_bar *p, const char *note)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 4] = " [";
    size_t filled = p->total > 0 ? p->done * WIDTH / p->total : WIDTH;

    for (size_t i = 0; i < WIDTH; i++)
        bar[2 + i] = i < filled ? '#' : '.';
    bar[2 + WIDTH] = ']';
    print(p, "\r", bar, note, "\033[K");
}

/* The mean of the rates between prints, weighted by e^(-age/RATE_AGE). Work that begins again may
 * report a smaller `done` than before. */
static void update_rate(struct ks_progress_bar *p, size_t done, double interval)
{
    double now, kept = exp(-interval / RATE_AGE);

    done = done < p->total ? done : p->total;
    done = done > p->done ? done : p->done;
    now = (double)(done - p->done) / interval;
    p->rate = p->rate > 0 ? kept * p->rate + (1 - kept) * now : now;
    p->done = done;
}

void ks_progress_update(struct ks_progress_bar *p, size_t done, const char *note)
{
    bool terminal = isatty(STDERR_FILENO);
    double now = ks_seconds(), interval = now - p->printed;

    if (p->quiet || interval < (terminal ? BAR_INTERVAL : LINE_INTERVAL))
        return;
    update_rate(p, done, interval);
    p->printed = now;
    if (terminal)
        print_bar(p, note);
    else
        print(p, "", "", note, "\n");
}

void ks_progress_end(struct ks_progress_bar *p)
{
    if (!p->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}
