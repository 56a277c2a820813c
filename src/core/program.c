#include "ks/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <hdf5.h>

#include "ks/blas.h"

static const double LINE_INTERVAL = 10, BAR_INTERVAL = 0.1; /* seconds between updates */
static const double RATE_AGE = 60;                          /* seconds */

static void print_help(const struct ks_program *program, poptContext context)
{
    printf("NAME\n  %s - %s\n\nSYNOPSIS\n", program->name, program->summary);
    poptPrintHelp(context, stdout, 0); /* starts with "Usage: NAME SYNOPSIS" */
    printf("\n%s", program->details ? program->details : "");
    printf("\nEXIT STATUS\n"
           "  0 success; 1 a failure at run time; 2 bad options, missing or malformed files.\n");
}

static void print_version(const struct ks_program *program)
{
    unsigned major, minor, release;

    H5get_libversion(&major, &minor, &release);
    printf("%s %s\n%s, kernel %s\nHDF5 %u.%u.%u\n", program->name, KS_VERSION, ks_blas_version(),
           ks_blas_kernel(), major, minor, release);
    if (program->version)
        printf("%s\n", program->version());
    if (ks_blas_warning())
        printf("note: %s\n", ks_blas_warning());
}

ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments)
{
    /* popt keeps the table's address until the context is freed */
    static int quiet, help, version;
    static struct poptOption table[] = {
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, NULL, 0, "Options:", NULL},
        {"quiet", 'q', POPT_ARG_NONE, &quiet, 0, "print no progress", NULL},
        {"help", 'h', POPT_ARG_NONE, &help, 0, "print this text", NULL},
        {"version", '\0', POPT_ARG_NONE, &version, 0, "print the versions of program and libraries",
         NULL},
        POPT_TABLEEND};

    int code;

    *arguments = (struct ks_arguments){0};
    ks_blas_start(argv);
    table[0].arg = (void *)program->options;
    arguments->context = poptGetContext(program->name, argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(arguments->context, program->synopsis);
    code = poptGetNextOpt(arguments->context);
    if (code < -1)
        return ks_fail(KS_USAGE, "%s: %s (see --help)", poptBadOption(arguments->context, 0),
                       poptStrerror(code));
    arguments->quiet = quiet;
    arguments->rest = (const char *const *)poptGetArgs(arguments->context);
    while (arguments->rest && arguments->rest[arguments->n_rest])
        arguments->n_rest++;
    if (help)
        print_help(program, arguments->context);
    else if (version)
        print_version(program);
    arguments->done = help || version;
    return KS_OK;
}

int ks_program_end(const struct ks_program *program, struct ks_arguments *arguments,
                   ks_status status)
{
    if (status != KS_OK)
        fprintf(stderr, "%s: %s\n", program->name, ks_error_text());
    if (arguments->context)
        poptFreeContext(arguments->context);
    arguments->context = NULL;
    return ks_exit_status(status);
}

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
