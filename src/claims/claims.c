#include "claims/claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "results/correlation.h"

const char *const ks_verdict_names[KS_VERDICTS] = {
    "supported",          "not supported", "not decided",  "same direction",
    "opposite direction", "not resolved",  "results known"};

static const double LEVEL = 0.05; /* of the adjusted p */

static ks_status judge_by(const struct ks_results *r, const struct ks_claim_source *source,
                          struct ks_claim_row *row)
{
    struct ks_claim_values values;

    KS_TRY(ks_claim_values_find(r, source, &values));
    row->values = values.most;
    return ks_claim_find(&values, &row->found);
}

static struct ks_claim_source source_of(const struct ks_results *r, size_t resamples,
                                        const struct ks_claim_row *row)
{
    return (struct ks_claim_source){
        .claim = row->claim,
        .statistic = row->statistic,
        .resamples = resamples,
        .analyses = ks_claim_analyses(r->study, row->statistic),
        .unseen = row->statistic == KS_CLAIM_REVISED,
    };
}

/* Without runs that began after the revised rule, the numbers are of the runs that were known. */
static ks_status judge_one(const struct ks_results *r, size_t resamples, struct ks_claim_row *row)
{
    struct ks_claim_source source = source_of(r, resamples, row);
    bool known = source.unseen;

    for (size_t i = 0; i < r->n_runs; i++)
        known = known && strcmp(r->run[i].began, ks_claim_revised_from) < 0;
    if (known) {
        source.unseen = false;
        row->verdict = KS_RESULTS_KNOWN;
    }
    return judge_by(r, &source, row);
}

/* Holm's adjustment over the rows of a family and statistic. */
static ks_status adjust(struct ks_claims *claims, enum ks_claim_family family,
                        enum ks_claim_statistic statistic)
{
    double p[KS_CLAIMS] = {0}, adjusted[KS_CLAIMS];
    struct ks_claim_row *row[KS_CLAIMS];
    size_t n = 0;

    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].claim->family == family && claims->row[i].statistic == statistic) {
            row[n] = &claims->row[i];
            p[n++] = claims->row[i].found.p;
        }
    KS_TRY(ks_holm(n, p, adjusted));
    for (size_t i = 0; i < n; i++)
        row[i]->p_holm = adjusted[i];
    return KS_OK;
}

/* The word; a claim that no seed can judge goes by the seeds of the study. */
static enum ks_verdict find_verdict(const struct ks_claim_row *row, size_t seeds_of_study)
{
    const struct ks_finding *f = &row->found;
    size_t seeds = f->seeds > 0 ? f->seeds : seeds_of_study;
    bool significant = row->p_holm <= LEVEL; /* false for NaN */

    if (row->verdict == KS_RESULTS_KNOWN)
        return KS_RESULTS_KNOWN;
    if (seeds < KS_CLAIM_SEEDS)
        return f->in_favour ? KS_SAME_DIRECTION
               : f->against ? KS_OPPOSITE_DIRECTION
                            : KS_NOT_RESOLVED;
    return f->in_favour && (significant || f->proved)           ? KS_SUPPORTED
           : f->against && (significant || !f->against_needs_p) ? KS_NOT_SUPPORTED
                                                                : KS_NOT_DECIDED;
}

/* Whether its spectra are not comparable with the spectra of the first group. */
static bool is_apart(const struct ks_results *r, size_t architecture)
{
    return r->conditions && r->conditions[architecture].group > 1;
}

/* Whether the claim has a row by this statistic in the study. */
static bool has_row(const struct ks_claims *claims, size_t claim, enum ks_claim_statistic statistic)
{
    const struct ks_paper_claim *of = &ks_paper_claims[claim];

    if (claims->skipped[claim] || !ks_paper_claim_has(of, statistic))
        return false;
    if (statistic == KS_CLAIM_CONTROL)
        return ks_claim_analyses(claims->results->study, KS_CLAIM_CONTROL).n > 0;
    return statistic != KS_CLAIM_REVISED || ks_claim_is_number(of->quantity) ||
           ks_claim_analyses(claims->results->study, KS_CLAIM_REVISED).n > 1;
}

