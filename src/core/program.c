#include "core/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/blas.h"
#include "core/line.h"
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

/* popt's table of the options: their values are read by ks_key_set. */
static ks_status make_table(const struct ks_key *keys, struct ks_pool *pool,
                            struct poptOption **table)
{
    struct words {
        char help[400], argument[80];
    } * words;
    size_t n = 0;

    while (keys[n].name)
        n++;
    KS_TRY(ks_pool_alloc(pool, n + 1, sizeof **table, table));
    KS_TRY(ks_pool_alloc(pool, n, sizeof *words, &words));
    for (size_t i = 0; i < n; i++) {
        const struct ks_key *key = &keys[i];
        const bool has_default = key->default_text != NULL;
        const bool has_value = key->type != KS_KEY_FLAG && key->type != KS_KEY_OFF;

        snprintf(words[i].help, sizeof words[i].help, "%s%s%s%s", key->help,
                 has_default ? " (default: " : "", has_default ? key->default_text : "",
                 has_default ? ")" : "");
        if (!key->argument && key->type == KS_KEY_CHOICE)
            ks_words_print(key->choices, "|", "|", sizeof words[i].argument, words[i].argument);
        (*table)[i] = (struct poptOption){
            .longName = key->name,
            .shortName = key->letter,
            .argInfo = !has_value                  ? POPT_ARG_NONE
                       : key->type == KS_KEY_TEXTS ? POPT_ARG_ARGV
                       : key->bare                 ? POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL
                                                   : POPT_ARG_STRING,
            .val = (int)i + 1,
            .descrip = words[i].help,
            .argDescrip = *words[i].argument ? words[i].argument : key->argument};
    }
    return KS_OK;
}

/* Sets an option from its text, NULL if it has none. */
static ks_status take_option(const struct ks_program *program, const struct ks_key *key,
                             const char *text, struct ks_arguments *a)
{
    char *copy = NULL;

    a->given |= KS_KEY_BIT(program->keys, key);
    if (!text)
        return ks_key_set(key, "--", key->bare ? key->bare : "yes", program->values);
    KS_TRY(ks_pool_alloc(&a->pool, strlen(text) + 1, 1, &copy));
    memcpy(copy, text, strlen(text) + 1);
    return ks_key_set(key, "--", copy, program->values);
}

/* *values: whether all values are accepted. That does not matter with --help. */
static ks_status read_options(const struct ks_program *program, struct ks_arguments *a,
                              ks_status *values)
{
    int code;

    *values = KS_OK;
    while ((code = poptGetNextOpt(a->context)) > 0) {
        char *text = poptGetOptArg(a->context);

        if (*values == KS_OK)
            *values = take_option(program, &program->keys[code - 1], text, a);
        free(text);
    }
    if (code < -1)
        return ks_fail(KS_USAGE, "%s: %s (see --help)", poptBadOption(a->context, 0),
                       poptStrerror(code));
    a->rest = (const char *const *)poptGetArgs(a->context);
    while (a->rest && a->rest[a->n_rest])
        a->n_rest++;
    return KS_OK;
}

/* Sets the options to their defaults, then to what the command line says. */
static ks_status start(const struct ks_program *program, int argc, char **argv,
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
    struct poptOption *options;
    ks_status values;

    *arguments = (struct ks_arguments){.argc = argc, .argv = argv};
    ks_process_begin();
    ks_blas_start(argv); /* may execute the program again */
    KS_TRY(make_table(program->keys, &arguments->pool, &options));
    table[0].arg = options;
    ks_keys_defaults(program->keys, program->values);
    arguments->context = poptGetContext(program->name, argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(arguments->context, program->synopsis);
    KS_TRY(read_options(program, arguments, &values));
    arguments->quiet = quiet;
    arguments->done = help || version;
    if (help)
        print_help(program, arguments->context);
    else if (version)
        print_version(program);
    if (arguments->done)
        return KS_OK;
    KS_TRY(values);
    return program->rules
               ? ks_keys_check(program->keys, program->rules, program->values, arguments->given)
               : KS_OK;
}

int ks_program_run(const struct ks_program *program, int argc, char **argv,
                   ks_status (*run)(const struct ks_arguments *arguments))
{
    struct ks_arguments arguments;
    ks_status status = start(program, argc, argv, &arguments);

    if (status == KS_OK && !arguments.done)
        status = run(&arguments);
    if (status == KS_OK)
        status = ks_process_flush();
    if (status != KS_OK)
        fprintf(stderr, "%s: %s\n", program->name, ks_error_text());
    if (arguments.context)
        poptFreeContext(arguments.context);
    ks_pool_free(&arguments.pool);
    return ks_exit_status(status);
}
