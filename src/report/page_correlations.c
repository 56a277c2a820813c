/* The rank correlations of the report, and what the analyzer states about single spectra. */
#include "report/page.h"

#include <math.h>

/* A statistic or an end of it, and what it is. */
static struct ks_cell name_of(struct ks_statistic_column column)
{
    return ks_cell_note(ks_cell_name(ks_statistic_column_name(column)),
                        column.part == KS_LOWER_END   ? "lower ends of 99% intervals"
                        : column.part == KS_UPPER_END ? "upper ends of 99% intervals"
                                                      : ks_catalogue[column.id].of_spectra);
}

void ks_page_correlations(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;
    const struct ks_correlations *found = &page->table->correlations;

    if (found->n == 0)
        return;
    ks_document_table(d, "table-correlations",
                      KS_CELLS(ks_cell_name("statistic"), ks_cell_text("analysis"),
                               ks_cell_heading("Spearman's correlation"),
                               ks_cell_heading("90% interval over seeds"), ks_cell_heading("p"),
                               ks_cell_heading("architectures")));
    for (size_t i = 0; i < found->n; i++) {
        const struct ks_correlation *c = &found->row[i];
        const struct ks_interval *in = &c->spearman.in;
        char interval[32];

        snprintf(interval, sizeof interval, "[%.2f, %.2f]", in->lower, in->upper);
        ks_document_cells(d, name_of(c->statistic),
                          ks_cell_text(page->results->study->analysis[c->analysis].name),
                          ks_cell_or(ks_cell_fixed(2, c->spearman.value), "undefined"),
                          ks_cell_or(ks_cell_printed(interval, in->lower), "no interval"),
                          ks_cell_or(ks_cell_digits(2, c->p), "undefined"), ks_cell_count(c->n));
    }
}

/* --- what a statistic adds to the factors --- */

void ks_page_prediction(void *data, struct ks_document *d)
{
    const struct ks_prediction *found = &((const struct ks_page *)data)->table->prediction;
    const struct ks_explained *alone = &found->factors;
    const struct ks_cell none = ks_cell_or(ks_cell_digits(2, NAN), "");
    static const char unknown[] = "not resolved";

    if (found->n == 0)
        return;
    ks_document_table(d, "table-prediction",
                      KS_CELLS(ks_cell_name("statistic"), ks_cell_text("analysis"),
                               ks_cell_heading("explained"), ks_cell_heading("of the one left out"),
                               ks_cell_heading("partial correlation"), ks_cell_heading("p"),
                               ks_cell_heading("p for all rows"),
                               ks_cell_text("than the factors")));
    ks_document_cells(d, ks_cell_note(ks_cell_name("factors"), "BN, LN, WN, CE"), ks_cell_text("-"),
                      ks_cell_digits(2, alone->r2), ks_cell_digits(2, alone->q2), none, none, none,
                      ks_cell_text(""));
    for (size_t i = 0; i < found->n; i++) {
        const struct ks_prediction_row *row = &found->row[i];
        const double q2 = row->with.q2;

        ks_document_cells(d, name_of(row->statistic), ks_cell_text(row->analysis),
                          ks_cell_or(ks_cell_digits(2, row->with.r2), unknown),
                          ks_cell_or(ks_cell_digits(2, q2), unknown),
                          ks_cell_or(ks_cell_digits(2, row->partial), unknown),
                          ks_cell_or(ks_cell_digits(2, row->p), unknown),
                          ks_cell_or(ks_cell_digits(2, row->p_family), unknown),
                          ks_cell_text(isnan(q2)        ? ""
                                       : q2 > alone->q2 ? "more"
                                                        : "less"));
    }
}

/* The claim of the analyzer in the last spectrum of the first run of an architecture of the table;
 * NULL: none. */
static const char *find_statement(const struct ks_page *page, size_t row)
{
    const struct ks_results *r = page->results;
    const struct ks_runs runs = ks_results_runs(r, page->table->row[row].architecture);
    const size_t k = ks_results_last(r, page->table->row[row].architecture);
    const struct ks_spectrum *s;

    if (!r->common_checkpoint[k] || runs.n == 0)
        return NULL;
    s = ks_results_spectrum(r, runs.run[0], 0, k);
    return s ? ks_attribute_text(&s->attributes, "claim") : NULL;
}

void ks_page_statements(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;

    for (size_t i = 0; i < page->table->n_rows; i++) {
        const size_t architecture = page->table->row[i].architecture;
        const char *statement = find_statement(page, i);

        if (statement)
            ks_document_line(d, page->results->study->architecture[architecture].name, "%s",
                             statement);
    }
}
