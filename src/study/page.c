/* The report: one HTML file with the table and the plots, without scripts. */
#include "study/plots.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/memory.h"
#include "io/text.h"

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            putc(*text, out);
        }
}

static const char STYLE[] =
    "body{font-family:system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "line-height:1.5;color:#1a1a1a}img{width:100%;height:auto}figure{margin:2rem 0}"
    "figcaption{color:#444}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left;font-family:monospace}"
    "td small{color:#666;white-space:nowrap}.scroll{overflow-x:auto}"
    "pre{background:#f5f5f5;padding:1rem;overflow-x:auto}";

static void print_head(const struct ks_results *r, FILE *out)
{
    const struct ks_study *s = r->study;

    fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width\">\n<title>KappaScope: ");
    print_escaped(out, s->env);
    fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>Conditioning of critics on ",
            STYLE);
    print_escaped(out, s->env);
    fprintf(out, "</h1>\n<p>%zu architectures, %zu seed%s, %zu environment steps per run",
            s->n_architectures, s->n_seeds, s->n_seeds == 1 ? "" : "s", s->steps);
    if (s->stop > 0)
        fprintf(out, ", <b>stopped at step %zu</b>", s->end);
    fprintf(out,
            ", %zu checkpoints per run, of which the one at the first update is not pooled. "
            "KappaScope %s.</p>\n",
            s->n_checkpoints, KS_VERSION);
}

static void print_warnings(const struct ks_results *r, FILE *out)
{
    if (r->n_warnings == 0)
        return;
    fprintf(out, "<h2>Warnings</h2>\n<ul>\n");
    for (size_t i = 0; i < r->n_warnings; i++) {
        fputs("<li>", out);
        print_escaped(out, r->warning[i]);
        fputs("</li>\n", out);
    }
    fprintf(out, "</ul>\n");
}

static void print_value(const struct ks_estimate *e, FILE *out)
{
    char text[32];

    ks_value_print(e->value, text);
    fprintf(out, "<td>%s", text);
    if (!isnan(e->low)) {
        ks_value_print(e->low, text);
        fprintf(out, "<br><small>[%s, ", text);
        ks_value_print(e->high, text);
        fprintf(out, "%s]</small>", text);
    }
    fputs("</td>", out);
}

/* The combined interval, and in small print, with several runs, what all their intervals cover. */
static void print_range(const struct ks_range *range, FILE *out)
{
    struct ks_range all = {range->n, range->least, range->most, NAN, NAN};
    char text[KS_RANGE_TEXT];

    ks_range_print(range, text);
    fprintf(out, "<td>%s", text);
    if (range->n > 1) {
        ks_range_print(&all, text);
        fprintf(out, "<br><small>%s</small>", text);
    }
    fputs("</td>", out);
}

/* The rows of one analysis; adds the number of kappa values that they leave out to *dropped. */
static void print_rows(const struct ks_results *r, const struct ks_summary_table *table,
                       size_t analysis, size_t *dropped, FILE *out)
{
    fprintf(out, "<div class=\"scroll\"><table>\n<tr><th>architecture</th>");
    for (size_t c = 0; c < KS_COLUMNS; c++)
        fprintf(out, "<th>%s</th>", ks_column_names[c]);
    for (size_t c = 0; c < KS_RANGES; c++)
        fprintf(out, "<th>%s</th>", ks_range_names[c]);
    fprintf(out, "</tr>\n");
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct ks_row *row = &table->row[analysis * table->n_rows + i];

        fputs("<tr><td>", out);
        print_escaped(out, r->study->architecture[row->architecture].name);
        fputs("</td>", out);
        for (size_t c = 0; c < KS_COLUMNS; c++)
            print_value(&row->value[c], out);
        for (size_t c = 0; c < KS_RANGES; c++)
            print_range(&row->range[c], out);
        fputs("</tr>\n", out);
        *dropped += row->dropped;
    }
    fprintf(out, "</table></div>\n");
}

/* The tables of further analyses. Everything else in the report is of the standard analysis. */
static void print_further(const struct ks_results *r, const struct ks_summary_table *table,
                          FILE *out)
{
    for (size_t k = 1; k < table->n_analyses; k++) {
        const struct ks_study_analysis *a = &r->study->analysis[k];
        size_t dropped = 0;

        fprintf(out, "<h2>Further analysis: %s</h2>\n<p>The same checkpoints, analyzed with",
                a->name);
        for (size_t i = 0; i < a->n; i++) {
            fprintf(out, "%s <code>", i > 0 ? "," : "");
            print_escaped(out, a->setting[i].key);
            fputs(" = ", out);
            print_escaped(out, a->setting[i].value);
            fputs("</code>", out);
        }
        fprintf(out, "%s. The plots below are of the standard analysis.</p>\n",
                a->n > 0 ? "" : " the analyzer's defaults");
        print_rows(r, table, k, &dropped, out);
        if (dropped > 0)
            fprintf(out, "<p>%zu values of kappa are left out.</p>\n", dropped);
    }
}

