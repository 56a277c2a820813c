/* Claims as text: claims.csv, and lines on standard output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "claims/claims.h"
#include "core/memory.h"
#include "io/text.h"

/* "Figure 3 and spectra": where to see it, in the paper and in our plots. */
static void print_plot(const struct ks_paper_claim *claim, char text[64])
{
    snprintf(text, 64, "Figure %zu%s%s", claim->figure, claim->plot ? " and " : "",
             claim->plot ? claim->plot : "");
}

/* --- claims.csv --- */

static void print_cell(FILE *out, double value)
{
    if (isnan(value))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", value);
}

void ks_claims_print_csv(const struct ks_claims *claims, FILE *out)
{
    fprintf(out, "claim,statistic,seeds,units,effect_low,effect_high,theta,p,p_holm,verdict,plot,"
                 "within,survives,rules,reason\n");
    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_claim_row *row = &claims->row[i];
        const struct ks_finding *f = &row->found;
        char plot[64], reason[KS_CLAIM_REASON];

        print_plot(row->claim, plot);
        fprintf(out, "%s,%s,%zu,%zu", row->claim->name, ks_claim_statistic_names[row->statistic],
                f->seeds, f->units);
        print_cell(out, f->effect_low);
        print_cell(out, f->effect_high);
        print_cell(out, f->theta);
        print_cell(out, f->p);
        print_cell(out, row->p_holm);
        fprintf(out, ",%s,%s", ks_verdict_names[row->verdict], plot);
        print_cell(out, f->within);
        ks_claims_reason(claims, row, reason);
        fprintf(out, ",%s,%s,%s\n", ks_claims_survival(claims, row->claim),
                ks_claim_family_dates[row->claim->family], *reason ? reason : "-");
    }
}

ks_status ks_claims_write(const struct ks_claims *claims, const char *dir)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/tables/claims.csv", dir));
    status = ks_text_open(path, &text);
    if (status == KS_OK)
        ks_claims_print_csv(claims, text.stream);
    free(path);
    return ks_text_close(&text, status);
}

/* --- standard output --- */

static const char *word_of(const struct ks_claims *claims, const struct ks_paper_claim *claim,
                           enum ks_claim_statistic statistic)
{
    const struct ks_claim_row *row = ks_claims_row(claims, claim, statistic);

    return row ? ks_verdict_names[row->verdict] : "-";
}

/* Prints the names of the claims that cannot be judged, and of the architectures that are missing.
 */
static void print_skipped(const struct ks_claims *claims, size_t skipped, FILE *out)
{
    const char *between = "";

    fprintf(out, "%zu of the paper's %d claims cannot be judged, because the study lacks ", skipped,
            KS_CLAIMS);
    for (size_t k = 0; k < KS_JUDGED; k++) {
        char name[16];

        ks_twelve_name(k, name);
        if (claims->lacks[k]) {
            fprintf(out, "%s%s", between, name);
            between = ", ";
        }
    }
    between = ": ";
    for (size_t i = 0; i < KS_CLAIMS && skipped < KS_CLAIMS; i++)
        if (claims->skipped[i]) {
            fprintf(out, "%s%s", between, ks_paper_claims[i].name);
            between = ", ";
        }
    fputs(".\n", out);
}

static void print_missing(const struct ks_claims *claims, FILE *out)
{
    size_t skipped = 0;

    for (size_t i = 0; i < KS_CLAIMS; i++)
        skipped += claims->skipped[i];
    if (skipped > 0)
        print_skipped(claims, skipped, out);
    if (claims->n == 0)
        return;
    if (claims->seeds < KS_CLAIM_SEEDS)
        fprintf(out, "With fewer than %d seeds there are directions and no verdicts.\n",
                KS_CLAIM_SEEDS);
    if (claims->checkpoints < KS_CLAIM_VALUES)
        fprintf(out,
                "A run counts if it has %d checkpoints after the first update; the study has "
                "%zu so far.\n",
                KS_CLAIM_VALUES, claims->checkpoints);
    if (!claims->has_paper)
        fputs("The paper's statistic is that of an analysis [analyze xqc] with compat = xqc, which "
              "the study lacks.\n",
              out);
}

static void print_control(const struct ks_claims *claims, FILE *out)
{
    if (!claims->has_control || claims->n == 0)
        return;
    fputs("The sound statistic with batch normalization over the rows of the loss alone:\n", out);
    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].statistic == KS_CLAIM_CONTROL)
            fprintf(out, "  %s: %s\n", claims->row[i].claim->name,
                    ks_verdict_names[claims->row[i].verdict]);
}

void ks_claims_print(const struct ks_claims *claims, FILE *out)
{
    enum { NAME = 29, WORD = 18 };

    putc('\n', out);
    if (claims->n > 0)
        fprintf(out, "%-*s  %-*s  %-*s  %-*s  %s\n", NAME, "claim of the paper", WORD,
                "paper's statistic", WORD, "sound statistic", WORD, "second sound one",
                "the claim");
    for (size_t i = 0; i < KS_CLAIMS && claims->n > 0; i++) {
        const struct ks_paper_claim *claim = &ks_paper_claims[i];

        if (!claims->skipped[i])
            fprintf(out, "%-*s  %-*s  %-*s  %-*s  %s\n", NAME, claim->name, WORD,
                    word_of(claims, claim, KS_CLAIM_PAPER), WORD,
                    word_of(claims, claim, KS_CLAIM_SOUND), WORD,
                    word_of(claims, claim, KS_CLAIM_SECOND), ks_claims_survival(claims, claim));
    }
    print_control(claims, out);
    print_missing(claims, out);
}
