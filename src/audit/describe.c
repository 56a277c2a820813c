/* The parts of an audit, in their order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/round.h"
#include "io/attribute.h"
#include "statistics/statistic_text.h"
#include "statistics/statistics.h"

/* The first sentences of the claim, up to the first that ends the part without the paper's kappa.
 */
static void add_claim(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *s = a->spectrum[KS_AUDIT_HESSIAN];
    const struct ks_attribute *claim = ks_attribute_find(&s->attributes, "claim");
    const char *text = claim && claim->type == KS_ATTRIBUTE_STRING ? claim->string : "";
    const char *end = strstr(text, ". ");

    ks_document_add(d, KS_BLOCK_TEXT, "%.*s", end ? (int)(end - text) + 1 : (int)strlen(text),
                    text);
    ks_document_add(d, KS_BLOCK_NOTE,
                    "%zu critic%s of %zu parameters, loss %s, %zu minibatches of %zu rows (%zu in "
                    "the loss). All statements are about these minibatches.",
                    a->facts.critics, a->facts.critics == 1 ? "" : "s", a->facts.parameters,
                    a->facts.loss, a->facts.minibatches, a->facts.rows, a->facts.loss_rows);
}

static void add_statistics(const struct ks_spectrum *s, struct ks_document *d)
{
    char text[KS_STATISTIC_TEXT];

    ks_document_add(d, KS_BLOCK_TABLE, "statistic" KS_CELL "value" KS_CELL "meaning");
    for (const struct ks_statistic_row *row = ks_statistic_rows; row->name; row++)
        if (ks_statistic_present(s, row->name)) {
            ks_statistic_text(s, row->name, text);
            ks_document_add(d, KS_BLOCK_ROW, "%s" KS_CELL "%s" KS_CELL "%s", row->name, text,
                            row->words);
        }
    ks_document_add(d, KS_BLOCK_NOTE,
                    "In brackets: 99%% intervals. The first rows hold for every order and start "
                    "vector; kappa, the last, does not: it is the paper's ratio of Ritz values.");
}

/* The Hessian, its two parts, and the preconditioned one, by what is bounded. */
static void add_operators(const struct ks_audit *a, struct ks_document *d)
{
    static const struct {
        enum ks_audit_spectrum which;
        const char *name, *words;
    } rows[] = {{KS_AUDIT_HESSIAN, "hessian", "H"},
                {KS_AUDIT_GGN, "ggn", "G, Gauss-Newton"},
                {KS_AUDIT_RESIDUAL, "residual", "H - G"},
                {KS_AUDIT_PRECONDITIONED, "preconditioned", "D^-1/2 H D^-1/2, as Adam sees it"}};
    static const char *const columns[] = {"lambda_min", "kappa_effective_bound", "kappa_q99",
                                          "sharpness_ratio"};
    char largest[KS_INTERVAL_TEXT], text[4][KS_STATISTIC_TEXT];

    ks_document_add(d, KS_BLOCK_TABLE,
                    "operator" KS_CELL "what" KS_CELL "largest |eigenvalue|" KS_CELL
                    "lambda_min" KS_CELL "kappa_effective_bound" KS_CELL "kappa_q99" KS_CELL
                    "sharpness_ratio");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ks_spectrum *s = a->spectrum[rows[i].which];

        if (!s)
            continue;
        for (size_t k = 0; k < 4; k++)
            if (ks_statistic_present(s, columns[k]))
                ks_statistic_text(s, columns[k], text[k]);
            else
                snprintf(text[k], sizeof text[k], "-");
        ks_document_add(d, KS_BLOCK_ROW,
                        "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL
                        "%s" KS_CELL "%s",
                        rows[i].name, rows[i].words,
                        ks_interval_text(ks_audit_interval(s, "lambda_abs_max"), largest), text[0],
                        text[1], text[2], text[3]);
    }
    if (!a->spectrum[KS_AUDIT_PRECONDITIONED])
        ks_document_add(d, KS_BLOCK_NOTE,
                        "The file has no second moments of Adam, so nothing is known of the "
                        "preconditioned Hessian.");
}

/* The cell as it is; "-" if it is empty. */
static const char *cell(const struct ks_csv *csv, size_t row, const char *column)
{
    size_t k;
    const char *found = ks_csv_column(csv, column, &k) == KS_OK ? ks_csv_cell(csv, row, k) : "";

    return *found ? found : "-";
}

/* The same with four digits, rounded down so that a lower bound stays one. */
static const char *rounded(const struct ks_csv *csv, size_t row, const char *column, char text[32])
{
    const char *found = cell(csv, row, column);

    if (strcmp(found, "-") == 0)
        return found;
    snprintf(text, 32, "%.4g", ks_round_down(strtod(found, NULL), 4));
    return text;
}

