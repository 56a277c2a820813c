#include "core/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "core/blas.h"
#include "core/process.h"

static void print_help(const struct ks_program *program, poptContext context)
{
    printf("NAME\n  %s - %s\n\nSYNOPSIS\n", program->name, program->description);
    poptPrintHelp(context, stdout, 0); /* starts with "Usage: NAME SYNOPSIS" */
    printf("\n%s", program->details ? program->details : "");
    printf("\nEXIT STATUS\n"
           "  0 success; 1 failure at run time; 2 invalid options, missing or malformed files;\n"
           "  3 a result that is written, and less than was asked for.\n");
}

static void print_version(const struct ks_program *program)
{
    printf("%s %s\n%s, kernel %s\n", program->name, KS_BUILD, ks_blas_version(), ks_blas_kernel());
    for (const struct ks_library *l = program->libraries; l->name; l++)
        printf("%s %s\n", l->name, l->version());
    if (ks_blas_warning())
        printf("note: %s\n", ks_blas_warning());
}

void ks_program_begin(char **argv)
{
    ks_process_begin();
    ks_blas_start(argv);
}

ks_status ks_program_start(const struct ks_program *program, int argc, char **argv,
                           struct ks_arguments *arguments)
{
    /* static: popt keeps the table's address until the context is freed */
    static int quiet, help, version;
    static struct poptOption table[] = {
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, NULL, 0, "Options:", NULL},
        {"quiet", 'q', POPT_ARG_NONE, &quiet, 0, "print no progress", NULL},
        {"help", 'h', POPT_ARG_NONE, &help, 0, "print this text", NULL},
        {"version", '\0', POPT_ARG_NONE, &version, 0,
         "print the versions of the program and its libraries", NULL},
        POPT_TABLEEND};

    int code;

    *arguments = (struct ks_arguments){0};
    ks_program_begin(argv);
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
    if (status == KS_OK)
        status = ks_process_flush();
    if (status != KS_OK)
        fprintf(stderr, "%s: %s\n", program->name, ks_error_text());
    if (arguments->context)
        poptFreeContext(arguments->context);
    arguments->context = NULL;
    return ks_exit_status(status);
}

int ks_program_run(const struct ks_program *program, int argc, char **argv,
                   ks_status (*run)(const struct ks_arguments *arguments))
{
    struct ks_arguments arguments;
    ks_status status = ks_program_start(program, argc, argv, &arguments);
    int code;

    if (status == KS_OK && !arguments.done)
        status = run(&arguments);
    code = ks_program_end(program, &arguments, status);
    for (const struct poptOption *o = program->options; o->longName; o++) {
        char ***list = o->arg;

        for (size_t i = 0; o->argInfo == POPT_ARG_ARGV && *list && (*list)[i]; i++)
            free((*list)[i]);
        if (o->argInfo == POPT_ARG_ARGV || o->argInfo == POPT_ARG_STRING)
            free(*(void **)o->arg);
    }
    return code;
}
