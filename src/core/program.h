/* What the main of every program shares: options (libpopt), --help, --version. */
#ifndef KS_CORE_PROGRAM_H
#define KS_CORE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include <popt.h>

#include "core/error.h"

struct ks_library {
    const char *name;
    const char *(*version)(void);
};

struct ks_program {
    const char *name;                   /* "kappascope-train"                                  */
    const char *synopsis;               /* its arguments, "[OPTION...] CHECKPOINT..."          */
    const char *description;            /* one sentence                                        */
    const char *details;                /* printed below the options in --help: text, examples */
    const struct ks_library *libraries; /* that --version names beside BLAS; ends in {NULL} */
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

/* The first thing that a program does, before anything else can open a file: opens the null device
 * on standard input, output and error where they are closed (a file opened later would get that
 * number, and the messages would be written into it); has a limit on file sizes (ulimit -f) met as
 * a write that fails, like a full disk, and not by a signal; sets up BLAS (ks_blas_start).
 * Standard output that was closed stays one that cannot be written. */
void ks_program_begin(char **argv);
/* Begins, unless main has done so before; parses the command line into the variables that the table
 * points to. Fails with KS_USAGE and the culprit's name. */
ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments);
/* Writes out what was printed; fails with KS_FULL. */
ks_status ks_program_flush(void);
/* Flushes standard output, prints the message of a failure as "NAME:
 * message", frees the arguments and returns the exit status. */
int ks_program_end(const struct ks_program *program, struct ks_arguments *arguments,
                   ks_status status);

#endif