static void find_skipped(const struct ks_results *r, struct ks_claims *claims)
{
    size_t architecture[KS_JUDGED];

    ks_twelve_find(r->study, architecture);
    for (size_t k = 0; k < KS_JUDGED; k++) {
        claims->lacks[k] = architecture[k] == r->study->n_architectures;
        claims->apart[k] = !claims->lacks[k] && is_apart(r, architecture[k]);
    }
    for (size_t c = 0; c < KS_CLAIMS; c++) {
        bool needed[KS_JUDGED];

        ks_paper_claim_needs(&ks_paper_claims[c], needed);
        for (size_t k = 0; k < KS_JUDGED; k++)
            claims->skipped[c] = claims->skipped[c] ||
                                 (needed[k] && (claims->lacks[k] || claims->apart[k]));
    }
}

/* Adjusts the p of these statistics, and finds their words. */
static ks_status find_verdicts(const struct ks_results *r, enum ks_claim_statistic first,
                               enum ks_claim_statistic last, struct ks_claims *claims)
{
    for (enum ks_claim_family f = 0; f < KS_CLAIM_FAMILIES; f++)
        for (enum ks_claim_statistic s = first; s <= last; s++)
            KS_TRY(adjust(claims, f, s));
    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].statistic >= first && claims->row[i].statistic <= last)
            claims->row[i].verdict = find_verdict(&claims->row[i], r->study->n_seeds);
    return KS_OK;
}

/* --- the paper's statistic from other start vectors --- */

static bool has_starts(const struct ks_claim_row *row)
{
    return row->statistic == KS_CLAIM_PAPER && !ks_claim_is_number(row->claim->quantity);
}

static void count_start(const struct ks_claim_row *row, struct ks_claim_starts *starts)
{
    if (starts->n++ == 0)
        starts->effect_least = starts->effect_most = NAN;
    starts->verdicts[row->verdict]++;
    starts->effect_least = fmin(starts->effect_least, row->found.effect_low);
    starts->effect_most = fmax(starts->effect_most, row->found.effect_high);
}

/* Judges the paper's statistic with this analysis in place of its own. */
static ks_status judge_start(const struct ks_results *r, size_t resamples, size_t analysis,
                             struct ks_claims *other)
{
    for (size_t i = 0; i < other->n; i++)
        if (has_starts(&other->row[i])) {
            struct ks_claim_source source = source_of(r, resamples, &other->row[i]);

            source.analyses = (struct ks_study_analyses){.n = 1, .index = {analysis}};
            KS_TRY(judge_by(r, &source, &other->row[i]));
        }
    return find_verdicts(r, KS_CLAIM_PAPER, KS_CLAIM_PAPER, other);
}

static ks_status judge_starts(const struct ks_results *r, size_t resamples,
                              struct ks_claims *claims)
{
    const struct ks_study_analyses all = ks_claim_analyses(r->study, KS_CLAIM_REVISED);
    KS_OWNED struct ks_claims *other = NULL;

    KS_TRY(ks_alloc(1, sizeof *other, &other));
    for (size_t k = 0; k < all.n; k++) {
        *other = *claims;
        if (k > 0)
            KS_TRY(judge_start(r, resamples, all.index[k], other));
        for (size_t i = 0; i < claims->n; i++)
            if (has_starts(&claims->row[i]))
                count_start(&other->row[i], &claims->row[i].starts);
    }
    return KS_OK;
}

ks_status ks_claims_judge(const struct ks_results *r, size_t resamples, struct ks_claims *claims)
{
    *claims = (struct ks_claims){.results = r};
    find_skipped(r, claims);
    for (size_t c = 0; c < KS_CLAIMS; c++)
        for (enum ks_claim_statistic s = 0; s < KS_CLAIM_STATISTICS; s++) {
            if (!has_row(claims, c, s))
                continue;
            claims->row[claims->n] = (struct ks_claim_row){
                .claim = &ks_paper_claims[c], .statistic = s, .verdict = KS_NOT_RESOLVED};
            KS_TRY(judge_one(r, resamples, &claims->row[claims->n++]));
        }
    KS_TRY(find_verdicts(r, 0, KS_CLAIM_STATISTICS - 1, claims));
    return judge_starts(r, resamples, claims);
}

const struct ks_claim_row *ks_claims_row(const struct ks_claims *claims,
                                         const struct ks_paper_claim *claim,
                                         enum ks_claim_statistic statistic)
{
    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].claim == claim && claims->row[i].statistic == statistic)
            return &claims->row[i];
    return NULL;
}

