/* What the main of every program shares: options (libpopt), --help, --version, progress. */
#ifndef KS_PROGRAM_H
#define KS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include <popt.h>

#include "ks/error.h"

struct ks_program {
    const char *name;                 /* "kappascope-train"                                  */
    const char *synopsis;             /* its arguments, "[OPTION...] CHECKPOINT..."          */
    const char *summary;              /* one sentence                                        */
    const char *details;              /* printed below the options in --help: text, examples */
    const char *(*version)(void);     /* further lines of --version; may be NULL        */
    const struct poptOption *options; /* the table, POPT_TABLEEND at its end; --help, --version and
                                       * --quiet are added                          */
};

struct ks_arguments {
    poptContext context;     /* keeps the strings alive */
    const char *const *rest; /* arguments that are no options, ends in NULL */
    size_t n_rest;
    bool done; /* --help or --version was printed: nothing to do */
    bool quiet;
};

/* Sets up BLAS, parses the command line into the variables that the table points to. Fails with
 * KS_USAGE and the culprit's name. */
ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments);
/* Prints the message of a failure as "NAME: message", frees the arguments and returns the exit
 * status. */
int ks_program_end(const struct ks_program *program, struct ks_arguments *arguments,
                   ks_status status);

/* Progress on standard error: a bar with rate and time left on a terminal, a line now and then
 * elsewhere, nothing if `quiet`. The rate is that of the last minute or so. The first call prints
 * the line of ks_blas_warning, if any. */
struct ks_progress {
    const char *label;
    size_t total, done; /* done: when it was printed last; before the start, 0 unless it is set */
    bool quiet;
    double printed, rate; /* seconds; 1/s, 0 before the first print */
};
void ks_progress_start(struct ks_progress *p, const char *label, size_t total, bool quiet);
/* `done` of total are done; `note` (may be NULL) stands at the end of the line. */
void ks_progress_update(struct ks_progress *p, size_t done, const char *note);
void ks_progress_end(struct ks_progress *p);

/* The line of ks_blas_warning, if any, once a program; for progress that is not a ks_progress. */
void ks_progress_warn(bool quiet);

/* Seconds of a monotonic clock. */
double ks_seconds(void);

#endif
