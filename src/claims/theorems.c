#include "claims/theorems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/round.h"
#include "io/text.h"
#include "statistics/statistics.h"

/* Targets may sum to 1 within 1e-3 (checkpoint.h), and |p - t| exceed sqrt 2 by as much. */
static const double MOST = 1 + 1e-3;

/* What the theorems speak of, at one checkpoint. NaN: not measured. */
struct measured {
    double logit_largest, logit_median; /* |p - t| / sqrt 2                                 */
    double gradient;                    /* the largest |g| / (sqrt 2 L_f), at most this     */
    double gradient_typical;            /* the same with the median over rows in place of L_f */
    double rows;                        /* by which L_f was bounded from below              */
    double decay;                       /* mu^2 of the loss                                 */
    double needed;                      /* at most 2 lambda_m^f, which mu^2 has to exceed   */
};

static struct measured find(const struct ks_spectrum *s)
{
    double bound = sqrt(2), g = ks_statistic(s, "minibatch_gradient_largest");

    return (struct measured){ks_statistic(s, "logit_gradient_largest") / bound,
                             ks_statistic(s, "logit_gradient_median") / bound,
                             g / (bound * ks_statistic(s, "logit_jacobian_largest")),
                             g / (bound * ks_statistic(s, "logit_jacobian_median")),
                             ks_statistic(s, "logit_jacobian_rows"),
                             ks_attribute_number(&s->attributes, "weight_decay"),
                             NAN};
}

static const char *text_of(const struct ks_spectrum *s, const char *name)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, name);

    return a && a->type == KS_ATTRIBUTE_STRING ? a->string : "";
}

/* Whether s is of the residual H - G of the network whose Hessian `hessian` is of, in the same mode
 * of batch normalization. Targets and minibatches may be others: the bound holds for any. */
static bool is_residual(const struct ks_spectrum *s, const struct ks_spectrum *hessian)
{
    const char *name = ks_results_operator(s);

    return name && strcmp(name, "residual") == 0 && !ks_attribute_find(&s->attributes, "compat") &&
           strcmp(text_of(s, "batchnorm"), text_of(hessian, "batchnorm")) == 0;
}

/* Proposition 4: let no Hessian of a logit f_k have an eigenvalue above lambda_m^f in absolute
 * value. With a weight decay mu^2 = 2 lambda_m^f + epsilon, epsilon > 0, the condition number is at
 * most (4 lambda_m^f + L_f^2 + epsilon) / epsilon. The residual is the mean over rows of sum_k
 * (p_k - t_k) times the Hessian of f_k, and sum_k |p_k - t_k| <= 2. So its largest absolute
 * eigenvalue is at most 2 lambda_m^f, and mu^2 has to exceed it. Ritz values bound it from below.
 *
 * That eigenvalue for a checkpoint of a run; NaN if its residual was not analyzed. */
static double find_needed(const struct ks_results *r, const struct ks_result *run,
                          size_t checkpoint)
{
    const struct ks_spectrum *hessian = ks_results_spectrum(r, run, 0, checkpoint);

    for (size_t k = 1; k < r->study->n_analyses; k++) {
        const struct ks_spectrum *s = ks_results_spectrum(r, run, k, checkpoint);

        if (s && is_residual(s, hessian))
            return fmax(ks_statistic(s, "lambda_max"), -ks_statistic(s, "lambda_min")) /
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
        if (s && !isnan(w->measured.logit_largest)) {
            w->measured.needed = find_needed(w->r, w->run, w->checkpoint);
            return true;
        }
    }
    return false;
}

static void print_place(const struct walk *w, FILE *out)
{
    const struct ks_study *s = w->r->study;

    fprintf(out, "%s,%zu,%zu", s->architecture[w->run->architecture].name, s->seed[w->run->seed],
            s->checkpoint[w->checkpoint]);
}

static void print_measured(double x, FILE *out)
{
    if (isnan(x))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", x);
}

void ks_theorems_print_csv(const struct ks_results *results, FILE *out)
{
    fprintf(out, "architecture,seed,env_step,proposition_2_largest,proposition_2_median,theorem_1,"
                 "theorem_1_median,jacobian_rows,weight_decay,weight_decay_needed\n");
    for (struct walk w = {.r = results}; step(&w);) {
        const struct measured *x = &w.measured;

        print_place(&w, out);
        fprintf(out, ",%.10g,%.10g,%.10g,%.10g,%.0f", x->logit_largest, x->logit_median,
                x->gradient, x->gradient_typical, x->rows);
        print_measured(x->decay, out);
        print_measured(x->needed, out);
        fputc('\n', out);
    }
}

ks_status ks_theorems_write(const struct ks_results *results)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/tables/theorems.csv", results->dir));
    status = ks_text_open(path, &text);
    if (status == KS_OK)
        ks_theorems_print_csv(results, text.stream);
    free(path);
    return ks_text_close(&text, status);
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

void ks_theorems_print(const struct ks_results *results, FILE *out)
{
    double logit = 0, gradient = 0, rows = 0;
    size_t n = 0, above = 0;

    for (struct walk w = {.r = results}; step(&w); n++) {
        logit = fmax(logit, w.measured.logit_largest);
        gradient = fmax(gradient, w.measured.gradient);
        rows = w.measured.rows;
        above += w.measured.logit_largest > MOST;
    }
    if (n == 0)
        return;
    fprintf(out,
            "\nProposition 2, |p - t| <= sqrt 2: of %zu checkpoints with cross-entropy the largest "
            "ratio is %.3g.\n",
            n, logit);
    fprintf(out,
            "Theorem 1, |g| <= sqrt 2 L_f: the largest ratio is at most %.3g, with L_f bounded "
            "from below by %.0f rows of each checkpoint.\n",
            ks_round_up(gradient, 3), rows);
    print_decay(results, out);
    if (above > 0)
        fprintf(out,
                "Proposition 2 is proved, and %zu checkpoints exceed it: that is an error of the "
                "measurement.\n",
                above);
}
