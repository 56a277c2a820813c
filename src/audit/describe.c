/* The parts of an audit, in their order. */
#include <math.h>
#include <string.h>

#include "audit/audit.h"
#include "io/attribute.h"
#include "statistics/statistic_text.h"
#include "statistics/statistics.h"

/* The claim's first sentence: how many directions have a large curvature. */
static void add_claim(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *s = a->spectrum[KS_AUDIT_HESSIAN];
    const struct ks_attribute *claim = ks_attribute_find(&s->attributes, "claim");
    const char *text = claim && claim->type == KS_ATTRIBUTE_STRING ? claim->string : "";
    const char *end = strstr(text, ". ");

    ks_document_add(d, KS_BLOCK_TEXT, "%.*s", end ? (int)(end - text) + 1 : (int)strlen(text),
                    text);
}

static void add_extent(const struct ks_audit_facts *f, struct ks_document *d)
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
    char text[KS_STATISTIC_TEXT];

    ks_document_add(d, KS_BLOCK_TABLE, "statistic" KS_CELL "value" KS_CELL "meaning");
    for (const enum ks_statistic_id *id = ks_catalogue_for_readers; *id < KS_STATISTICS; id++)
        if (ks_statistic_present(s, *id)) {
            ks_statistic_text(s, *id, text);
            ks_document_add(d, KS_BLOCK_ROW, "%s" KS_CELL "%s" KS_CELL "%s", ks_catalogue[*id].name,
                            text, ks_catalogue[*id].words);
        }
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
    char largest[KS_INTERVAL_TEXT], text[COLUMNS][KS_STATISTIC_TEXT];

    for (size_t k = 0; k < COLUMNS; k++)
        if (ks_statistic_present(s, columns[k]))
            ks_statistic_text(s, columns[k], text[k]);
        else
            memcpy(text[k], "-", sizeof "-");
    ks_document_add(d, KS_BLOCK_ROW,
                    "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL
                    "%s",
                    name, words, ks_interval_text(ks_audit_abs_max(s), KS_BRACKETS_WHOLE, largest),
                    text[0], text[1], text[2], text[3]);
}

/* The Hessian, its two parts, and the preconditioned one, by what is bounded. */
static void add_operators(const struct ks_audit *a, struct ks_document *d)
{
    static const struct {
        enum ks_audit_spectrum which;
        const char *name, *words;
    } rows[] = {{KS_AUDIT_HESSIAN, "hessian", "H"},
                {KS_AUDIT_GGN, "ggn", "G, the Gauss-Newton matrix"},
                {KS_AUDIT_RESIDUAL, "residual", "H - G"},
                {KS_AUDIT_PRECONDITIONED, "preconditioned", "D^-1/2 H D^-1/2, as Adam sees it"}};

    ks_document_add(d, KS_BLOCK_TABLE,
                    "operator" KS_CELL "what" KS_CELL "largest |eigenvalue|" KS_CELL "%s" KS_CELL
                    "%s" KS_CELL "%s" KS_CELL "%s",
                    ks_catalogue[columns[0]].name, ks_catalogue[columns[1]].name,
                    ks_catalogue[columns[2]].name, ks_catalogue[columns[3]].name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (a->spectrum[rows[i].which])
            add_operator(a->spectrum[rows[i].which], rows[i].name, rows[i].words, d);
    if (a->facts.moments != KS_MOMENTS_PRESENT)
        ks_document_add(d, KS_BLOCK_NOTE, "The preconditioned Hessian is not analyzed, because %s.",
                        a->facts.moments == KS_MOMENTS_ZERO
                            ? "all of Adam's second moments in the file are zero"
                            : "the file has no second moments of Adam");
}

ks_status ks_audit_describe(const struct ks_audit *a, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_SECTION, "%s", a->path);
    add_claim(a, d);
    add_extent(&a->facts, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Findings");
    ks_audit_findings(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Spectrum of the Hessian");
    KS_TRY(ks_audit_plot(a, d));
    add_statistics(a->spectrum[KS_AUDIT_HESSIAN], d);
    ks_document_add(d, KS_BLOCK_SECTION, "Gauss-Newton, residual and preconditioned Hessian");
    add_operators(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Layers");
    ks_audit_layers(a, d);
    ks_document_add(d, KS_BLOCK_SECTION, "Are these minibatches enough?");
    ks_audit_halve(a, d);
    return d->status;
}
