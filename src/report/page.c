#define _XOPEN_SOURCE 700 /* scandir, alphasort, realpath */
#include "report/page.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/process.h"
#include "document/template.h"
#include "io/file.h"
#include "report/plots.h"

/* What a link to a file may contain. */
static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

/* --- plots, and links to files --- */

/* A plot with links to its files or, if it has not been drawn, why. */
static void add_plot(struct ks_page *page, size_t i, struct ks_document *d)
{
    static const char *const formats[] = {"svg", "pdf", "png"};
    const struct ks_plot *plot = &ks_plots[i];
    const char *before = " (";
    char path[KS_PATH], id[64];

    page->shown[i] = true;
    snprintf(path, sizeof path, "%s/figures/%s.svg", page->results->dir, plot->name);
    snprintf(id, sizeof id, "plot-%s", plot->name);
    ks_document_add(d, KS_BLOCK_FIGURE, "%s", ks_path_exists(path) ? path : "");
    ks_document_cell(d, ks_cell_link(ks_cell_note(ks_cell_text(""), plot->title), id));
    if (!ks_path_exists(path)) {
        ks_document_more(d, "not drawn (%s).", plot->missing);
        return;
    }
    ks_document_more(d, "%s", plot->caption);
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        snprintf(path, sizeof path, "%s/figures/%s.%s", page->results->dir, plot->name, formats[k]);
        if (!ks_path_exists(path))
            continue;
        ks_document_more(d, "%s<a href='figures/%s.%s'>%s</a>", before, plot->name, formats[k],
                         formats[k]);
        before = ", ";
    }
    ks_document_more(d, ")");
}

/* The plot of that name. */
static void add_named_plot(void *data, const char *name, struct ks_document *d)
{
    for (size_t i = 0; i < KS_PLOTS; i++)
        if (strcmp(ks_plots[i].name, name) == 0) {
            add_plot(data, i, d);
            return;
        }
    d->status = ks_fail(KS_FORMAT, "plots/report.html: no plot is named '%s'", name);
}

/* All plots that have not been named. */
static void add_other_plots(void *data, struct ks_document *d)
{
    struct ks_page *page = data;

    for (size_t i = 0; i < KS_PLOTS; i++)
        if (!page->shown[i])
            add_plot(page, i, d);
}

static int is_table(const struct dirent *entry)
{
    return ks_path_ends(entry->d_name, ".csv");
}

/* Links to the CSV files in dir/tables, in which bytes other than letters, digits and -._~ are %XX.
 */
static void add_files(void *data, struct ks_document *d)
{
    struct dirent **list = NULL;
    char folder[KS_PATH];
    int n;

    snprintf(folder, sizeof folder, "%s/tables", ((const struct ks_page *)data)->results->dir);
    n = scandir(folder, &list, is_table, alphasort);
    for (int i = 0; i < n; i++) {
        char address[3 * sizeof list[i]->d_name];
        size_t size = 0;

        for (const unsigned char *c = (const unsigned char *)list[i]->d_name; *c; c++)
            size += (size_t)snprintf(address + size, 4, strchr(PLAIN, *c) ? "%c" : "%%%02X", *c);
        ks_document_add(d, KS_BLOCK_ITEM, "<a href='tables/%s'>%s</a>", address, list[i]->d_name);
        free(list[i]);
    }
    free(list);
}

/* --- words in lines of the page --- */

static const struct ks_study *study_of(const void *data)
{
    return ((const struct ks_page *)data)->results->study;
}

/* The task, and how large the study is. */
static void add_title(void *data, struct ks_document *d)
{
    const size_t n = ((const struct ks_page *)data)->table->n_rows, seeds = study_of(data)->n_seeds;

    ks_document_add(d, KS_BLOCK_WORDS, "%s: %zu architecture%s, %zu seed%s", study_of(data)->env, n,
                    n == 1 ? "" : "s", seeds, seeds == 1 ? "" : "s");
}

/* The name of the study's folder: the copy of the study's file in it is always study.study. */
static void add_folder(void *data, struct ks_document *d)
{
    KS_OWNED char *path = realpath(((const struct ks_page *)data)->results->dir, NULL);

    ks_document_add(d, KS_BLOCK_WORDS, "%s", path ? ks_path_base(path) : study_of(data)->name);
}

static void add_env(void *data, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_WORDS, "%s", study_of(data)->env);
}

static void add_text(void *data, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_WORDS, "%s", study_of(data)->text);
}

static void add_warnings(void *data, struct ks_document *d)
{
    const struct ks_results *r = ((const struct ks_page *)data)->results;

    for (size_t i = 0; i < r->warnings.n; i++)
        ks_document_add(d, KS_BLOCK_ITEM, "%s", r->warnings.text[i]);
}

/* Which rewards the targets are of, and what eigenvalues are averaged over. */
static void add_targets(void *data, struct ks_document *d)
{
    const struct ks_settings *set = &study_of(data)->settings;

    if (!ks_study_trains(study_of(data))) {
        ks_document_add(d, KS_BLOCK_TEXT,
                        "Eigenvalues are those of the loss averaged over the minibatches in the "
                        "checkpoint, with the targets that are in it.");
        return;
    }
    ks_document_add(
        d, KS_BLOCK_TEXT,
        "The targets in the checkpoints' batches are of <b>%s</b> rewards%s Eigenvalues are those "
        "of the loss averaged over the checkpoint's %zu minibatches; the published code divides by "
        "that number once more.",
        set->raw_rewards || !set->reward_normalization ? "raw" : "normalized",
        set->raw_rewards && set->reward_normalization
            ? ", as in the published code, although training normalizes rewards. Raw rewards "
              "shift the targets and pile up mass on the last atom."
        : set->reward_normalization
            ? ", as in training (the published code uses raw rewards here; raw_rewards = 1 in "
              "the study's [train] reproduces that)."
            : ", as in training: reward normalization is off.",
        set->analysis_minibatches);
}

/* --- the page --- */

static const struct ks_template_section sections[] = {
    {"title", .add = add_title},
    {"folder", .add = add_folder},
    {"env", .add = add_env},
    {"text", .add = add_text},
    {"extent", .add = ks_page_extent},
    {"headline", .add = ks_page_headline},
    {"evidence", .add = ks_page_evidence},
    {"warnings", .add = add_warnings},
    {"verdicts", .add = ks_page_verdicts},
    {"theorems", .add = ks_page_theorems},
    {"architectures", .add = ks_page_architectures},
    {"targets", .add = add_targets},
    {"analyses", .add = ks_page_analyses},
    {"plot", .add_named = add_named_plot},
    {"other_plots", .add = add_other_plots},
    {"correlations", .add = ks_page_correlations},
    {"prediction", .add = ks_page_prediction},
    {"statements", .add = ks_page_statements},
    {"settings", .add = ks_page_settings},
    {"versions", .add = ks_page_versions},
    {"files", .add = add_files},
    {.name = NULL},
};

ks_status ks_page_write(const struct ks_results *results, const struct ks_summary_table *table)
{
    KS_OWNED char *scripts = NULL, *template = NULL, *path = NULL;
    struct ks_page page = {.results = results, .table = table};

    KS_TRY(ks_installed_shared("plots", &scripts));
    KS_TRY(ks_print_string(&template, "%s/report.html", scripts));
    KS_TRY(ks_print_string(&path, "%s/report.html", results->dir));
    return ks_template_write(template, sections, &page, path);
}
