/* What every program's main shares: command-line options (libpopt), --help, --version. */
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
    const char *synopsis;               /* "[OPTION...] CHECKPOINT..."                         */
    const char *description;            /* one sentence                                        */
    const char *details;                /* text and examples that --help prints below the options */
    const struct ks_library *libraries; /* printed by --version; ends in {NULL} */
    const struct poptOption *options;   /* ends in POPT_TABLEEND; --help, ... are added */
};

struct ks_arguments {
    poptContext context;     /* owns the strings that options and `rest` point to */
    const char *const *rest; /* arguments that are not options, NULL-terminated */
    size_t n_rest;
    bool done; /* --help or --version was printed: the program should end */
    bool quiet;
};

/* The first call of every main, before any file is opened:
 * - Opens /dev/null for standard input, output and error if they are closed. Otherwise a file
 *   opened later would get that descriptor and receive the program's messages. Writing to a
 *   standard output that was closed still fails.
 * - Ignores SIGXFSZ, so that exceeding a file size limit (ulimit -f) is a failed write, like a full
 *   disk.
 * - Sets up BLAS (ks_blas_start), which may re-execute the program. */
void ks_program_begin(char **argv);
/* Calls ks_program_begin and parses the command line into the variables that the option table
 * points to. On an invalid option fails with KS_USAGE and names it. */
ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments);
/* Flushes standard output; KS_FULL if that fails. */
ks_status ks_program_flush(void);
/* Flushes standard output, on failure prints "NAME: message" on standard error, frees the arguments
 * and returns the exit status. */
int ks_program_end(const struct ks_program *program, struct ks_arguments *arguments,
                   ks_status status);

#endif