static void add_layers(const struct ks_csv *csv, struct ks_document *d)
{
    char largest[32], bound[32], share[32];

    ks_document_add(d, KS_BLOCK_TABLE,
                    "layer" KS_CELL "kind" KS_CELL "parameters" KS_CELL "lambda_max" KS_CELL
                    "kappa_effective_bound (at least)" KS_CELL "share of the trace");
    for (size_t i = 0; i < csv->rows; i++)
        ks_document_add(d, KS_BLOCK_ROW,
                        "%02d" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s",
                        atoi(cell(csv, i, "layer")), cell(csv, i, "kind"),
                        cell(csv, i, "dimension"), rounded(csv, i, "lambda_max", largest),
                        rounded(csv, i, "kappa_effective_bound", bound),
                        rounded(csv, i, "trace_share", share));
    ks_document_add(d, KS_BLOCK_NOTE,
                    "Diagonal blocks of the Hessian, over all critics. lambda_max is the largest "
                    "eigenvalue, from below; the share is an estimate; - is not resolved, or "
                    "infinite.");
}

static void add_units(const struct ks_audit *a, struct ks_document *d)
{
    if (a->facts.n_units == 0)
        return;
    ks_document_add(d, KS_BLOCK_TEXT,
                    "Dead units: outputs of activation functions that are zero in all rows of the "
                    "first %zu minibatches, over all critics.",
                    a->facts.tried);
    ks_document_add(d, KS_BLOCK_TABLE, "layer" KS_CELL "kind" KS_CELL "units" KS_CELL "dead");
    for (size_t i = 0; i < a->facts.n_units; i++) {
        const struct ks_audit_units *u = &a->facts.units[i];

        ks_document_add(d, KS_BLOCK_ROW, "%02zu" KS_CELL "%s" KS_CELL "%zu" KS_CELL "%zu",
                        u->number, u->kind, u->units, u->dead);
    }
}

/* A change by at most this factor counts as small: a judgement. */
static const double SMALL = 1.25;

/* Whether both numbers can be within the factor SMALL of each other. */
static bool holds(struct ks_interval all, struct ks_interval half)
{
    return ks_intervals_overlap((struct ks_interval){all.lower / SMALL, all.upper * SMALL}, half);
}

/* The same statistics from half of the minibatches. */
static void add_half(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *all = a->spectrum[KS_AUDIT_HESSIAN],
                             *half = a->spectrum[KS_AUDIT_HALF];
    char one[KS_STATISTIC_TEXT], other[KS_STATISTIC_TEXT];
    size_t differ = 0, count = 0;

    ks_document_add(d, KS_BLOCK_TABLE,
                    "statistic" KS_CELL "verdict" KS_CELL "all minibatches" KS_CELL "half of them");
    for (const char *const *name = ks_audit_compared; *name; name++) {
        struct ks_interval x = ks_audit_interval(all, *name), y = ks_audit_interval(half, *name);
        bool same = holds(x, y);

        differ += !same;
        count++;
        ks_document_add(d, KS_BLOCK_ROW, "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s", *name,
                        same ? "not shown to change" : "changes", ks_interval_text(x, one),
                        ks_interval_text(y, other));
    }
    ks_statistic_text(all, "kappa_effective_bound", one);
    ks_statistic_text(half, "kappa_effective_bound", other);
    ks_document_add(d, KS_BLOCK_ROW,
                    "kappa_effective_bound" KS_CELL "a bound" KS_CELL "%s" KS_CELL "%s", one,
                    other);
    ks_document_add(d, KS_BLOCK_TEXT,
                    "With the first half of the minibatches, %zu of %zu statistics change by more "
                    "than a factor of %g, beyond the 99%% intervals of both%s",
                    differ, count, SMALL,
                    differ > 0
                        ? ": they depend on the minibatches, so more of them are needed."
                        : ". That does not show that more minibatches would change nothing.");
}

ks_status ks_audit_describe(const struct ks_audit *a, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_SECTION, "%s", a->path);
    add_claim(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Findings");
    ks_audit_findings(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Spectrum of the Hessian");
    KS_TRY(ks_audit_plot(a, d));
    add_statistics(a->spectrum[KS_AUDIT_HESSIAN], d);
    ks_document_add(d, KS_BLOCK_SECTION, "Gauss-Newton, residual and preconditioned Hessian");
    add_operators(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Layers");
    if (a->layers)
        add_layers(a->layers, d);
    add_units(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Are these minibatches enough?");
    if (a->spectrum[KS_AUDIT_HALF])
        add_half(a, d);
    else
        ks_document_add(d, KS_BLOCK_TEXT, "Not known: the analysis used a single minibatch.");
    return d->status;
}
