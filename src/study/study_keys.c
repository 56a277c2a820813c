#include "study/study_keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "program/options_table.h"

/* Options that a study's file must not set: the study itself decides where files go and what is
 * printed. */
static const char *const refused[] = {"out",    "json",     "csv",  "apply",
                                      "output", "gradient", "name", "layers"};

enum kind { UNKNOWN, FLAG, VALUE };

static enum kind find_option(const char *key)
{
    struct ks_options_given given = {.json = 0};
    struct poptOption table[KS_OPTIONS_TABLE];

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(key, refused[i]) == 0)
            return UNKNOWN;
    ks_options_table(&given, table);
    for (const struct poptOption *o = table; o->longName; o++)
        if (strcmp(o->longName, key) == 0)
            return o->argInfo == POPT_ARG_NONE ? FLAG : VALUE;
    return UNKNOWN;
}

bool ks_study_is_flag(const char *key)
{
    return find_option(key) == FLAG;
}

static bool is_among(const char *value, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(value, *words) == 0)
            return true;
    return false;
}

bool ks_study_is_yes(const char *value)
{
    return is_among(value, (const char *const[]){"yes", "true", "on", "1", NULL});
}

static bool is_no(const char *value)
{
    return is_among(value, (const char *const[]){"no", "false", "off", "0", NULL});
}

/* Reads a command line of this one option with the analyzer's own parser. */
static ks_status take(struct ks_options_given *given, const char *key, const char *value, bool flag)
{
    char *word = NULL;
    const char *argv[] = {"kappascope-analyze", NULL, NULL};
    struct poptOption table[KS_OPTIONS_TABLE];
    poptContext context;
    int code;

    KS_TRY(ks_print_string(&word, flag ? "--%s" : "--%s=%s", key, value));
    argv[1] = word;
    ks_options_table(given, table);
    context = poptGetContext(argv[0], 2, argv, table, 0);
    code = poptGetNextOpt(context);
    poptFreeContext(context);
    free(word);
    return code < -1 ? ks_fail(KS_FORMAT, "%s: %s", key, poptStrerror(code)) : KS_OK;
}

static ks_status take_setting(struct ks_options_given *given, const char *key, const char *value)
{
    const enum kind kind = find_option(key);

    if (kind == UNKNOWN)
        return ks_fail(KS_FORMAT, "unknown option '%s' for [analyze]", key);
    if (!*value)
        return ks_fail(KS_FORMAT, "%s: expected a value, found nothing", key);
    if (kind == VALUE)
        return take(given, key, value, false);
    if (!ks_study_is_yes(value) && !is_no(value))
        return ks_fail(KS_FORMAT, "%s: expected yes or no, found '%s'", key, value);
    return is_no(value) ? KS_OK : take(given, key, value, true);
}

ks_status ks_study_read_analysis(const struct ks_study_analysis *asked, struct ks_options *options)
{
    struct ks_options_given given = {.json = 0};
    ks_status status = KS_OK;

    for (size_t i = 0; i < asked->n && status == KS_OK; i++)
        status = take_setting(&given, asked->setting[i].key, asked->setting[i].value);
    if (status == KS_OK)
        status = ks_options_read(&given, options);
    ks_options_clear(&given); /* no option that a study may give leaves a string in `options` */
    return status;
}
