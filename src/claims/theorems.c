/* How near critics come to what the XQC paper proves. */
#include "claims/claims.h"

#include <math.h>
#include <string.h>

#include "core/interval.h"
#include "core/memory.h"
#include "statistics/statistics.h"

/* Targets may sum to 1 within 1e-3 (checkpoint.h), and |p - t| exceed sqrt 2 by as much. */
static const double MOST = 1 + 1e-3;

/* How far |theta_h| may move from one checkpoint of a run to another and still count as fixed: the
 * rounding of weight normalization in float32. */
static const double FIXED = 1e-6;

static void measure(const struct ks_spectrum *s, double value[KS_THEOREM_NUMBERS])
{
    double bound = sqrt(2), g = ks_statistic_value(s, KS_STAT_MINIBATCH_GRADIENT_LARGEST);
    double hidden = ks_statistic_value(s, KS_STAT_MINIBATCH_GRADIENT_HIDDEN_LARGEST);
    double most = bound * ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_HIDDEN_LARGEST);
    double norm = ks_statistic_value(s, KS_STAT_HIDDEN_NORM);
    const double values[KS_THEOREM_NUMBERS] = {
        [KS_PROPOSITION_1_LARGEST] = ks_statistic_value(s, KS_STAT_PREDICTION_ERROR_LARGEST),
        [KS_PROPOSITION_1_MEDIAN] = ks_statistic_value(s, KS_STAT_PREDICTION_ERROR_MEDIAN),
        [KS_PROPOSITION_2_LARGEST] = ks_statistic_value(s, KS_STAT_LOGIT_GRADIENT_LARGEST) / bound,
        [KS_PROPOSITION_2_MEDIAN] = ks_statistic_value(s, KS_STAT_LOGIT_GRADIENT_MEDIAN) / bound,
        [KS_LEMMA_1] = g / (bound * ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_LARGEST)),
        [KS_LEMMA_1_MEDIAN] = g / (bound * ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_MEDIAN)),
        [KS_THEOREM_ROWS] = ks_statistic_value(s, KS_STAT_LOGIT_JACOBIAN_ROWS),
        [KS_THEOREM_1] = hidden / most,
        [KS_HIDDEN_NORM] = norm,
        [KS_HIDDEN_RADIAL] = ks_statistic_value(s, KS_STAT_HIDDEN_RADIAL_LARGEST),
        [KS_EFFECTIVE_UPDATE] = hidden / norm,
        [KS_EFFECTIVE_UPDATE_BOUND] = most / norm,
        [KS_WEIGHT_DECAY] = NAN,
        [KS_WEIGHT_DECAY_NEEDED] = NAN,
    };

    memcpy(value, values, sizeof values);
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

/* Adds a row if the spectrum has the measurements. */
static ks_status add_row(const struct ks_results *r, const struct ks_result *run, size_t checkpoint,
                         struct ks_theorems *t)
{
    const struct ks_spectrum *s = ks_results_spectrum(r, run, 0, checkpoint);
    struct ks_theorem_row row = {run->architecture, run->seed, checkpoint, {0}};

    if (!s)
        return KS_OK;
    measure(s, row.value);
    if (!isnan(row.value[KS_PROPOSITION_2_LARGEST])) {
        row.value[KS_WEIGHT_DECAY] = ks_attribute_number(&s->attributes, "weight_decay");
        row.value[KS_WEIGHT_DECAY_NEEDED] = find_needed(r, run, checkpoint);
    } else if (isnan(row.value[KS_PROPOSITION_1_LARGEST])) {
        return KS_OK;
    }
    KS_TRY(ks_grow(t->n, sizeof *t->row, &t->room, &t->row));
    t->row[t->n++] = row;
    return KS_OK;
}

ks_status ks_theorems_find(const struct ks_results *r, struct ks_theorems *t)
{
    for (size_t i = 0; i < r->n_runs; i++)
        for (size_t k = 0; k < r->study->n_checkpoints; k++)
            KS_TRY(add_row(r, &r->run[i], k, t));
    return KS_OK;
}

double ks_theorems_largest(const struct ks_theorems *t, size_t architecture,
                           enum ks_theorem_number number)
{
    double largest = NAN;

    for (size_t i = 0; i < t->n; i++)
        if (architecture == KS_ALL_ARCHITECTURES || t->row[i].architecture == architecture)
            largest = fmax(largest, t->row[i].value[number]);
    return largest;
}

/* --- standard output --- */

/* The number of checkpoints that have a number above `least`. */
static size_t count(const struct ks_theorems *t, enum ks_theorem_number number, double least)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        n += t->row[i].value[number] > least;
    return n;
}

