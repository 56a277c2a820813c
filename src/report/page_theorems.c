/* How near the measurements come to what the paper proves: theorems.csv, with the largest number of
 * every architecture over its seeds and checkpoints. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "core/interval.h"
#include "report/html.h"

static const struct {
    const char *name, *title, *kind;
} columns[] = {
    {"proposition_1_largest", "Proposition 1", "largest |f - y| of any row: no bound"},
    {"proposition_2_largest", "Proposition 2", "largest |p - t| / sqrt 2 of any row"},
    {"proposition_2_median", "Proposition 2, median row", "largest median |p - t| / sqrt 2"},
    {"lemma_1", "Lemma 1", "largest |g| / (sqrt 2 L_f): at most this"},
    {"lemma_1_median", "Lemma 1, median row", "with the median over rows in place of L_f"},
    {"theorem_1", "Theorem 1", "largest |g_h| / (sqrt 2 L_h): at most this"},
    {"hidden_radial", "Cosine of theta_h, g_h", "0 for a scale-invariant f"},
    {"weight_decay", "Weight decay", "mu^2 of the loss"},
    {"weight_decay_needed", "Proposition 4", "mu^2 would have to be more than this"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *architecture_of(const struct ks_csv *csv, size_t row)
{
    return ks_csv_text(csv, row, "architecture");
}

static bool is_first(const struct ks_csv *csv, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(architecture_of(csv, i), architecture_of(csv, row)) == 0)
            return false;
    return true;
}

/* The largest number in a column over the rows of an architecture, NaN if none has one; the number
 * of rows into *n. */
static double find_largest(const struct ks_csv *csv, const char *architecture, const char *column,
                           size_t *n)
{
    double largest = NAN;

    *n = 0;
    for (size_t i = 0; i < csv->rows; i++)
        if (strcmp(architecture_of(csv, i), architecture) == 0) {
            largest = fmax(largest, ks_csv_value(csv, i, column));
            ++*n;
        }
    return largest;
}

/* Bounds are rounded to the side on which they stay bounds. */
static double rounded(const char *column, double x)
{
    if (strncmp(column, "lemma_1", 7) == 0 || strcmp(column, "theorem_1") == 0)
        return ks_round_up(x, 3);
    return strcmp(column, "weight_decay_needed") == 0 ? ks_round_down(x, 3) : x;
}

static void print_row(const struct ks_csv *csv, const char *architecture, FILE *out)
{
    size_t n = 0;

    fputs("<tr><td class=\"name\">", out);
    ks_html_text(out, architecture);
    fputs("</td>", out);
    for (size_t c = 0; c < COLUMNS; c++) {
        double largest = find_largest(csv, architecture, columns[c].name, &n);

        if (isnan(largest))
            fputs("<td class=\"none\">not measured</td>", out);
        else
            fprintf(out, "<td data-value=\"%.10g\">%.3g</td>", largest,
                    rounded(columns[c].name, largest));
    }
    fprintf(out, "<td data-value=\"%zu\">%zu</td></tr>\n", n, n);
}

ks_status ks_page_theorems(const struct ks_page *page, FILE *out)
{
    const struct ks_csv *csv = page->theorems;

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-theorems\">\n<thead><tr><th>architecture</th>");
    for (size_t c = 0; c < COLUMNS; c++)
        fprintf(out, "<th>%s<span class=\"kind\">%s</span></th>", columns[c].title,
                columns[c].kind);
    fprintf(out, "<th>checkpoints</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < csv->rows; i++)
        if (is_first(csv, i))
            print_row(csv, architecture_of(csv, i), out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}
