#include "core/progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/blas.h"

/* Seconds between prints: of a bar; of the first line in a log and the lines after it. */
static const double BAR_INTERVAL = 0.1, FIRST_LINE = 10, LINE_INTERVAL = 60;
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

/* Seconds from the last print to the next one. */
static double find_interval(size_t lines)
{
    return isatty(STDERR_FILENO) ? BAR_INTERVAL : lines == 0 ? FIRST_LINE : LINE_INTERVAL;
}

void ks_progress_update(struct ks_progress_bar *p, size_t done, const char *note)
{
    double now = ks_seconds(), interval = now - p->printed;

    if (p->quiet || interval < find_interval(p->lines))
        return;
    update_rate(p, done, interval);
    p->printed = now;
    p->lines++;
    if (isatty(STDERR_FILENO))
        print_bar(p, note);
    else
        print(p, "", "", note, "\n");
}

static void clear_line(bool quiet)
{
    if (!quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

void ks_progress_end(struct ks_progress_bar *p)
{
    clear_line(p->quiet);
}

void ks_progress_line_start(struct ks_progress_line *p, bool quiet)
{
    *p = (struct ks_progress_line){.quiet = quiet, .printed = ks_seconds()};
}

bool ks_progress_line_due(const struct ks_progress_line *p)
{
    return !p->quiet && ks_seconds() - p->printed >= find_interval(p->lines);
}

/* Without wrapping, as only one line can be cleared. */
void ks_progress_line_print(struct ks_progress_line *p, const char *text)
{
    fprintf(stderr, isatty(STDERR_FILENO) ? "\r\033[?7l%s\033[K\033[?7h" : "%s\n", text);
    p->printed = ks_seconds();
    p->lines++;
}

void ks_progress_line_clear(struct ks_progress_line *p)
{
    clear_line(p->quiet);
    if (isatty(STDERR_FILENO))
        p->printed = 0;
}