/* The line about Proposition 4, if a residual was analyzed: where it cannot apply. */
static void print_decay(const struct ks_theorems *t, FILE *out)
{
    double least = INFINITY, decay = 0;
    size_t n = count(t, KS_WEIGHT_DECAY_NEEDED, -INFINITY), excluded = 0;

    for (size_t i = 0; i < t->n; i++) {
        const double *value = t->row[i].value;

        if (!(value[KS_WEIGHT_DECAY] <= value[KS_WEIGHT_DECAY_NEEDED]))
            continue;
        excluded++;
        least = fmin(least, value[KS_WEIGHT_DECAY_NEEDED]);
        decay = fmax(decay, value[KS_WEIGHT_DECAY]);
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
static double find_move(const struct ks_theorems *t, size_t architecture, size_t seed)
{
    double least = INFINITY, most = 0;
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const double norm = t->row[i].value[KS_HIDDEN_NORM];

        if (t->row[i].architecture != architecture || t->row[i].seed != seed || isnan(norm))
            continue;
        least = fmin(least, norm);
        most = fmax(most, norm);
        n++;
    }
    return n > 1 ? most / least - 1 : NAN;
}

/* Where the premise of Theorem 1 that |theta_h| is fixed holds. */
static void print_fixed(const struct ks_study *study, const struct ks_theorems *t, FILE *out)
{
    double fixed = 0, other = NAN;
    size_t n = 0;

    for (size_t i = 0; i < study->n_architectures; i++) {
        double move = NAN; /* the largest over its runs; NaN if it is known of none */

        for (size_t k = 0; k < study->n_seeds; k++)
            move = fmax(move, find_move(t, i, k));
        if (move > FIXED)
            other = fmax(other, move);
        if (!(move <= FIXED))
            continue;
        fprintf(out, "%s%s", n++ == 0 ? "|theta_h| is fixed during the runs of " : ", ",
                study->architecture[i].name);
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

/* The largest value at any checkpoint. */
static double most(const struct ks_theorems *t, enum ks_theorem_number number)
{
    return ks_theorems_largest(t, KS_ALL_ARCHITECTURES, number);
}

static void print_entropy(const struct ks_study *study, const struct ks_theorems *t, FILE *out)
{
    const size_t hidden = count(t, KS_THEOREM_1, -INFINITY),
                 above = count(t, KS_PROPOSITION_2_LARGEST, MOST);

    fprintf(out,
            "Proposition 2, |p - t| <= sqrt 2: of %zu checkpoints with cross-entropy the largest "
            "ratio is %.3g.\n",
            count(t, KS_PROPOSITION_2_LARGEST, -INFINITY), most(t, KS_PROPOSITION_2_LARGEST));
    fprintf(
        out,
        "Lemma 1 with Proposition 2, |g| <= sqrt 2 L_f: the largest ratio is at most %.3g, with "
        "L_f bounded from below by %.0f rows of each checkpoint.\n",
        ks_round_up(most(t, KS_LEMMA_1), 3), most(t, KS_THEOREM_ROWS));
    if (hidden > 0)
        fprintf(out,
                "Theorem 1, |g_h| / |theta_h| <= sqrt 2 L_h / |theta_h| in the hidden layers: of "
                "%zu checkpoints the largest ratio is at most %.3g. Its f is scale-invariant up to "
                "an epsilon: the largest cosine of theta_h and g_h is %.2g (exactly: 0).\n",
                hidden, ks_round_up(most(t, KS_THEOREM_1), 3), most(t, KS_HIDDEN_RADIAL));
    print_fixed(study, t, out);
    print_decay(t, out);
    if (above > 0)
        fprintf(out,
                "Proposition 2 is proved, and %zu checkpoints exceed it: that is an error of the "
                "measurement.\n",
                above);
}

void ks_theorems_print(const struct ks_study *study, const struct ks_theorems *t, FILE *out)
{
    const size_t squared = count(t, KS_PROPOSITION_1_LARGEST, -INFINITY);

    if (t->n > 0)
        fputc('\n', out);
    if (squared > 0)
        fprintf(out,
                "Proposition 1, |f - y| has no bound: of %zu checkpoints with squared error the "
                "largest is %.3g, the largest median over rows %.3g.\n",
                squared, most(t, KS_PROPOSITION_1_LARGEST), most(t, KS_PROPOSITION_1_MEDIAN));
    if (count(t, KS_PROPOSITION_2_LARGEST, -INFINITY) > 0)
        print_entropy(study, t, out);
}
