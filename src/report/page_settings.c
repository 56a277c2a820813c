/* Settings and versions at the end of the report. */
#include "report/page.h"

#include <stdlib.h>

#include <jansson.h>

#include "config.h"
#include "core/memory.h"

void ks_page_add_settings(const struct ks_study_analysis *a, struct ks_document *d)
{
    for (size_t i = 0; i < a->n; i++)
        ks_document_more(d, "%s<code>%s = %s</code>", i > 0 ? ", " : "", a->setting[i].key,
                         a->setting[i].value);
    ks_document_more(d, "%s", a->n > 0 ? "" : "the analyzer's defaults");
}

static void add_analysis(const struct ks_study_analysis *a, struct ks_document *d)
{
    KS_OWNED char *title = NULL;

    if (d->status == KS_OK)
        d->status = ks_print_string(&title, "Analysis: %s", a->name);
    ks_document_line(d, title ? title : "", "%s", "");
    ks_page_add_settings(a, d);
    if (a->scope.checkpoints == KS_STUDY_TRAINED)
        ks_document_more(d, "; of the checkpoints after the first update");
    if (a->scope.checkpoints == KS_STUDY_LAST)
        ks_document_more(d, "; of the last checkpoint");
    if (a->scope.architectures)
        ks_document_more(d, "; of the architectures %s", a->scope.architectures);
}

void ks_page_settings(void *data, struct ks_document *d)
{
    const struct ks_study *s = ((const struct ks_page *)data)->results->study;

    ks_document_line(d, "Training", "%s", ks_study_trains(s) ? "" : "elsewhere");
    for (const struct ks_key *key = ks_keys; key->name && ks_study_trains(s); key++) {
        char value[KS_VALUE_LENGTH];

        ks_key_print(key, &s->settings, value);
        ks_document_more(d, "%s<code>%s = %s</code>", key == ks_keys ? "" : ", ", key->name, value);
    }
    ks_document_line(d, "Seeds", "%s", "");
    for (size_t i = 0; i < s->n_seeds; i++)
        ks_document_more(d, "%s%zu", i > 0 ? ", " : "", s->seed[i]);
    for (size_t k = 0; k < s->n_analyses; k++)
        add_analysis(&s->analysis[k], d);
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
    KS_OWNED char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

    if (text)
        count(counts, name, json_is_string(value) ? json_string_value(value) : text);
}

/* What run.json says; a run without it, or with a malformed one, is not counted. */
static ks_status count_run(const struct ks_results *r, const struct ks_result *run, json_t *counts)
{
    static const char *const names[] = {"processor", "blas_kernel",  "products",
                                        "threads",   "mujoco_flags", "opengl"};
    KS_OWNED char *path = NULL;
    json_auto_t *file = NULL;
    json_t *versions, *value;
    const char *name;

    KS_TRY(ks_results_path(r, run, "run.json", &path));
    file = json_load_file(path, 0, NULL);
    versions = json_object_get(file, "versions");
    json_object_foreach(versions, name, value)
    {
        count_json(counts, name, value);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        count_json(counts, names[i], json_object_get(file, names[i]));
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

/* A row for each value of each name. */
static void add_counts(const char *title, const char *what, json_t *counts, struct ks_document *d)
{
    const char *name, *value;
    json_t *values, *number;

    if (json_object_size(counts) == 0)
        return;
    ks_document_columns(d, "", "%s<, value<, %s", title, what);
    json_object_foreach(counts, name, values)
    {
        json_object_foreach(values, value, number)
        {
            ks_document_cells(d, ks_cell_name(name), ks_cell_text(value),
                              ks_cell_count((size_t)json_integer_value(number)));
        }
    }
}

static ks_status count_all(const struct ks_results *r, json_t *runs, json_t *spectra)
{
    for (size_t i = 0; i < r->n_runs; i++) {
        KS_TRY(count_run(r, &r->run[i], runs));
        for (size_t k = 0; k < r->study->n_checkpoints; k++)
            if (r->run[i].spectrum[k])
                count_spectrum(r->run[i].spectrum[k], spectra);
    }
    return KS_OK;
}

void ks_page_versions(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;
    json_auto_t *runs = json_object(), *spectra = json_object();

    ks_document_add(d, KS_BLOCK_TEXT, "This page: KappaScope %s.", KS_VERSION);
    if (d->status == KS_OK)
        d->status = runs && spectra ? count_all(page->results, runs, spectra)
                                    : ks_fail(KS_MEMORY, "out of memory");
    add_counts("of the runs", "runs", runs, d);
    add_counts("of the standard analysis", "spectra", spectra, d);
}
