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
    const char *name;                 /* "kappascope-train"                                  */
    const char *synopsis;             /* "[OPTION...] CHECKPOINT..."                         */
    const char *description;          /* one sentence                                        */
    const char *details;              /* text and examples that --help prints below the options */
    struct ks_library libraries[3];   /* printed by --version; end in {NULL} */
    const struct poptOption *options; /* ends in POPT_TABLEEND; --help, ... are added */
};

struct ks_arguments {
    poptContext context;     /* owns the strings that options and `rest` point to */
    const char *const *rest; /* arguments that are not options, NULL-terminated */
    size_t n_rest;
    bool done; /* --help or --version was printed: the program should end */
    bool quiet;
};

/* The first call of a main that uses BLAS: ks_process_begin, then ks_blas_start, which may execute
 * the program again. */
void ks_program_begin(char **argv);
/* Calls ks_program_begin and parses the command line into the variables that the option table
 * points to. On an invalid option fails with KS_USAGE and names it. */
ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments);
/* Flushes standard output, on failure prints "NAME: message" on standard error, frees the arguments
 * and returns the exit status. */
int ks_program_end(const struct ks_program *program, struct ks_arguments *arguments,
                   ks_status status);
/* The main of a program: ks_program_start, `run` unless the program should end, ks_program_end.
 * Frees the strings of the options. Returns the exit status. */
int ks_program_run(const struct ks_program *program, int argc, char **argv,
                   ks_status (*run)(const struct ks_arguments *arguments));

#endif
