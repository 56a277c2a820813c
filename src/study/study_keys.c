#include "study/study_keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "program/options_table.h"

/* Options that a study's file must not set: the study itself decides where files go and what is
 * printed. */
static const char *const refused[] = {"out",      "json", "csv",    "apply",        "output",
                                      "gradient", "name", "layers", "eigenvectors", "start-at"};

/* The analyzer's options, and where their values go. */
struct reader {
    struct ks_options_given given;
    struct poptOption table[KS_OPTIONS_TABLE]; /* points into `given` */
};

static void start(struct reader *r)
{
    r->given = (struct ks_options_given){.json = 0};
    ks_options_table(&r->given, r->table);
}

/* NULL if a study must not set it, or if there is no such option. */
static const struct poptOption *find_option(const struct reader *r, const char *key)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(key, refused[i]) == 0)
            return NULL;
    for (const struct poptOption *o = r->table; o->longName; o++)
        if (strcmp(o->longName, key) == 0)
            return o;
    return NULL;
}

bool ks_study_is_flag(const char *key)
{
    const struct poptOption *o;
    struct reader r;

    start(&r);
    o = find_option(&r, key);
    return o && o->argInfo == POPT_ARG_NONE;
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

static ks_status take_setting(const struct reader *r, const char *key, const char *value)
{
    const struct poptOption *o = find_option(r, key);

    if (!o)
        return ks_fail(KS_FORMAT, "unknown option '%s' for [analyze]", key);
    if (!*value)
        return ks_fail(KS_FORMAT, "%s: expected a value, found nothing", key);
    if (o->argInfo == POPT_ARG_STRING) {
        free(*(char **)o->arg);
        return ks_copy_string(value, o->arg);
    }
    if (!ks_study_is_yes(value) && !is_no(value))
        return ks_fail(KS_FORMAT, "%s: expected yes or no, found '%s'", key, value);
    *(int *)o->arg = ks_study_is_yes(value);
    return KS_OK;
}

ks_status ks_study_read_analysis(const struct ks_study_analysis *asked, struct ks_options *options)
{
    struct reader r;
    ks_status status = KS_OK;

    start(&r);
    for (size_t i = 0; i < asked->n && status == KS_OK; i++)
        status = take_setting(&r, asked->setting[i].key, asked->setting[i].value);
    if (status == KS_OK)
        status = ks_options_read(&r.given, options);
    ks_options_clear(&r.given); /* no option that a study may give leaves a string in `options` */
    return status;
}
