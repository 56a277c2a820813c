/* kappascope COMMAND ...: like git, runs the program kappascope-COMMAND, from this program's folder
 * or from PATH. Commands in Python are scripts beside the package kappascope. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config.h"
#include "core/memory.h"
#include "core/process.h"

static const struct command {
    const char *name;
    const char *script; /* of a command in Python; else NULL */
    const char *description;
} commands[] = {
    {"train", NULL, "train an agent and write checkpoints of its critics"},
    {"analyze", NULL, "measure the curvature of a critic's loss: spectra from checkpoints"},
    {"audit", NULL, "one page on a critic: its statistics, findings and limits"},
    {"inspect", NULL, "print what is in a checkpoint, spectrum, vector, architecture or study"},
    {"study", NULL, "train, analyze and plot a whole study"},
    {"plot", NULL, "plots, tables and a report page from a study's folder"},
    {"scores", NULL, "scores over tasks, from the folders of studies and from tables of returns"},
    {"import", "kappascope_import.py",
     "write a critic from another framework's files as a checkpoint"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* *path = the script, installed or in the source tree. The caller frees it. */
static ks_status find_script(const char *script, char **path)
{
    static const char *const folders[] = {"python", "analysis/python"};
    ks_status status = KS_MISSING;

    *path = NULL;
    for (size_t i = 0; i < 2 && status == KS_MISSING; i++) {
        KS_OWNED char *relative = NULL;

        KS_TRY(ks_print_string(&relative, "%s/%s", folders[i], script));
        status = ks_installed_shared(relative, path);
    }
    return status;
}

static bool is_there(const struct command *command, const char *folder)
{
    KS_OWNED char *path = NULL;

    if (command->script)
        return find_script(command->script, &path) == KS_OK;
    return ks_print_string(&path, "%s/kappascope-%s", folder, command->name) == KS_OK &&
           access(path, X_OK) == 0;
}

/* Lists the commands that are installed. */
static ks_status print_help(void)
{
    KS_OWNED char *folder = NULL;

    KS_TRY(ks_installed_folder(&folder));
    printf("NAME\n  kappascope - measure the conditioning of deep-RL critics\n\nSYNOPSIS\n"
           "  kappascope COMMAND [ARGUMENT...]\n\nCOMMANDS\n");
    for (size_t i = 0; i < COMMANDS; i++)
        if (is_there(&commands[i], folder))
            printf("  %-8s %s\n", commands[i].name, commands[i].description);
    printf("\n`kappascope COMMAND --help` says more about each.\n\nOPTIONS\n"
           "  -h, --help     print this text\n  --version      print the version\n\n"
           "EXIT STATUS\n  the command's; 2 if the command is unknown.\n");
    return KS_OK;
}

/* Replaces this process by Python. The script finds the programs by the environment. */
static ks_status run_script(const char *script, char **argv)
{
    KS_OWNED char *folder = NULL, *path = NULL;

    KS_TRY(ks_installed_folder(&folder));
    KS_TRY(find_script(script, &path));
    setenv("KAPPASCOPE_PROGRAMS", folder, 1);
    argv[0] = "python3", argv[1] = path;
    execvp(argv[0], argv);
    return ks_fail(KS_MISSING,
                   "python3: cannot be run: %s: install python3, python3-numpy and python3-h5py",
                   strerror(errno));
}

/* Before a program's main, OpenBLAS starts threads of its own, which the programs do not use, and
 * maps 128 MiB for each. If they do not fit, it ends the program, or (version 0.3.29) tries again
 * for ever; if none can be started (ulimit -u), it prints lines of its own. */
static ks_status prepare_openblas(void)
{
    static const struct {
        int resource;
        char option;
    } limits[] = {{RLIMIT_AS, 'v'}, {RLIMIT_DATA, 'd'}};
    static const rlim_t least = (rlim_t)320 << 10; /* KiB, with the programs' libraries */

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;

        if (getrlimit(limits[i].resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
            continue;
        if (limit.rlim_cur / 1024 < least)
            return ks_fail(
                KS_MEMORY,
                "address space: expected a limit (ulimit -%c) of at least %juK, found %juK",
                limits[i].option, (uintmax_t)least, (uintmax_t)limit.rlim_cur / 1024);
    }
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    return KS_OK;
}

/* Replaces this process by the command's program. Returns only on failure. */
static ks_status run(char **argv)
{
    KS_OWNED char *name = NULL, *path = NULL;
    size_t known = 0;
    ks_status status;

    if (!*argv[1] || *argv[1] == '-' || strchr(argv[1], '/')) /* no name of a command */
        return ks_fail(KS_USAGE, "unknown option '%s' (see --help)", argv[1]);
    /* Threads that spin at barriers waste the cores that other processes need. */
    setenv("OMP_WAIT_POLICY", "passive", 0);
    while (known < COMMANDS && strcmp(commands[known].name, argv[1]) != 0)
        known++;
    if (known < COMMANDS && commands[known].script)
        return run_script(commands[known].script, argv);
    KS_TRY(prepare_openblas());
    KS_TRY(ks_print_string(&name, "kappascope-%s", argv[1]));
    status = ks_locate_program(name, &path);
    if (status != KS_OK)
        return known < COMMANDS ? status
                                : ks_fail(KS_USAGE, "unknown command '%s' (see --help)", argv[1]);
    argv[1] = path; /* becomes the command's argv[0] */
    execv(path, argv + 1);
    return ks_fail(KS_RUN, "cannot run %s: %s", path, strerror(errno));
}

/* The libraries are those of the programs, which this program is not linked with. */
static ks_status print_version(void)
{
    char name[] = "kappascope", command[] = "analyze", option[] = "--version";

    printf("kappascope %s\n", KS_BUILD);
    KS_TRY(ks_process_flush());
    return run((char *[]){name, command, option, NULL});
}

static ks_status start(int argc, char **argv)
{
    if (argc < 2)
        return ks_fail(KS_USAGE, "expected a command (see --help)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    return run(argv);
}

int main(int argc, char **argv)
{
    ks_status status;

    ks_process_begin();
    status = start(argc, argv);
    if (status == KS_OK)
        status = ks_process_flush();
    if (status != KS_OK)
        fprintf(stderr, "kappascope: %s\n", ks_error_text());
    return ks_exit_status(status);
}
