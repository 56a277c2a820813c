/* How near critics come to what the XQC paper proves. */
#include "claims/claims.h"

#include <math.h>
#include <string.h>

#include "core/interval.h"
#include "statistics/statistics.h"

/* Targets may sum to 1 within 1e-3 (checkpoint.h), and |p - t| exceed sqrt 2 by as much. */
static const double MOST = 1 + 1e-3;

/* How far |theta_h| may move from one checkpoint of a run to another and still count as fixed: the
 * rounding of weight normalization in float32. */
static const double FIXED = 1e-6;

/* What the theorems speak of, at one checkpoint. NaN: not measured. */
struct measured {
    double error_largest, error_median; /* |f - y| of a squared error                       */
    double logit_largest, logit_median; /* |p - t| / sqrt 2                                 */
    double lemma;                       /* the largest |g| / (sqrt 2 L_f), at most this     */
    double lemma_typical;               /* the same with the median over rows in place of L_f */
    double rows;                        /* by which L_f and L_h were bounded from below     */
    double theorem;                     /* the largest |g_h| / (sqrt 2 L_h), at most this   */
    double norm;                        /* |theta_h|                                        */
    double radial;                      /* the largest cosine of theta_h and g_h            */
    double update, update_bound;        /* |g_h| and sqrt 2 L_h, over |theta_h|             */
    double decay;                       /* mu^2 of the loss                                 */
    double needed;                      /* at most 2 lambda_m^f, which mu^2 has to exceed   */
};

static struct measured find(const struct ks_spectrum *s)
{
    double bound = sqrt(2), g = ks_statistic_value(s, KS_STAT_MINIBATCH_GRADIENT_LARGEST);
    double hidden = ks_statistic_value(s, KS_STAT_MINIBATCH_GRADIENT_HIDDEN_LARGEST);
    double most = bound * ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_HIDDEN_LARGEST);
    double norm = ks_statistic_value(s, KS_STAT_HIDDEN_NORM);
    struct measured m = {
        .error_largest = ks_statistic_value(s, KS_STAT_PREDICTION_ERROR_LARGEST),
        .error_median = ks_statistic_value(s, KS_STAT_PREDICTION_ERROR_MEDIAN),
        .logit_largest = ks_statistic_value(s, KS_STAT_LOGIT_GRADIENT_LARGEST) / bound,
        .logit_median = ks_statistic_value(s, KS_STAT_LOGIT_GRADIENT_MEDIAN) / bound,
        .lemma = g / (bound * ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_LARGEST)),
        .lemma_typical = g / (bound * ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_MEDIAN)),
        .rows = ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_ROWS),
        .theorem = hidden / most,
        .norm = norm,
        .radial = ks_statistic_value(s, KS_STAT_HIDDEN_RADIAL_LARGEST),
        .update = hidden / norm,
        .update_bound = most / norm,
        .decay = NAN,
        .needed = NAN,
    };

    if (!isnan(m.logit_largest))
        m.decay = ks_attribute_number(&s->attributes, "weight_decay");
    return m;
}

/* Whether s is of the residual H - G of the network whose Hessian `hessian` is of, in the same mode
 * of batch normalization. Targets and minibatches may be others: the bound holds for any. */
static bool is_residual(const struct ks_spectrum *s, const struct ks_spectrum *hessian)
{
    const char *name = ks_results_operator(s),
               *mode = ks_attribute_text(&s->attributes, "batchnorm"),
               *of = ks_attribute_text(&hessian->attributes, "batchnorm");

    return name && strcmp(name, "residual") == 0 && !ks_attribute_find(&s->attributes, "compat") &&
           strcmp(mode ? mode : "", of ? of : "") == 0;
}

/* Proposition 4: let no Hessian of a logit f_k have an eigenvalue above lambda_m^f in absolute
 * value. With a weight decay mu^2 = 2 lambda_m^f + epsilon, epsilon > 0, the condition number is at
 * most (4 lambda_m^f + L_f^2 + epsilon) / epsilon. The residual is the mean over rows of sum_k
 * (p_k - t_k) times the Hessian of f_k, and sum_k |p_k - t_k| <= 2. So its largest absolute
 * eigenvalue is at most 2 lambda_m^f, and mu^2 has to exceed it. Ritz values bound it from below.
 * mu^2 is that of a term mu^2 / 2 |theta|^2 of the loss; the decoupled decay of AdamW is none.
 *
 * That eigenvalue for a checkpoint of a run; NaN if its residual was not analyzed. */
