#include "claims/theorems.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/text.h"
#include "statistics/statistics.h"

/* Targets may sum to 1 within 1e-3 (checkpoint.h), and |p - t| exceed sqrt 2 by as much. */
static const double MOST = 1 + 1e-3;

/* The measurements of a checkpoint, divided by their bounds. */
struct ratios {
    double logit_largest, logit_median; /* |p - t| / sqrt 2                                 */
    double gradient;                    /* the largest |g| / (sqrt 2 L_f), at most this     */
    double gradient_typical;            /* the same with the median over rows in place of L_f */
    double rows;                        /* by which L_f was bounded from below              */
};

/* NaN where the spectrum has no such statistics. */
static struct ratios find(const struct ks_spectrum *s)
{
    double bound = sqrt(2), g = ks_statistic(s, "minibatch_gradient_largest");

    return (struct ratios){ks_statistic(s, "logit_gradient_largest") / bound,
                           ks_statistic(s, "logit_gradient_median") / bound,
                           g / (bound * ks_statistic(s, "logit_jacobian_largest")),
                           g / (bound * ks_statistic(s, "logit_jacobian_median")),
                           ks_statistic(s, "logit_jacobian_rows")};
}

/* The spectra of the standard analysis, in the order of runs and checkpoints. */
struct walk {
    const struct ks_results *r;
    size_t next;
    /* where the walk is */
    const struct ks_result *run;
    size_t checkpoint;
    struct ratios ratios;
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
            w->ratios = find(s);
        if (s && !isnan(w->ratios.logit_largest))
            return true;
    }
    return false;
}

static void print_place(const struct walk *w, FILE *out)
{
    const struct ks_study *s = w->r->study;

    fprintf(out, "%s,%zu,%zu", s->architecture[w->run->architecture].name, s->seed[w->run->seed],
            s->checkpoint[w->checkpoint]);
}

void ks_theorems_print_csv(const struct ks_results *results, FILE *out)
{
    fprintf(out, "architecture,seed,env_step,proposition_2_largest,proposition_2_median,theorem_1,"
                 "theorem_1_median,jacobian_rows\n");
    for (struct walk w = {.r = results}; step(&w);) {
        const struct ratios *x = &w.ratios;

        print_place(&w, out);
        fprintf(out, ",%.10g,%.10g,%.10g,%.10g,%.0f\n", x->logit_largest, x->logit_median,
                x->gradient, x->gradient_typical, x->rows);
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

void ks_theorems_print(const struct ks_results *results, FILE *out)
{
    double logit = 0, gradient = 0, rows = 0;
    size_t n = 0, above = 0;

    for (struct walk w = {.r = results}; step(&w); n++) {
        logit = fmax(logit, w.ratios.logit_largest);
        gradient = fmax(gradient, w.ratios.gradient);
        rows = w.ratios.rows;
        above += w.ratios.logit_largest > MOST;
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
            gradient, rows);
    if (above > 0)
        fprintf(out,
                "Proposition 2 is proved, and %zu checkpoints exceed it: that is an error of the "
                "measurement.\n",
                above);
}
