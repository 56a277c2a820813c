#define _XOPEN_SOURCE 700 /* scandir, alphasort */
#define _XOPEN_SOURCE 700 /* realpath */
#include "report/page.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/text.h"
#include "report/plots.h"
#include "report/template.h"

/* --- plots, and links to files --- */

static ks_status print_links(const struct ks_page *page, const char *name, FILE *out)
{
    static const char *const formats[] = {"svg", "pdf", "png"};
    const char *before = " <span class=\"links\">(";

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *path = NULL;

        KS_TRY(ks_print_string(&path, "%s/figures/%s.%s", page->results->dir, name, formats[i]));
        if (ks_path_exists(path)) {
            fprintf(out, "%s<a href=\"figures/%s.%s\">%s</a>", before, name, formats[i],
                    formats[i]);
            before = ", ";
        }
        free(path);
    }
    fprintf(out, ")</span>");
    return KS_OK;
}

/* The file from its <svg> on: a page has no XML declaration in its middle. */
static ks_status print_svg(const char *path, FILE *out)
{
    char *text = NULL, *start;
    ks_status status = KS_OK;

    KS_TRY(ks_text_read(path, &text, NULL));
    start = strstr(text, "<svg");
    if (start)
        fputs(start, out);
    else
        status = ks_fail(KS_FORMAT, "%s: expected an <svg> element, found none", path);
    free(text);
    return status;
}

/* `path`: of the SVG file. */
static ks_status print_figure(const struct ks_page *page, const struct ks_plot *plot,
                              const char *path, FILE *out)
{
    fprintf(out, "<figure id=\"plot-%s\">\n<h3>", plot->name);
    ks_html_text(out, plot->title);
    fprintf(out, "</h3>\n<div class=\"plot\" role=\"img\" aria-label=\"");
    ks_html_text(out, plot->title);
    fprintf(out, "\" tabindex=\"0\">");
    KS_TRY(print_svg(path, out));
    fprintf(out, "</div>\n<figcaption>");
    ks_html_text(out, plot->caption);
    KS_TRY(print_links(page, plot->name, out));
    fprintf(out, "</figcaption>\n</figure>\n");
    return KS_OK;
}

/* Why the study has no such plot. */
static void print_missing(const struct ks_plot *plot, FILE *out)
{
    fprintf(out, "<p class=\"note\" id=\"plot-%s\">", plot->name);
    ks_html_text(out, plot->title);
    fputs(": not drawn (", out);
    ks_html_text(out, plot->missing);
    fputs(").</p>\n", out);
}

static ks_status print_plot(struct ks_page *page, size_t i, FILE *out)
{
    const struct ks_plot *plot = &ks_plots[i];
    ks_status status = KS_OK;
    char *path = NULL;

    page->shown[i] = true;
    KS_TRY(ks_print_string(&path, "%s/figures/%s.svg", page->results->dir, plot->name));
    if (ks_path_exists(path))
        status = print_figure(page, plot, path, out);
    else
        print_missing(plot, out);
    free(path);
    return status;
}

ks_status ks_page_plot(struct ks_page *page, const char *name, FILE *out)
{
    for (size_t i = 0; i < KS_PAGE_PLOTS && ks_plots[i].name; i++)
        if (strcmp(ks_plots[i].name, name) == 0)
            return print_plot(page, i, out);
    return ks_fail(KS_FORMAT, "%s/report.html: no plot is named '%s'", page->scripts, name);
}

ks_status ks_page_other_plots(struct ks_page *page, FILE *out)
{
    for (size_t i = 0; i < KS_PAGE_PLOTS && ks_plots[i].name; i++)
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

ks_status ks_page_files(const struct ks_page *page, FILE *out)
{
    struct dirent **list = NULL;
    char *folder = NULL;
    int n;

    KS_TRY(ks_print_string(&folder, "%s/tables", page->results->dir));
    n = scandir(folder, &list, is_table, alphasort);
    free(folder);
    fprintf(out, "<ul class=\"files\">\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "<li><a href=\"tables/");
        print_link(out, list[i]->d_name);
        fprintf(out, "\">");
        ks_html_text(out, list[i]->d_name);
        fprintf(out, "</a></li>\n");
        free(list[i]);
    }
    free(list);
    fprintf(out, "</ul>\n");
    return KS_OK;
}

/* --- parts of one line --- */

static const struct ks_study *study_of(void *data)
{
    return ((const struct ks_page *)data)->results->study;
}

/* The name of the study's folder: the copy of the study's file in it is always study.study. */
static ks_status part_study(void *data, const char *argument, FILE *out)
{
    char *path = realpath(((const struct ks_page *)data)->results->dir, NULL);

    (void)argument;
    ks_html_text(out, path ? ks_path_base(path) : study_of(data)->name);
    free(path);
    return KS_OK;
}

static ks_status part_env(void *data, const char *argument, FILE *out)
{
    (void)argument;
    ks_html_text(out, study_of(data)->env);
    return KS_OK;
}

static ks_status part_text(void *data, const char *argument, FILE *out)
{
    (void)argument;
    ks_html_text(out, study_of(data)->text);
    return KS_OK;
}