static double find_needed(const struct ks_results *r, const struct ks_result *run,
                          size_t checkpoint)
{
    const struct ks_spectrum *hessian = ks_results_spectrum(r, run, 0, checkpoint);

    for (size_t k = 1; k < r->study->n_analyses; k++) {
        const struct ks_spectrum *s = ks_results_spectrum(r, run, k, checkpoint);

        if (s && is_residual(s, hessian))
            return fmax(ks_statistic_value(s, KS_STAT_LAMBDA_MAX),
                        -ks_statistic_value(s, KS_STAT_LAMBDA_MIN)) /
                   fabs(ks_attribute_number(&s->attributes, "scale"));
    }
    return NAN;
}

/* The spectra of the standard analysis, in the order of runs and checkpoints. */
struct walk {
    const struct ks_results *r;
    size_t next;
    /* where the walk is */
    const struct ks_result *run;
    size_t checkpoint;
    struct measured measured;
};

/* Goes on to the next spectrum that has the measurements; false after the last one. */
static bool step(struct walk *w)
{
    size_t checkpoints = w->r->study->n_checkpoints;

    while (w->next < w->r->n_runs * checkpoints) {
        const struct ks_spectrum *s;

        w->run = &w->r->run[w->next / checkpoints];
        w->checkpoint = w->next++ % checkpoints;
        s = ks_results_spectrum(w->r, w->run, 0, w->checkpoint);
        if (s)
            w->measured = find(s);
        if (s && !isnan(w->measured.logit_largest))
            w->measured.needed = find_needed(w->r, w->run, w->checkpoint);
        if (s && !(isnan(w->measured.logit_largest) && isnan(w->measured.error_largest)))
            return true;
    }
    return false;
}

void ks_theorems_fill(const struct ks_results *results, struct ks_table *out)
{
    const struct ks_study *study = results->study;

    for (struct walk w = {.r = results}; step(&w);) {
        const struct measured *m = &w.measured;

        ks_table_cells(out, KS_TEXT(study->architecture[w.run->architecture].name),
                       KS_COUNT(study->seed[w.run->seed]),
                       KS_COUNT(study->checkpoint[w.checkpoint]), KS_NUMBER(m->error_largest),
                       KS_NUMBER(m->error_median), KS_NUMBER(m->logit_largest),
                       KS_NUMBER(m->logit_median), KS_NUMBER(m->lemma), KS_NUMBER(m->lemma_typical),
                       KS_NUMBER(m->rows), KS_NUMBER(m->theorem), KS_NUMBER(m->norm),
                       KS_NUMBER(m->radial), KS_NUMBER(m->update), KS_NUMBER(m->update_bound),
                       KS_NUMBER(m->decay), KS_NUMBER(m->needed));
    }
}

/* The line about Proposition 4, if a residual was analyzed: where it cannot apply. */
static void print_decay(const struct ks_results *results, FILE *out)
{
    double least = INFINITY, decay = 0;
    size_t n = 0, excluded = 0;

    for (struct walk w = {.r = results}; step(&w);) {
        n += !isnan(w.measured.needed);
        if (!(w.measured.decay <= w.measured.needed))
            continue;
        excluded++;
        least = fmin(least, w.measured.needed);
        decay = fmax(decay, w.measured.decay);
    }
    if (excluded > 0)
        fprintf(out,
                "Proposition 4 needs a weight decay mu^2 > 2 lambda_m^f. At %zu of %zu checkpoints "
                "mu^2 is not that large: there it is at most %.3g, and 2 lambda_m^f is at least "
                "%.3g, by the residual's eigenvalues.\n",
                excluded, n, ks_round_up(decay, 3), ks_round_down(least, 3));
    else if (n > 0)
        fprintf(
            out,
            "Proposition 4 needs a weight decay mu^2 > 2 lambda_m^f. The residual's eigenvalues "
            "rule that out at none of %zu checkpoints; whether it holds is not known.\n",
            n);
}

/* By how much |theta_h| changes over the checkpoints of a run, relative to the smallest; NaN unless
 * it was measured at two of them. */
static double find_move(const struct ks_results *results, const struct ks_result *run)
{
    double least = INFINITY, most = 0;
    size_t n = 0;

    for (struct walk w = {.r = results}; step(&w);)
        if (w.run == run && !isnan(w.measured.norm)) {
            least = fmin(least, w.measured.norm);
            most = fmax(most, w.measured.norm);
            n++;
        }
    return n > 1 ? most / least - 1 : NAN;
}