const char *ks_claims_survival(const struct ks_claims *claims, const struct ks_paper_claim *claim)
{
    const struct ks_claim_row *paper = ks_claims_row(claims, claim, KS_CLAIM_PAPER),
                              *sound = ks_claims_row(claims, claim, KS_CLAIM_SOUND);

    if (!paper || !sound || paper->verdict != KS_SUPPORTED)
        return "open";
    return sound->verdict == KS_SUPPORTED       ? "survives"
           : sound->verdict == KS_NOT_SUPPORTED ? "does not survive"
                                                : "open";
}

/* --- why a claim is not resolved or not decided, in a few words --- */

/* Whether the study has the analysis of the paper's statistic. */
static bool has_paper(const struct ks_claims *claims)
{
    return ks_claim_analyses(claims->results->study, KS_CLAIM_PAPER).n > 0;
}

/* No seed has all the runs that the claim needs. */
static void explain_nothing(const struct ks_claims *claims, const struct ks_claim_row *row,
                            char text[KS_CLAIM_REASON])
{
    static const char *const numbers[KS_CLAIM_VALUES] = {"no", "one", "two", "three"};
    bool number = ks_claim_is_number(row->claim->quantity);

    if (row->statistic == KS_CLAIM_PAPER && !number && !has_paper(claims))
        snprintf(text, KS_CLAIM_REASON, "no analysis with compat = xqc");
    else if (row->values < KS_CLAIM_VALUES && row->claim->quantity != KS_CLAIM_RETURN)
        snprintf(text, KS_CLAIM_REASON, "%s %s%s%s; needs four", numbers[row->values],
                 number ? "row" : "checkpoint", row->values == 1 ? "" : "s",
                 number ? " of progress.csv" : "");
    else
        snprintf(text, KS_CLAIM_REASON, "no seed is complete");
}

void ks_claims_reason(const struct ks_claims *claims, const struct ks_claim_row *row,
                      char text[KS_CLAIM_REASON])
{
    const struct ks_finding *f = &row->found;
    const char *seeds = f->seeds == 1 ? "one seed" : "two seeds";

    *text = '\0';
    if (row->verdict == KS_RESULTS_KNOWN)
        snprintf(text, KS_CLAIM_REASON, "every run is older than the rule");
    if (row->verdict != KS_NOT_RESOLVED && row->verdict != KS_NOT_DECIDED)
        return;
    if (f->seeds == 0)
        explain_nothing(claims, row, text);
    else if (f->seeds < KS_CLAIM_SEEDS)
        snprintf(text, KS_CLAIM_REASON,
                 claims->results->study->n_seeds < KS_CLAIM_SEEDS ? "%s; direction unclear"
                                                                  : "%s; needs three",
                 seeds);
    else if (f->in_favour || f->against)
        snprintf(text, KS_CLAIM_REASON, "adjusted p above 0.05");
    else if (f->effect_low < f->theta && f->theta <= f->effect_high)
        snprintf(text, KS_CLAIM_REASON, "threshold inside the interval");
}

void ks_claims_starts(const struct ks_claim_row *row, char text[KS_CLAIM_STARTS_TEXT])
{
    const struct ks_claim_starts *s = &row->starts;
    const char *between = ": ";
    int used;

    if (s->n < 2) {
        snprintf(text, KS_CLAIM_STARTS_TEXT, s->n == 1 ? "one start vector" : "");
        return;
    }
    used = snprintf(text, KS_CLAIM_STARTS_TEXT, "%zu start vectors", s->n);
    for (enum ks_verdict v = 0; v < KS_VERDICTS; v++)
        if (s->verdicts[v] > 0) {
            used += snprintf(text + used, (size_t)(KS_CLAIM_STARTS_TEXT - used), "%s%zu %s",
                             between, s->verdicts[v], ks_verdict_names[v]);
            between = " and "; /* no comma, which would end the cell of a table */
        }
    if (!isnan(s->effect_least))
        snprintf(text + used, (size_t)(KS_CLAIM_STARTS_TEXT - used), "; %.3g to %.3g",
                 s->effect_least, s->effect_most);
}

void ks_claims_plot(const struct ks_paper_claim *claim, char text[KS_CLAIM_REASON])
{
    snprintf(text, KS_CLAIM_REASON, "Figure %zu and %s", claim->figure, ks_paper_claim_plot(claim));
}

/* --- standard output --- */

