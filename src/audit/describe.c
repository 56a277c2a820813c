/* The sections of an audit, in their order. */
#include "audit/audit.h"
#include "io/attribute.h"
#include "report/tables.h"
#include "statistics/statistics.h"

static void add_extent(const struct ks_audit_summary *f, struct ks_document *d)
{
    const bool one = f->minibatches == 1;

    ks_document_add(d, KS_BLOCK_NOTE,
                    "%zu critic%s, %zu parameters%s; loss %s; %s%zu minibatch%s of %zu rows, of "
                    "which %zu enter the loss. All statements are about %s.",
                    f->critics, f->critics == 1 ? "" : "s", f->parameters,
                    f->critics == 1 ? "" : " each", f->loss,
                    f->minibatches < f->stored ? "the first " : "", f->minibatches, one ? "" : "es",
                    f->rows, f->loss_rows, one ? "this minibatch" : "these minibatches");
}

static void add_statistics(const struct ks_spectrum *s, struct ks_document *d)
{
    ks_statistics_describe(s, d);
    ks_document_add(d, KS_BLOCK_NOTE,
                    "Intervals in brackets hold with 99%%. What is called an estimate, kurtosis, "
                    "outliers and kappa depend on the number of Lanczos steps and on the start "
                    "vector.");
}

enum { COLUMNS = 4 };
static const enum ks_statistic_id columns[COLUMNS] = {
    KS_STAT_LAMBDA_MIN, KS_STAT_KAPPA_EFFECTIVE_BOUND, KS_STAT_KAPPA_Q99, KS_STAT_SHARPNESS_RATIO};

static void add_operator(const struct ks_spectrum *s, const char *name, const char *words,
                         struct ks_document *d)
{
    ks_document_cells(d, ks_cell_name(name), ks_cell_text(words),
                      ks_cell_interval(ks_audit_abs_max(s), KS_BRACKETS_WHOLE));
    for (size_t k = 0; k < COLUMNS; k++)
        ks_document_cell(d, ks_statistic_cell(s, columns[k]));
}

/* The Hessian, its two terms, and the preconditioned one, by what is bounded. */
static void add_operators(const struct ks_audit *a, struct ks_document *d)
{
    static const struct {
        enum ks_audit_spectrum which;
        const char *name, *words;
    } rows[] = {{KS_AUDIT_HESSIAN, "hessian", "H"},
                {KS_AUDIT_GGN, "ggn", "G, the Gauss-Newton matrix"},
                {KS_AUDIT_RESIDUAL, "residual", "H - G"},
                {KS_AUDIT_PRECONDITIONED, "preconditioned", "D^-1/2 H D^-1/2, as Adam sees it"}};

    ks_document_columns(d, "", "operator<, what<, largest |eigenvalue|");
    for (size_t k = 0; k < COLUMNS; k++)
        ks_document_cell(d, ks_cell_heading(ks_catalogue[columns[k]].name));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (a->spectrum[rows[i].which])
            add_operator(a->spectrum[rows[i].which], rows[i].name, rows[i].words, d);
    if (a->summary.moments != KS_MOMENTS_PRESENT)
        ks_document_add(d, KS_BLOCK_NOTE, "The preconditioned Hessian is not analyzed, because %s.",
                        a->summary.moments == KS_MOMENTS_ZERO
                            ? "all of Adam's second moments in the file are zero"
                            : "the file has no second moments of Adam");
}

/* Adds the 99.5% band of the spectrum, or the reason why there is none. */
static void add_plot(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *s = a->spectrum[KS_AUDIT_HESSIAN];
    struct ks_table table = {0};

    if (s->n_band == 0) {
        ks_document_add(d, KS_BLOCK_NOTE, "There is no plot: %s.",
                        ks_audit_is_zero(s)
                            ? "all eigenvalues are zero"
                            : "the products are too inaccurate for a band of 99.5%");
        return;
    }
    ks_table_columns(&table, KS_DISTRIBUTION_COLUMNS);
    table.status = ks_distribution_fill("critic", s, &table);
    ks_audit_figure(
        a, "spectrum", &table,
        "How many eigenvalues are larger than x, and how many are smaller than -x, down "
        "to a millionth of the largest one. At each x the number lies in the shaded "
        "band with 99.5%.",
        d);
}

ks_status ks_audit_describe(const struct ks_audit *a, struct ks_document *d)
{
    const char *claim = ks_attribute_text(&a->spectrum[KS_AUDIT_HESSIAN]->attributes,
                                          "claim_first_sentence");

    ks_document_add(d, KS_BLOCK_SECTION, "What was measured");
    ks_document_add(d, KS_BLOCK_TEXT, "%s", claim ? claim : "");
    add_extent(&a->summary, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Findings");
    ks_audit_findings(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Spectrum of the Hessian");
    add_plot(a, d);
    add_statistics(a->spectrum[KS_AUDIT_HESSIAN], d);
    ks_document_add(d, KS_BLOCK_SECTION, "Gauss-Newton, residual and preconditioned Hessian");
    add_operators(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Layers");
    ks_audit_layers(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Are these minibatches enough?");
    ks_audit_halve(a, d);
    return d->status;
}