/* Where the premise of Theorem 1 that |theta_h| is fixed holds. */
static void print_fixed(const struct ks_results *results, FILE *out)
{
    double fixed = 0, other = NAN;
    size_t n = 0;

    for (size_t i = 0; i < results->study->n_architectures; i++) {
        double move = NAN; /* the largest over its runs; NaN if it is known of none */

        for (size_t k = 0; k < results->n_runs; k++)
            if (results->run[k].architecture == i)
                move = fmax(move, find_move(results, &results->run[k]));
        if (move > FIXED)
            other = fmax(other, move);
        if (!(move <= FIXED))
            continue;
        fprintf(out, "%s%s", n++ == 0 ? "|theta_h| is fixed during the runs of " : ", ",
                results->study->architecture[i].name);
        fixed = fmax(fixed, move);
    }
    if (n > 0)
        fprintf(out, " (it changes by at most %.2g%%)", 100 * ks_round_up(fixed, 2));
    if (!isnan(other))
        fprintf(out, "%s by up to %.3g%%%s",
                n > 0 ? ", and changes" : "|theta_h| is not fixed: it changes during a run",
                100 * ks_round_up(other, 3), n > 0 ? " in those of other architectures" : "");
    if (n > 0 || !isnan(other))
        fputs(".\n", out);
}

/* The largest numbers of all checkpoints. */
struct summary {
    size_t squared, entropy, hidden, above; /* checkpoints: with |f - y|; with |p - t|; with
                                             * theta_h; that exceed Proposition 2 */
    struct measured most;
};

static struct summary summarize(const struct ks_results *results)
{
    struct summary s = {0};

    for (struct walk w = {.r = results}; step(&w);) {
        const struct measured *m = &w.measured;

        s.squared += !isnan(m->error_largest);
        s.entropy += !isnan(m->logit_largest);
        s.hidden += !isnan(m->theorem);
        s.above += m->logit_largest > MOST;
        s.most.error_largest = fmax(s.most.error_largest, m->error_largest);
        s.most.error_median = fmax(s.most.error_median, m->error_median);
        s.most.logit_largest = fmax(s.most.logit_largest, m->logit_largest);
        s.most.lemma = fmax(s.most.lemma, m->lemma);
        s.most.rows = fmax(s.most.rows, m->rows);
        s.most.theorem = fmax(s.most.theorem, m->theorem);
        s.most.radial = fmax(s.most.radial, m->radial);
    }
    return s;
}

static void print_entropy(const struct ks_results *results, const struct summary *s, FILE *out)
{
    fprintf(out,
            "Proposition 2, |p - t| <= sqrt 2: of %zu checkpoints with cross-entropy the largest "
            "ratio is %.3g.\n",
            s->entropy, s->most.logit_largest);
    fprintf(
        out,
        "Lemma 1 with Proposition 2, |g| <= sqrt 2 L_f: the largest ratio is at most %.3g, with "
        "L_f bounded from below by %.0f rows of each checkpoint.\n",
        ks_round_up(s->most.lemma, 3), s->most.rows);
    if (s->hidden > 0)
        fprintf(out,
                "Theorem 1, |g_h| / |theta_h| <= sqrt 2 L_h / |theta_h| in the hidden layers: of "
                "%zu checkpoints the largest ratio is at most %.3g. Its f is scale-invariant up to "
                "an epsilon: the largest cosine of theta_h and g_h is %.2g (exactly: 0).\n",
                s->hidden, ks_round_up(s->most.theorem, 3), s->most.radial);
    print_fixed(results, out);
    print_decay(results, out);
    if (s->above > 0)
        fprintf(out,
                "Proposition 2 is proved, and %zu checkpoints exceed it: that is an error of the "
                "measurement.\n",
                s->above);
}

void ks_theorems_print(const struct ks_results *results, FILE *out)
{
    const struct summary s = summarize(results);

    if (s.squared > 0 || s.entropy > 0)
        fputc('\n', out);
    if (s.squared > 0)
        fprintf(out,
                "Proposition 1, |f - y| has no bound: of %zu checkpoints with squared error the "
                "largest is %.3g, the largest median over rows %.3g.\n",
                s.squared, s.most.error_largest, s.most.error_median);
    if (s.entropy > 0)
        print_entropy(results, &s, out);
}
