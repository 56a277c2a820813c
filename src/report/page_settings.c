/* Settings and versions at the end of the report. */
#include "report/page.h"

#include <stdlib.h>

#include <jansson.h>

#include "config.h"
#include "document/html.h"

static void print_pair(FILE *out, const char *key, const char *value)
{
    ks_html_between(out, "<code>", key, " = ");
    ks_html_between(out, "", value, "</code>");
}

void ks_page_print_settings(const struct ks_study_analysis *a, FILE *out)
{
    for (size_t i = 0; i < a->n; i++) {
        fputs(i ? ", " : "", out);
        print_pair(out, a->setting[i].key, a->setting[i].value);
    }
    fputs(a->n ? "" : "the analyzer's defaults", out);
}

static void print_analysis(const struct ks_study_analysis *a, FILE *out)
{
    ks_html_between(out, "<dt>Analysis: ", a->name, "</dt>\n<dd>");
    ks_page_print_settings(a, out);
    if (a->scope.checkpoints == KS_STUDY_TRAINED)
        fputs("; of the checkpoints after the first update", out);
    if (a->scope.checkpoints == KS_STUDY_LAST)
        fputs("; of the last checkpoint", out);
    if (a->scope.architectures)
        ks_html_between(out, "; of the architectures ", a->scope.architectures, "");
    fputs("</dd>\n", out);
}

ks_status ks_page_settings(void *data, FILE *out)
{
    const struct ks_study *s = ((const struct ks_page *)data)->results->study;

    fprintf(out, "<dl>\n<dt>Training</dt>\n<dd>");
    if (!ks_study_trains(s))
        fputs("elsewhere", out);
    for (const struct ks_key *key = ks_keys; key->name && ks_study_trains(s); key++) {
        char value[KS_VALUE_LENGTH];

        ks_key_print(key, &s->settings, value);
        fputs(key == ks_keys ? "" : ", ", out);
        print_pair(out, key->name, value);
    }
    fprintf(out, "</dd>\n<dt>Seeds</dt>\n<dd>");
    for (size_t i = 0; i < s->n_seeds; i++)
        fprintf(out, "%s%zu", i ? ", " : "", s->seed[i]);
    fprintf(out, "</dd>\n");
    for (size_t k = 0; k < s->n_analyses; k++)
        print_analysis(&s->analysis[k], out);
    fprintf(out, "</dl>\n");
    return KS_OK;
}

/* --- versions: distinct values over all runs and spectra, counted with jansson --- */

/* counts[name][value] += 1 */
static void count(json_t *counts, const char *name, const char *value)
{
    json_t *values = json_object_get(counts, name);

    if (!values) {
        values = json_object();
        json_object_set_new(counts, name, values);
    }
    json_object_set_new(values, value,
                        json_integer(json_integer_value(json_object_get(values, value)) + 1));
}

static void count_json(json_t *counts, const char *name, const json_t *value)
{
    char *text;

    if (json_is_string(value)) {
        count(counts, name, json_string_value(value));
        return;
    }
    text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (text)
        count(counts, name, text);
    free(text);
}

/* What run.json says; a run without it, or with a malformed one, is not counted. */
static ks_status count_run(const struct ks_results *r, const struct ks_result *run, json_t *counts)
{
    static const char *const names[] = {"processor", "blas_kernel", "products", "threads",
                                        "mujoco_flags"};
    char *path = NULL;
    json_t *file, *versions;

    KS_TRY(ks_results_path(r, run, "run.json", &path));
    file = json_load_file(path, 0, NULL);
    free(path);
    versions = json_object_get(file, "versions");
    for (void *i = json_object_iter(versions); i; i = json_object_iter_next(versions, i))
        count_json(counts, json_object_iter_key(i), json_object_iter_value(i));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        count_json(counts, names[i], json_object_get(file, names[i]));
    json_decref(file);
    return KS_OK;
}

static void count_spectrum(const struct ks_spectrum *s, json_t *counts)
{
    static const char *const names[] = {
        "analyzer_version", "library_versions", "operator", "batchnorm", "rewards", "precision",
        "products",         "basis_precision",  "order",    "probes",    "batches", "threads"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct ks_attribute *a = ks_attribute_find(&s->attributes, names[i]);
        char text[32];

        if (!a || (a->type != KS_ATTRIBUTE_STRING && a->type != KS_ATTRIBUTE_INTEGER))
            continue;
        snprintf(text, sizeof text, "%lld", (long long)a->integer);
        count(counts, names[i], a->type == KS_ATTRIBUTE_STRING ? a->string : text);
    }
}

/* The values of one name, each with its number if there are several. */
static void print_values(json_t *values, const char *what, FILE *out)
{
    for (void *i = json_object_iter(values); i; i = json_object_iter_next(values, i)) {
        ks_html_text(out, json_object_iter_key(i));
        if (json_object_size(values) > 1)
            fprintf(out, " (%s: %lld)", what,
                    (long long)json_integer_value(json_object_iter_value(i)));
        fputs("<br>", out);
    }
}

static void print_counts(const char *title, const char *what, json_t *counts, FILE *out)
{
    if (json_object_size(counts) == 0)
        return;
    fprintf(out, "<h3>%s</h3>\n<div class=\"scroll\"><table>\n", title);
    for (void *i = json_object_iter(counts); i; i = json_object_iter_next(counts, i)) {
        ks_html_between(out, "<tr><td>", json_object_iter_key(i), "</td><td class=\"text\">");
        print_values(json_object_iter_value(i), what, out);
        fputs("</td></tr>\n", out);
    }
    fprintf(out, "</table></div>\n");
}

static ks_status print_versions(const struct ks_results *r, json_t *const counts[2], FILE *out)
{
    for (size_t i = 0; i < r->n_runs; i++) {
        KS_TRY(count_run(r, &r->run[i], counts[0]));
        for (size_t k = 0; k < r->study->n_checkpoints; k++)
            if (r->run[i].spectrum[k])
                count_spectrum(r->run[i].spectrum[k], counts[1]);
    }
    fprintf(out, "<p>This page: KappaScope %s.</p>\n", KS_VERSION);
    print_counts("Runs", "runs", counts[0], out);
    print_counts("Spectra of the standard analysis", "spectra", counts[1], out);
    return KS_OK;
}

ks_status ks_page_versions(void *data, FILE *out)
{
    const struct ks_page *page = data;
    json_t *counts[] = {json_object(), json_object()};
    ks_status status = counts[0] && counts[1] ? print_versions(page->results, counts, out)
                                              : ks_fail(KS_MEMORY, "out of memory");

    json_decref(counts[0]);
    json_decref(counts[1]);
    return status;
}