static const char *word_of(const struct ks_claims *claims, const struct ks_paper_claim *claim,
                           enum ks_claim_statistic statistic)
{
    const struct ks_claim_row *row = ks_claims_row(claims, claim, statistic);

    return row ? ks_verdict_names[row->verdict] : "-";
}

/* "bn+ce, ln+ce": the architectures that are set, after some words. */
static void print_names(const bool *set, const char *words, FILE *out)
{
    for (size_t k = 0; k < KS_JUDGED; k++) {
        char name[16];

        ks_twelve_name(k, name);
        if (set[k]) {
            fprintf(out, "%s%s", words, name);
            words = ", ";
        }
    }
}

/* Names the claims that cannot be judged, and the architectures that are the reason. */
static void print_skipped(const struct ks_claims *claims, size_t skipped, FILE *out)
{
    const char *between = ": ";

    fprintf(out, "%zu of the paper's %d claims cannot be judged", skipped, KS_CLAIMS);
    print_names(claims->lacks, ", because the study lacks ", out);
    print_names(claims->apart, ", because these spectra are not comparable with the others: ", out);
    for (size_t i = 0; i < KS_CLAIMS && skipped < KS_CLAIMS; i++)
        if (claims->skipped[i]) {
            fprintf(out, "%s%s", between, ks_paper_claims[i].name);
            between = ", ";
        }
    fputs(".\n", out);
}

static void print_missing(const struct ks_claims *claims, FILE *out)
{
    const size_t checkpoints = ks_claim_checkpoints(claims->results);
    size_t skipped = 0;

    for (size_t i = 0; i < KS_CLAIMS; i++)
        skipped += claims->skipped[i];
    if (skipped > 0 && ks_study_trains(claims->results->study)) /* else nobody asked about them */
        print_skipped(claims, skipped, out);
    if (claims->n == 0)
        return;
    if (claims->results->study->n_seeds < KS_CLAIM_SEEDS)
        fprintf(out, "With fewer than %d seeds there are directions and no verdicts.\n",
                KS_CLAIM_SEEDS);
    if (checkpoints < KS_CLAIM_VALUES)
        fprintf(out,
                "A run counts if it has %d checkpoints after the first update; the study has "
                "%zu so far.\n",
                KS_CLAIM_VALUES, checkpoints);
    if (!has_paper(claims))
        fputs("The paper's statistic is that of an analysis [analyze xqc] with compat = xqc, which "
              "the study lacks.\n",
              out);
}

/* The claims that have a verdict by this statistic, under a title. */
static void print_rows(const struct ks_claims *claims, enum ks_claim_statistic statistic,
                       const char *title, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].statistic == statistic && claims->row[i].verdict != KS_RESULTS_KNOWN) {
            if (!any)
                fputs(title, out);
            fprintf(out, "  %s: %s\n", claims->row[i].claim->name,
                    ks_verdict_names[claims->row[i].verdict]);
            any = true;
        }
}

/* Where the word by the paper's statistic depends on Lanczos's start vector. */
static void print_starts(const struct ks_claims *claims, FILE *out)
{
    size_t n = 0, differ = 0;

    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_claim_row *row = &claims->row[i];
        char text[KS_CLAIM_STARTS_TEXT];

        n = row->starts.n > n ? row->starts.n : n;
        if (row->starts.n == 0 || row->starts.verdicts[row->verdict] == row->starts.n)
            continue;
        if (differ++ == 0)
            fputs("The paper's statistic depends on Lanczos's start vector:\n", out);
        ks_claims_starts(row, text);
        fprintf(out, "  %s: %s\n", row->claim->name, text);
    }
    if (n == 1)
        fputs("The paper's statistic is from one start vector of Lanczos; another one may give "
              "another word.\n",
              out);
    else if (n > 1)
        fprintf(out, "All other words are the same from each of %zu start vectors.\n", n);
}

void ks_claims_print(const struct ks_claims *claims, FILE *out)
{
    enum { NAME = 29, WORD = 18 };

    if (claims->n == 0 && !ks_study_trains(claims->results->study))
        return;
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
    print_starts(claims, out);
    print_rows(claims, KS_CLAIM_CONTROL,
               "The sound statistic with batch normalization over the rows of the loss alone:\n",
               out);
    print_rows(claims, KS_CLAIM_REVISED,
               "By the revised rules, of the runs that began after they were written:\n", out);
    print_missing(claims, out);
}
