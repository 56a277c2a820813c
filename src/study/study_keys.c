#include "study/study_keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "program/options_table.h"

/* Where files go and how summaries are printed is the study's business. */
static const char *const refused[] = {"out",    "json",     "csv",  "apply",
                                      "output", "gradient", "name", "layers"};

static const struct poptOption *find_option(const char *key)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(key, refused[i]) == 0)
            return NULL;
    for (const struct poptOption *o = ks_options_table; o->longName || o->arg; o++)
        if (o->longName && strcmp(o->longName, key) == 0)
            return o;
    return NULL;
}

static bool is_flag(const struct poptOption *option)
{
    return (option->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE;
}

bool ks_study_is_flag(const char *key)
{
    const struct poptOption *option = find_option(key);

    return option && is_flag(option);
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

/* The analyzer's own parser on a command line of this one option; what it took before it keeps. */
static ks_status take(const char *key, const char *value, bool flag)
{
    char *word = NULL;
    const char *argv[] = {"kappascope-analyze", NULL, NULL};
    struct ks_options analysis;
    poptContext context;
    int code;

    KS_TRY(ks_print_string(&word, flag ? "--%s" : "--%s=%s", key, value));
    argv[1] = word;
    context = poptGetContext(argv[0], 2, argv, ks_options_table, 0);
    code = poptGetNextOpt(context);
    poptFreeContext(context);
    free(word);
    if (code < -1)
        return ks_fail(KS_FORMAT, "%s: %s", key, poptStrerror(code));
    return ks_options_read(&analysis);
}

ks_status ks_study_take_analyze(const char *key, const char *value)
{
    const struct poptOption *option = find_option(key);

    if (!option)
        return ks_fail(KS_FORMAT, "[analyze] does not know '%s'", key);
    if (!*value)
        return ks_fail(KS_FORMAT, "%s: expected a value, found nothing", key);
    if (is_flag(option)) {
        if (!ks_study_is_yes(value) && !is_no(value))
            return ks_fail(KS_FORMAT, "%s: expected yes or no, found '%s'", key, value);
        return is_no(value) ? KS_OK : take(key, value, true);
    }
    return take(key, value, false);
}

/* popt's strings belong to whoever asked for them. */
void ks_study_forget_analyze(void)
{
    for (const struct poptOption *o = ks_options_table; o->longName || o->arg; o++) {
        if (is_flag(o)) {
            *(int *)o->arg = 0;
        } else if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_STRING) {
            free(*(char **)o->arg);
            *(char **)o->arg = NULL;
        }
    }
}

ks_status ks_study_read_analysis(const struct ks_study_analysis *asked, struct ks_options *analysis)
{
    ks_status status = KS_OK;

    for (size_t i = 0; i < asked->n && status == KS_OK; i++)
        status = ks_study_take_analyze(asked->setting[i].key, asked->setting[i].value);
    if (status == KS_OK)
        status = ks_options_read(analysis);
    ks_study_forget_analyze();
    return status;
}
