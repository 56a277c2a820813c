/* kappascope COMMAND ...: like git, runs the program kappascope-COMMAND, from this program's folder
 * or from PATH. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/path.h"
#include "core/process.h"
#include "core/program.h"
#include "io/h5.h"

static const struct command {
    const char *name, *description;
} commands[] = {
    {"train", "train an agent and write checkpoints of its critics"},
    {"analyze", "measure the curvature of a critic's loss: spectra from checkpoints"},
    {"audit", "one page on a critic: its statistics, findings and limits"},
    {"inspect", "print what is in a checkpoint, spectrum, vector, architecture or study"},
    {"study", "train, analyze and plot a whole study"},
    {"plot", "plots, tables and a report page from a study's folder"},
    {"scores", "scores over tasks, from the folders of studies and from tables of returns"},
    {"import", "write a critic from another framework's files as a checkpoint"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Whether it can be a command's name: neither a path nor an option. */
static int is_plain(const char *name)
{
    return *name && *name != '-' && !strchr(name, '/');
}

/* Lists the commands whose programs are installed. */
static ks_status print_help(void)
{
    char *folder = NULL;

    KS_TRY(ks_installed_folder(&folder));
    printf("NAME\n  kappascope - measure the conditioning of deep-RL critics\n\nSYNOPSIS\n"
           "  kappascope COMMAND [ARGUMENT...]\n\nCOMMANDS\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        char *path = NULL;

        if (ks_print_string(&path, "%s/kappascope-%s", folder, commands[i].name) == KS_OK &&
            access(path, X_OK) == 0)
            printf("  %-8s %s\n", commands[i].name, commands[i].description);
        free(path);
    }
    printf("\n`kappascope COMMAND --help` says more about each.\n\nOPTIONS\n"
           "  -h, --help     print this text\n  --version      print the version\n\n"
           "EXIT STATUS\n  the command's; 2 if the command is unknown.\n");
    free(folder);
    return KS_OK;
}

/* Replaces this process by the command's program. Returns only on failure. */
static ks_status run(char **argv)
{
    char *name = NULL, *path = NULL;
    ks_status status = KS_OK;

    if (!is_plain(argv[1]))
        return ks_fail(KS_USAGE, "unknown option '%s' (see --help)", argv[1]);
    KS_GO(ks_print_string(&name, "kappascope-%s", argv[1]));
    if (ks_locate_program(name, &path) != KS_OK) {
        status = ks_fail(KS_USAGE, "unknown command '%s' (see --help)", argv[1]);
        goto done;
    }
    argv[1] = path; /* becomes the command's argv[0] */
    /* Threads that spin at barriers waste the cores that other processes need. */
    setenv("OMP_WAIT_POLICY", "passive", 0);
    execv(path, argv + 1);
    status = ks_fail(KS_RUN, "cannot run %s: %s", path, strerror(errno));
done:
    free(name);
    free(path);
    return status;
}

static ks_status print_version(char **argv)
{
    static const struct poptOption none[] = {POPT_TABLEEND};
    static const struct ks_library libraries[] = {{"HDF5", ks_h5_version}, {NULL, NULL}};
    static const struct ks_program program = {
        .name = "kappascope", .synopsis = "COMMAND", .libraries = libraries, .options = none};
    struct ks_arguments arguments;

    KS_TRY(ks_program_start(&program, 2, argv, &arguments));
    poptFreeContext(arguments.context);
    return KS_OK;
}

static ks_status start(int argc, char **argv)
{
    if (argc < 2)
        return ks_fail(KS_USAGE, "expected a command (see --help)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0)
        return print_version(argv);
    return run(argv);
}

int main(int argc, char **argv)
{
    ks_status status;

    ks_program_begin(NULL); /* the command's program sets up BLAS for itself */
    status = start(argc, argv);
    if (status == KS_OK)
        status = ks_program_flush();
    if (status != KS_OK)
        fprintf(stderr, "kappascope: %s\n", ks_error_text());
    return ks_exit_status(status);
}