static void print_table(const struct ks_results *r, const struct ks_summary_table *table, FILE *out)
{
    size_t dropped = 0;

    fprintf(out, "<h2>Statistics per architecture</h2>\n");
    print_rows(r, table, 0, &dropped, out);
    fprintf(
        out,
        "<p>Statistics of spectra are interquartile means, pooled over all seeds and all "
        "checkpoints after the first update. <i>return</i> is the interquartile mean of the last "
        "returns, <i>area</i> the mean height of the curve of returns / 1000. In brackets: 90%% "
        "stratified bootstrap intervals, which draw whole seeds; with one seed there are none. "
        "<i>directions_1e2</i>, <i>kappa_q99</i> and <i>kappa_gradient_90</i> are 99%% "
        "intervals at the last checkpoint. With one seed they are those of its spectrum. With "
        "several seeds they run from the median of the lower ends to the median of the upper "
        "ends, which encloses the median of the true values if every seed's interval contains "
        "its true value; the small print gives the range that all seeds' intervals cover.");
    if (dropped > 0)
        fprintf(
            out,
            " %zu values of kappa are not numbers, or their analyses failed: they are left out.",
            dropped);
    if (!isnan(table->spearman))
        fprintf(out,
                " Spearman's rank correlation of <i>kappa_geometric</i> with the return, over the "
                "%zu architectures: %.2f.",
                table->ranked, table->spearman);
    fprintf(out, "</p>\n");
}

/* How to read kappa, and which targets the analyzer used. */
static void print_reading(const struct ks_results *r, FILE *out)
{
    const struct ks_settings *set = &r->study->settings;

    fprintf(
        out,
        "<h2>How to read kappa</h2>\n<p><i>kappa</i> is the ratio of the largest to the "
        "smallest |Ritz value| of a Lanczos run, as the XQC paper plots it. It is not an estimate "
        "of "
        "the condition number: most of these critics have exact null directions, so their "
        "condition "
        "number is infinite, and the smallest |Ritz value| depends on the number of steps, the "
        "start "
        "vector and rounding. Compare <i>kappa</i> only between spectra of the same order.</p>\n"
        "<p>These claims hold for every order and start vector. Outside the known null directions, "
        "the condition number is at least <i>kappa_effective_bound</i>; this is certain. "
        "<i>directions_1e2</i> eigenvalues are within a factor of 100 of the largest in absolute "
        "value. 99%% of all eigenvalues are smaller than the largest by a factor of "
        "<i>kappa_q99</i> "
        "or more. 90%% of the gradient's energy lies on eigenvalues that are smaller than the "
        "largest by at most a factor of <i>kappa_gradient_90</i>. The last three are intervals "
        "with "
        "99%% confidence; if the order does not resolve the upper end, it is left out (<i>or "
        "more</i>).</p>\n");
    fprintf(out, "<p>The targets in the checkpoints' batches are of <b>%s</b> rewards%s</p>\n",
            set->raw_rewards || !set->reward_normalization ? "raw" : "normalized",
            set->raw_rewards && set->reward_normalization
                ? ", as in the published code, although training normalizes rewards. Raw rewards "
                  "shift the targets and pile up mass on the last atom."
            : set->reward_normalization
                ? ", as in training (the published code uses raw rewards here; raw_rewards = 1 in "
                  "the study's [train] reproduces that)."
                : ", as in training: reward normalization is off.");
    fprintf(out,
            "<p>Eigenvalues are those of the loss averaged over the checkpoint's %zu "
            "minibatches; the published code divides by that number once more.</p>\n",
            set->analysis_minibatches);
}

/* Prints the PNG in base64. */
static ks_status print_image(const struct ks_results *r, const char *name, FILE *out)
{
    unsigned char *encoded = NULL;
    char *path = NULL, *bytes = NULL;
    ks_status status = KS_OK;
    size_t size = 0;

    KS_GO(ks_print_string(&path, "%s/figures/%s.png", r->dir, name));
    KS_GO(ks_text_read(path, &bytes, &size));
    if (size > INT_MAX / 2) {
        status = ks_fail(KS_FORMAT, "%s: %zu bytes are too many for the report", path, size);
        goto done;
    }
    KS_GO(ks_alloc(4 * (size / 3 + 1) + 1, 1, &encoded));
    EVP_EncodeBlock(encoded, (const unsigned char *)bytes, (int)size);
    fputs((const char *)encoded, out);
done:
    free(path);
    free(bytes);
    free(encoded);
    return status;
}

static ks_status print_plots(const struct ks_results *r, FILE *out)
{
    for (size_t i = 0; ks_plots[i].name; i++) {
        fprintf(out, "<figure>\n<h2>%s</h2>\n<img alt=\"%s\" src=\"data:image/png;base64,",
                ks_plots[i].title, ks_plots[i].title);
        KS_TRY(print_image(r, ks_plots[i].name, out));
        fprintf(out, "\">\n<figcaption>%s</figcaption>\n</figure>\n", ks_plots[i].caption);
    }
    return KS_OK;
}

static ks_status print_page(const struct ks_results *r, const struct ks_summary_table *table,
                            FILE *out)
{
    print_head(r, out);
    print_warnings(r, out);
    print_table(r, table, out);
    print_further(r, table, out);
    print_reading(r, out);
    KS_TRY(print_plots(r, out));
    fprintf(out, "<h2>The study's file</h2>\n<pre>");
    print_escaped(out, r->study->text);
    fprintf(out, "</pre>\n</body>\n</html>\n");
    return KS_OK;
}

ks_status ks_page_write(const struct ks_results *results, const struct ks_summary_table *table)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/report.html", results->dir));
    status = ks_text_open(path, &text);
    free(path);
    if (status == KS_OK)
        status = print_page(results, table, text.stream);
    return ks_text_close(&text, status);
}