/* How large the study is. */
static ks_status part_extent(void *data, const char *argument, FILE *out)
{
    const struct ks_page *page = data;
    const struct ks_study *s = page->results->study;
    size_t n = page->table->n_rows;

    (void)argument;
    fprintf(out, "%zu architecture%s, %zu seed%s, %zu environment steps per run", n,
            n == 1 ? "" : "s", s->n_seeds, s->n_seeds == 1 ? "" : "s", s->stop ? s->end : s->steps);
    if (s->stop)
        fprintf(out, ": <b>stopped early</b>, of %zu planned", s->steps);
    fprintf(out, ". %zu checkpoint%s per run, of which those at the first update are not pooled.",
            s->n_checkpoints, s->n_checkpoints == 1 ? "" : "s");
    if (n < s->n_architectures)
        fprintf(out, " <b>%zu of the study's %zu architectures are left out</b>: see the warnings.",
                s->n_architectures - n, s->n_architectures);
    return KS_OK;
}

static bool has_warnings(void *data)
{
    return ((const struct ks_page *)data)->results->n_warnings > 0;
}

static ks_status part_warnings(void *data, const char *argument, FILE *out)
{
    const struct ks_results *r = ((const struct ks_page *)data)->results;

    (void)argument;
    for (size_t i = 0; i < r->n_warnings; i++) {
        fputs("<li>", out);
        ks_html_text(out, r->warning[i]);
        fputs("</li>\n", out);
    }
    return KS_OK;
}

/* Which rewards the targets are of, and what eigenvalues are averaged over. */
static ks_status part_targets(void *data, const char *argument, FILE *out)
{
    const struct ks_settings *set = &study_of(data)->settings;

    (void)argument;
    fprintf(out,
            "The targets in the checkpoints' batches are of <b>%s</b> rewards%s Eigenvalues are "
            "those of the loss averaged over the checkpoint's %zu minibatches; the published code "
            "divides by that number once more.",
            set->raw_rewards || !set->reward_normalization ? "raw" : "normalized",
            set->raw_rewards && set->reward_normalization
                ? ", as in the published code, although training normalizes rewards. Raw rewards "
                  "shift the targets and pile up mass on the last atom."
            : set->reward_normalization
                ? ", as in training (the published code uses raw rewards here; raw_rewards = 1 in "
                  "the study's [train] reproduces that)."
                : ", as in training: reward normalization is off.",
            set->analysis_minibatches);
    return KS_OK;
}

/* --- parts in files of their own --- */

#define PART(name)                                                                                 \
    static ks_status part_##name(void *data, const char *argument, FILE *out)                      \
    {                                                                                              \
        (void)argument;                                                                            \
        return ks_page_##name(data, out);                                                          \
    }
PART(headline)
PART(limits)
PART(evidence)
PART(verdicts)
PART(theorems)
PART(architectures)
PART(analyses)
PART(other_plots)
PART(correlations)
PART(statements)
PART(settings)
PART(versions)
PART(files)
#undef PART

static ks_status part_plot(void *data, const char *argument, FILE *out)
{
    return ks_page_plot(data, argument, out);
}

static bool has_rows(const struct ks_csv *csv)
{
    return csv && csv->rows > 0;
}

static bool has_verdicts(void *data)
{
    return has_rows(((const struct ks_page *)data)->claims);
}

static bool has_theorems(void *data)
{
    return has_rows(((const struct ks_page *)data)->theorems);
}

static bool has_correlations(void *data)
{
    return has_rows(((const struct ks_page *)data)->correlation);
}

static bool has_statements(void *data)
{
    return ks_page_has_statements(data);
}

static const struct ks_template_part parts[] = {
    {"study", part_study, NULL},
    {"env", part_env, NULL},
    {"text", part_text, NULL},
    {"extent", part_extent, NULL},
    {"headline", part_headline, NULL},
    {"limits", part_limits, NULL},
    {"evidence", part_evidence, NULL},
    {"warnings", part_warnings, has_warnings},
    {"verdicts", part_verdicts, has_verdicts},
    {"theorems", part_theorems, has_theorems},
    {"architectures", part_architectures, NULL},
    {"targets", part_targets, NULL},
    {"analyses", part_analyses, NULL},
    {"plot", part_plot, NULL},
    {"other_plots", part_other_plots, NULL},
    {"correlations", part_correlations, has_correlations},
    {"statements", part_statements, has_statements},
    {"settings", part_settings, NULL},
    {"versions", part_versions, NULL},
    {"files", part_files, NULL},
    {NULL, NULL, NULL},
};

/* *csv = the table, or NULL if there is none. */
static ks_status read_table(const struct ks_results *r, const char *name, struct ks_csv **csv)
{
    char *path = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_print_string(&path, "%s/tables/%s.csv", r->dir, name));
    if (ks_path_exists(path))
        status = ks_csv_read(path, false, csv);
    free(path);
    return status;
}

static ks_status write_page(struct ks_page *page)
{
    char *template = NULL, *path = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_print_string(&template, "%s/report.html", page->scripts));
    KS_GO(ks_print_string(&path, "%s/report.html", page->results->dir));
    status = ks_template_write(template, parts, page, path);
done:
    free(template);
    free(path);
    return status;
}

ks_status ks_page_write(const struct ks_results *results, const struct ks_summary_table *table)
{
    struct ks_page page = {.results = results, .table = table};
    ks_status status = KS_OK;

    KS_GO(ks_installed_shared("plots", &page.scripts));
    KS_GO(read_table(results, "claims", &page.claims));
    KS_GO(read_table(results, "correlation", &page.correlation));
    KS_GO(read_table(results, "theorems", &page.theorems));
    KS_GO(write_page(&page));
done:
    free(page.scripts);
    ks_csv_free(page.claims);
    ks_csv_free(page.correlation);
    ks_csv_free(page.theorems);
    return status;
}
