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

/* The main of a program: sets the options to their defaults and then to what the command line says,
 * calls `run` unless --help or --version is given, flushes standard output and on failure prints
 * "NAME: message" on standard error. An option that is unknown, has a wrong value or breaks a rule
 * is refused with KS_USAGE. Executes the program again if BLAS needs that. Returns the exit status.
 */
int ks_program_run(const struct ks_program *program, int argc, char **argv,
                   ks_status (*run)(const struct ks_arguments *arguments));

#endif
