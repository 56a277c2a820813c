#include "ks/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ks/attribute.h"
#include "ks/memory.h"
#include "ks/say.h"
#include "ks/summary.h"

/* Of the root attributes, those that say what was computed, and on what: the same in every row. */
static const char *const settings[] = {
    "operator",     "batchnorm",    "precision", "order",           "probes",  "probe_seed",
    "dimension",    "weight_decay", "scale",     "batches",         "critic",  "layer",
    "blas_version", "blas_kernel",  "threads",   "basis_precision", "rewards", "compat"};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

/* The columns of the table: the spectrum's ends, the paper's figures beside what holds, and what of
 * the spectrum lies apart or is zero. */
static const char *const columns[] = {"lambda_max", "lambda_min", "kappa",    "kappa_lower_bound",
                                      "kappa_q90",  "kurtosis",   "outliers", "zero_mass"};
enum { COLUMNS = sizeof columns / sizeof columns[0], COLUMN = 10 };

static ks_status written(struct ks_report *r)
{
    if (r->failed || (fflush(r->out) == 0 && !ferror(r->out)))
        return KS_OK;
    r->failed = true;
    return ks_fail(KS_FULL, "standard output: %s", strerror(errno));
}

/* The fewest steps that a probe has. */
static size_t fewest_steps(const struct ks_spectrum *s)
{
    size_t fewest = s->order;

    for (size_t i = 0; s->steps && i < s->probes; i++)
        fewest = (size_t)s->steps[i] < fewest ? (size_t)s->steps[i] : fewest;
    return fewest;
}

static const char *claim_of(const struct ks_spectrum *s)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, "claim");

    return a && a->type == KS_ATTRIBUTE_STRING ? a->string : "";
}

static int column_width(size_t k)
{
    return (int)(strlen(columns[k]) > COLUMN ? strlen(columns[k]) : COLUMN);
}

static ks_status add_table_row(struct ks_report *r, const char *checkpoint,
                               const struct ks_spectrum *s)
{
    const struct ks_attribute *n = ks_attribute_find(&s->attributes, "dimension");
    char *longer = NULL, name[4096];

    if (r->rows == 0) {
        fprintf(r->out, "%-*s %9s %5s", r->width, "checkpoint", "n", "m");
        for (size_t k = 0; k < COLUMNS; k++)
            fprintf(r->out, " %*s", column_width(k), columns[k]);
        fputc('\n', r->out);
    }
    ks_escape(checkpoint, sizeof name, name);
    fprintf(r->out, "%-*s %9lld %5zu", r->width, name, n ? (long long)n->integer : -1,
            fewest_steps(s));
    for (size_t k = 0; k < COLUMNS; k++) {
        double value = ks_summary_get(s, columns[k]);

        fprintf(r->out, " %*.4g", column_width(k), isnan(value) ? NAN : value);
    }
    fputc('\n', r->out);
    KS_TRY(ks_print_string(&longer, "%s\n%s: %s\n", r->claims ? r->claims : "", name, claim_of(s)));
    free(r->claims);
    r->claims = longer;
    return KS_OK;
}

/* JSON strings are UTF-8: in a name that is not, all bytes beyond ASCII become '?'. */
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    char *plain = NULL;

    if (value || ks_copy_string(text, &plain) != KS_OK)
        return value;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    value = json_string(plain);
    free(plain);
    return value;
}

static json_t *json_value(const struct ks_attribute *a)
{
    switch (a->type) {
    case KS_ATTRIBUTE_INTEGER:
        return json_integer(a->integer);
    case KS_ATTRIBUTE_STRING:
        return json_text(a->string);
    case KS_ATTRIBUTE_NUMBER:
        return isfinite(a->number) ? json_real(a->number) : json_null();
    default:
        return json_null();
    }
}

static ks_status add_json(const struct ks_report *r, const char *checkpoint,
                          const struct ks_spectrum *s)
{
    json_t *object = json_object();
    bool failed = json_object_set_new(object, "checkpoint", json_text(checkpoint)) != 0;
    char *line = NULL;

    for (size_t k = 0; k < SETTINGS; k++) {
        const struct ks_attribute *a = ks_attribute_find(&s->attributes, settings[k]);

        if (a)
            failed |= json_object_set_new(object, a->name, json_value(a)) != 0;
    }
    for (size_t i = 0; i < s->summary.n; i++)
        failed |= json_object_set_new(object, s->summary.list[i].name,
                                      json_value(&s->summary.list[i])) != 0;
    failed |= json_object_set_new(object, "claim", json_text(claim_of(s))) != 0;
    if (!failed)
        line = json_dumps(object, JSON_COMPACT);
    if (line)
        fprintf(r->out, "%s\n", line);
    failed = !line;
    free(line);
    json_decref(object);
    return failed ? ks_fail(KS_MEMORY, "out of memory: a summary as JSON") : KS_OK;
}

/* RFC 4180: quoted where needed, quotes doubled. */
static void print_csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

static void print_csv_value(FILE *out, const struct ks_attribute *a)
{
    fputc(',', out);
    if (a->type == KS_ATTRIBUTE_INTEGER)
        fprintf(out, "%lld", (long long)a->integer);
    else if (a->type == KS_ATTRIBUTE_STRING)
        print_csv_text(out, a->string);
    else if (isnan(a->number))
        fputs("nan", out); /* without the sign that printf may show */
    else
        fprintf(out, "%.17g", a->number);
}

static void add_csv_row(const struct ks_report *r, const char *checkpoint,
                        const struct ks_spectrum *s)
{
    if (r->rows == 0) {
        fputs("checkpoint", r->out);
        for (size_t k = 0; k < SETTINGS; k++)
            if (ks_attribute_find(&s->attributes, settings[k]))
                fprintf(r->out, ",%s", settings[k]);
        for (size_t i = 0; i < s->summary.n; i++)
            fprintf(r->out, ",%s", s->summary.list[i].name);
        fputc('\n', r->out);
    }
    print_csv_text(r->out, checkpoint);
    for (size_t k = 0; k < SETTINGS; k++) {
        const struct ks_attribute *a = ks_attribute_find(&s->attributes, settings[k]);

        if (a)
            print_csv_value(r->out, a);
    }
    for (size_t i = 0; i < s->summary.n; i++)
        print_csv_value(r->out, &s->summary.list[i]);
    fputc('\n', r->out);
}

ks_status ks_report_add(struct ks_report *r, const char *checkpoint, const struct ks_spectrum *s)
{
    switch (r->form) {
    case KS_REPORT_TABLE:
        KS_TRY(add_table_row(r, checkpoint, s));
        break;
    case KS_REPORT_JSON:
        KS_TRY(add_json(r, checkpoint, s));
        break;
    case KS_REPORT_CSV:
        add_csv_row(r, checkpoint, s);
        break;
    }
    r->rows++;
    return written(r);
}

ks_status ks_report_end(struct ks_report *r)
{
    if (r->claims)
        fputs(r->claims, r->out);
    free(r->claims);
    r->claims = NULL;
    return written(r);
}
