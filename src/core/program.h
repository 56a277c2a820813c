/* What every program's main shares: command-line options (libpopt), --help, --version. */
#ifndef KS_CORE_PROGRAM_H
#define KS_CORE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include <popt.h>

#include "core/error.h"
#include "core/keys.h"
#include "core/memory.h"

struct ks_library {
    const char *name;
    const char *(*version)(void);
};

struct ks_program {
    const char *name;                /* "kappascope-train"                                  */
    const char *synopsis;            /* "[OPTION...] CHECKPOINT..."                         */
    const char *description;         /* one sentence                                        */
    const char *details;             /* text and examples that --help prints below the options */
    struct ks_library libraries[3];  /* printed by --version; end in {NULL} */
    const struct ks_key *keys;       /* the options; --help, --version and --quiet are added */
    void *values;                    /* the struct that holds their values                  */
    const struct ks_key_rule *rules; /* which of them go together; NULL: no rules           */
};

struct ks_arguments {
    int argc; /* the command line */
    char *const *argv;
    const char *const *rest; /* arguments that are not options, NULL-terminated */
    size_t n_rest;
    uint64_t given; /* the options that are given: ks_keys_is_given */
    bool done;      /* --help or --version was printed: the program should end */
    bool quiet;
    poptContext context; /* owns `rest` */
    struct ks_pool pool; /* owns the texts of options, and what --help prints */
};

/* The first call of a main that uses BLAS: ks_process_begin, then ks_blas_start, which may execute
 * the program again. */
void ks_program_begin(char **argv);
/* Calls ks_program_begin, sets the options to their defaults and then to what the command line
 * says. An option that is unknown, has a wrong value or breaks a rule is refused with KS_USAGE. */
ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments);
/* Flushes standard output, on failure prints "NAME: message" on standard error, frees the arguments
 * and returns the exit status. */
int ks_program_end(const struct ks_program *program, struct ks_arguments *arguments,
                   ks_status status);
/* The main of a program: ks_program_start, `run` unless the program should end, ks_program_end.
 * Returns the exit status. */
int ks_program_run(const struct ks_program *program, int argc, char **argv,
                   ks_status (*run)(const struct ks_arguments *arguments));

#endif
