#define _XOPEN_SOURCE 700 /* scandir, alphasort, realpath */
#include "report/page.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/process.h"
#include "document/html.h"
#include "document/template.h"
#include "io/file.h"
#include "report/plots.h"

/* --- plots, and links to files --- */

static ks_status print_links(const struct ks_page *page, const char *name, FILE *out)
{
    static const char *const formats[] = {"svg", "pdf", "png"};
    const char *before = " <span class=\"links\">(";

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        KS_OWNED char *path = NULL;

        KS_TRY(ks_print_string(&path, "%s/figures/%s.%s", page->results->dir, name, formats[i]));
        if (ks_path_exists(path)) {
            fprintf(out, "%s<a href=\"figures/%s.%s\">%s</a>", before, name, formats[i],
                    formats[i]);
            before = ", ";
        }
    }
    fprintf(out, ")</span>");
    return KS_OK;
}

/* `path`: of the SVG file. */
static ks_status print_figure(const struct ks_page *page, const struct ks_plot *plot,
                              const char *path, FILE *out)
{
    fprintf(out, "<figure id=\"plot-%s\">\n", plot->name);
    ks_html_between(out, "<h3>", plot->title, "</h3>\n");
    ks_html_between(out, "<div class=\"plot\" role=\"img\" aria-label=\"", plot->title,
                    "\" tabindex=\"0\">");
    KS_TRY(ks_html_svg(out, path, plot->name));
    ks_html_between(out, "</div>\n<figcaption>", plot->caption, "");
    KS_TRY(print_links(page, plot->name, out));
    fprintf(out, "</figcaption>\n</figure>\n");
    return KS_OK;
}

static ks_status print_plot(struct ks_page *page, size_t i, FILE *out)
{
    const struct ks_plot *plot = &ks_plots[i];
    KS_OWNED char *path = NULL;

    page->shown[i] = true;
    KS_TRY(ks_print_string(&path, "%s/figures/%s.svg", page->results->dir, plot->name));
    if (ks_path_exists(path))
        return print_figure(page, plot, path, out);
    fprintf(out, "<p class=\"note\" id=\"plot-%s\">", plot->name);
    ks_html_between(out, "", plot->title, ": not drawn (");
    ks_html_between(out, "", plot->missing, ").</p>\n");
    return KS_OK;
}

ks_status ks_page_plot(void *data, const char *name, FILE *out)
{
    struct ks_page *page = data;

    for (size_t i = 0; i < KS_PLOTS; i++)
        if (strcmp(ks_plots[i].name, name) == 0)
            return print_plot(page, i, out);
    return ks_fail(KS_FORMAT, "plots/report.html: no plot is named '%s'", name);
}

/* All plots that have not been named. */
static ks_status print_other_plots(void *data, FILE *out)
{
    struct ks_page *page = data;

    for (size_t i = 0; i < KS_PLOTS; i++)
        if (!page->shown[i])
            KS_TRY(print_plot(page, i, out));
    return KS_OK;
}

static int is_table(const struct dirent *entry)
{
    return ks_path_ends(entry->d_name, ".csv");
}

/* A file's name as part of a link: bytes other than letters, digits and -._~ as %XX. */
static void print_link(FILE *out, const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')
            putc(*c, out);
        else
            fprintf(out, strchr("0123456789-._~", *c) ? "%c" : "%%%02X", *c);
}

/* Links to the CSV files in dir/tables. */
static ks_status print_files(void *data, FILE *out)
{
    const struct ks_page *page = data;
    struct dirent **list = NULL;
    KS_OWNED char *folder = NULL;
    int n;

    KS_TRY(ks_print_string(&folder, "%s/tables", page->results->dir));
    n = scandir(folder, &list, is_table, alphasort);
    fprintf(out, "<ul class=\"files\">\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "<li><a href=\"tables/");
        print_link(out, list[i]->d_name);
        ks_html_between(out, "\">", list[i]->d_name, "</a></li>\n");
        free(list[i]);
    }
    free(list);
    fprintf(out, "</ul>\n");
    return KS_OK;
}

/* --- sections of one line --- */

static const struct ks_study *study_of(const void *data)
{
    return ((const struct ks_page *)data)->results->study;
}

/* The task, and how large the study is. */
static ks_status print_title(void *data, FILE *out)
{
    const size_t n = ((const struct ks_page *)data)->table->n_rows, seeds = study_of(data)->n_seeds;

    ks_html_text(out, study_of(data)->env);
    fprintf(out, ": %zu architecture%s, %zu seed%s", n, n == 1 ? "" : "s", seeds,
            seeds == 1 ? "" : "s");
    return KS_OK;
}

/* The name of the study's folder: the copy of the study's file in it is always study.study. */
static ks_status print_folder(void *data, FILE *out)
{
    KS_OWNED char *path = realpath(((const struct ks_page *)data)->results->dir, NULL);

    ks_html_text(out, path ? ks_path_base(path) : study_of(data)->name);
    return KS_OK;
}

static ks_status print_env(void *data, FILE *out)
{
    ks_html_text(out, study_of(data)->env);
    return KS_OK;
}

static ks_status print_text(void *data, FILE *out)
{
    ks_html_text(out, study_of(data)->text);
    return KS_OK;
}

static bool has_warnings(const void *data)
{
    return ((const struct ks_page *)data)->results->n_warnings > 0;
}

static void add_warnings(void *data, struct ks_document *d)
{
    const struct ks_results *r = ((const struct ks_page *)data)->results;

    for (size_t i = 0; i < r->n_warnings; i++)
        ks_document_add(d, KS_BLOCK_ITEM, "%s", r->warning[i]);
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

static const struct ks_summary_table *table_of(const void *data)
{
    return ((const struct ks_page *)data)->table;
}

static bool has_verdicts(const void *data)
{
    return table_of(data)->claims && table_of(data)->claims->n > 0;
}

static bool has_theorems(const void *data)
{
    return table_of(data)->theorems.n > 0;
}

static bool has_prediction(const void *data)
{
    return table_of(data)->prediction.n > 0;
}

static bool has_correlations(const void *data)
{
    return table_of(data)->correlations.n > 0;
}

static const struct ks_template_section sections[] = {
    {"title", .print = print_title},
    {"folder", .print = print_folder},
    {"env", .print = print_env},
    {"text", .print = print_text},
    {"extent", .add = ks_page_extent},
    {"headline", .add = ks_page_headline},
    {"evidence", .add = ks_page_evidence},
    {"warnings", .add = add_warnings, .present = has_warnings},
    {"verdicts", .add = ks_page_verdicts, .present = has_verdicts},
    {"theorems", .add = ks_page_theorems, .present = has_theorems},
    {"architectures", .add = ks_page_architectures},
    {"targets", .add = add_targets},
    {"analyses", .add = ks_page_analyses},
    {"plot", .print_named = ks_page_plot},
    {"other_plots", .print = print_other_plots},
    {"correlations", .add = ks_page_correlations, .present = has_correlations},
    {"prediction", .add = ks_page_prediction, .present = has_prediction},
    {"statements", .add = ks_page_statements, .present = ks_page_has_statements},
    {"settings", .add = ks_page_settings},
    {"versions", .add = ks_page_versions},
    {"files", .print = print_files},
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
