#include "results/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/study_file.h"

/* Counts the missing spectra of an analysis, at checkpoints that are aggregated. *first (may be
 * NULL): the checkpoint of the first. */
static size_t count_missing_spectra(const struct ks_results *r, const struct ks_result *run,
                                    size_t analysis, size_t *first)
{
    size_t missing = 0;

    for (size_t i = 0; i < r->study->n_checkpoints; i++)
        if (r->common_checkpoint[i] && !ks_results_spectrum(r, run, analysis, i) &&
            ks_study_asks(r->study, analysis, run->architecture, i) && missing++ == 0 && first)
            *first = i;
    return missing;
}

static bool is_due(const struct ks_results *r, const struct ks_result *run, size_t evaluation)
{
    return ks_study_has_return(r->study,
                               (struct ks_study_place){run->architecture, run->seed, evaluation});
}

/* The index of the last evaluation that a run has, or is to have; n_evaluations: it has none. */
static size_t last_return(const struct ks_results *r, const struct ks_result *run)
{
    for (size_t k = r->study->n_evaluations; k-- > 0;)
        if (is_due(r, run, k))
            return k;
    return r->study->n_evaluations;
}

/* A run that is trained here has its last spectrum and return; one from elsewhere has any. */
static bool has_ended(const struct ks_results *r, const struct ks_result *run)
{
    const size_t last = last_return(r, run);

    if (!run->exists || last == r->study->n_evaluations || isnan(run->returns[last]))
        return false;
    return r->study->architecture[run->architecture].elsewhere ||
           run->spectrum[ks_study_last_checkpoint(r->study, run->architecture)];
}

/* grid = common: the steps that every run has which reached its end. Other runs are incomplete. */
static void find_common_grid(struct ks_results *r)
{
    const struct ks_study *s = r->study;

    for (size_t n = 0; n < r->n_runs; n++) {
        const struct ks_result *run = &r->run[n];

        if (!has_ended(r, run))
            continue;
        for (size_t i = 0; i < s->n_checkpoints; i++)
            r->common_checkpoint[i] = r->common_checkpoint[i] &&
                                      (run->spectrum[i] ||
                                       !ks_study_has_any(s, run->architecture, i));
        for (size_t k = 0; k < s->n_evaluations; k++)
            r->common_evaluation[k] = r->common_evaluation[k] &&
                                      (!isnan(run->returns[k]) ||
                                       s->architecture[run->architecture].elsewhere ||
                                       !is_due(r, run, k));
    }
}

/* Of a run from elsewhere, the file of the first missing spectrum is named. */
static ks_status warn_elsewhere(struct ks_results *r, const struct ks_result *run, size_t analysis)
{
    const struct ks_study *s = r->study;
    size_t first = 0, missing = count_missing_spectra(r, run, analysis, &first);
    KS_OWNED char *folder = NULL, *path = NULL;

    if (missing == 0)
        return KS_OK;
    KS_TRY(ks_study_run_folder(s, run->architecture, run->seed, &folder));
    KS_TRY(ks_study_output(&s->analysis[analysis], folder, s->checkpoint[first], KS_STUDY_SPECTRUM,
                           &path));
    return ks_list_add(&r->warnings,
                       "%s/%s: missing: %zu of %zu spectra of this run are left out as failed "
                       "analyses",
                       r->dir, path, missing,
                       ks_study_asked_checkpoints(s, analysis, run->architecture));
}

static ks_status warn_spectra(struct ks_results *r, const struct ks_result *run)
{
    const struct ks_study *s = r->study;

    for (size_t k = 0; k < s->n_analyses; k++) {
        const size_t missing = count_missing_spectra(r, run, k, NULL);

        if (s->architecture[run->architecture].elsewhere)
            KS_TRY(warn_elsewhere(r, run, k));
        else if (missing > 0 && k == 0)
            KS_TRY(ks_list_add(
                &r->warnings,
                "%s, seed %zu: the run is over, but %zu of %zu spectra are missing: they "
                "count as failed analyses",
                s->architecture[run->architecture].name, s->seed[run->seed], missing,
                ks_study_asked_checkpoints(s, 0, run->architecture)));
        else if (missing > 0)
            KS_TRY(ks_list_add(&r->warnings,
                               "%s, seed %zu: %zu of %zu spectra of [analyze %s] are missing: "
                               "they count as failed analyses",
                               s->architecture[run->architecture].name, s->seed[run->seed], missing,
                               ks_study_asked_checkpoints(s, k, run->architecture),
                               s->analysis[k].name));
    }
    return KS_OK;
}

/* A run from elsewhere that ends at less than this fraction of the steps of another seed was cut
 * short, or has not ended yet: a judgement. */
static const double ENDS = 0.8;

/* Whether a run from elsewhere has all checkpoints of its name, and returns up to about the end of
 * the other seeds'. */
static ks_status judge_elsewhere(struct ks_results *r, struct ks_result *run)
{
    const struct ks_study *s = r->study;
    const char *name = s->architecture[run->architecture].name;
    const size_t seed = s->seed[run->seed], last = last_return(r, run);
    size_t longest = 0;

    run->complete = false;
    if (last == s->n_evaluations || isnan(run->returns[last]))
        return KS_OK; /* the study has warned about its table, or the caller */
    for (size_t i = 0; i < s->n_checkpoints; i++)
        if (ks_results_has(r, run->architecture, i) &&
            !ks_study_has_checkpoint(s, (struct ks_study_place){run->architecture, run->seed, i}))
            return ks_list_add(
                &r->warnings,
                "%s, seed %zu: left out, as it lacks the checkpoint at step %zu, which "
                "another seed has (grid = common in [study] leaves the step out instead)",
                name, seed, s->checkpoint[i]);
    for (size_t i = 0; i < s->n_seeds; i++) {
        const size_t k = last_return(r, &r->run[run->architecture * s->n_seeds + i]);

        if (k < s->n_evaluations && s->evaluation[k] > longest)
            longest = s->evaluation[k];
    }
    if ((double)s->evaluation[last] < ENDS * (double)longest)
        return ks_list_add(
            &r->warnings,
            "%s, seed %zu: left out, as its returns end at step %zu, those of another seed "
            "at step %zu",
            name, seed, s->evaluation[last], longest);
    run->complete = true;
    return KS_OK;
}

/* Warns if the returns that are compared are of different times in training. */
static ks_status warn_ends(struct ks_results *r)
{
    const struct ks_study *s = r->study;
    size_t least = 0, most = 0;
    const struct ks_result *first = NULL, *last = NULL;

    for (size_t n = 0; n < r->n_runs; n++) {
        const struct ks_result *run = &r->run[n];
        size_t step;

        if (!run->complete)
            continue;
        step = s->evaluation[last_return(r, run)];
        if (!first || step < least)
            least = step, first = run;
        if (!last || step > most)
            most = step, last = run;
    }
    return !first || least == most
               ? KS_OK
               : ks_list_add(
                     &r->warnings,
                     "the returns at the end are at different steps, from %zu (%s, seed %zu) to "
                     "%zu (%s, seed %zu)",
                     least, s->architecture[first->architecture].name, s->seed[first->seed], most,
                     s->architecture[last->architecture].name, s->seed[last->seed]);
}

/* Decides whether a run can be aggregated; warns if analyses of a complete one are missing. */
static ks_status judge_run(struct ks_results *r, struct ks_result *run)
{
    const struct ks_study *s = r->study;
    size_t returns = 0;

    for (size_t k = 0; k < s->n_evaluations; k++)
        returns += r->common_evaluation[k] && isnan(run->returns[k]) && is_due(r, run, k);
    run->complete = run->exists && returns == 0 &&
                    (run->is_over || count_missing_spectra(r, run, 0, NULL) == 0);
    if (run->complete && s->architecture[run->architecture].elsewhere)
        KS_TRY(judge_elsewhere(r, run));
    return run->complete ? warn_spectra(r, run) : KS_OK;
}

static size_t count_runs(const struct ks_results *r, size_t architecture)
{
    size_t n = 0;

    for (size_t i = 0; i < r->study->n_seeds; i++)
        n += r->run[architecture * r->study->n_seeds + i].exists;
    return n;
}

/* "ln+ce, seeds 1 4" or "ln+ce, all seeds": the runs of an architecture that are not complete. */
static void print_incomplete(const struct ks_results *r, size_t architecture, size_t complete,
                             FILE *out)
{
    const struct ks_study *s = r->study;
    const struct ks_result *run = &r->run[architecture * s->n_seeds];

    fprintf(out, "%s, %s", s->architecture[architecture].name,
            complete == 0                                 ? "all seeds"
            : count_runs(r, architecture) - complete == 1 ? "seed"
                                                          : "seeds");
    for (size_t i = 0; i < s->n_seeds && complete > 0; i++)
        if (run[i].exists && !run[i].complete)
            fprintf(out, " %zu", s->seed[i]);
}

/* One warning for all runs that are not complete. */
static ks_status warn_incomplete(struct ks_results *r)
{
    const struct ks_study *s = r->study;
    size_t incomplete = 0, all = 0, least = s->n_seeds, most = 0, size, few = 0, many = 0;
    KS_OWNED char *list = NULL;
    FILE *out = open_memstream(&list, &size);

    if (!out)
        return ks_stream_close(out);
    for (size_t a = 0; a < s->n_architectures; a++) {
        const size_t complete = ks_results_runs(r, a).n, runs = count_runs(r, a);

        if (complete < runs) {
            fputs(incomplete > 0 ? "; " : ": ", out);
            print_incomplete(r, a, complete, out);
        }
        incomplete += runs - complete;
        all += runs;
        if (complete > 0 && complete < least)
            least = complete, few = a;
        if (complete > most)
            most = complete, many = a;
    }
    if (least < most)
        fprintf(out, ". The architectures have unequal numbers of seeds, %zu to %zu", least, most);
    KS_TRY(ks_stream_close(out));
    if (incomplete > 0)
        return ks_list_add(&r->warnings, "%zu of %zu runs are not complete and left out%s",
                           incomplete, all, list);
    if (least < most)
        return ks_list_add(
            &r->warnings,
            "the architectures have unequal numbers of seeds, from %zu (%s) to %zu (%s)", least,
            s->architecture[few].name, most, s->architecture[many].name);
    return KS_OK;
}

ks_status ks_results_judge(struct ks_results *r)
{
    const struct ks_study *s = r->study;

    memset(r->common_checkpoint, true, s->n_checkpoints * sizeof *r->common_checkpoint);
    memset(r->common_evaluation, true, s->n_evaluations * sizeof *r->common_evaluation);
    if (s->common_grid)
        find_common_grid(r);
    if (memchr(r->common_checkpoint, 0, s->n_checkpoints) ||
        memchr(r->common_evaluation, 0, s->n_evaluations))
        KS_TRY(ks_list_add(&r->warnings,
                           "grid = common: only the steps that all runs%s have are aggregated",
                           ks_study_has_elsewhere(s) ? " of a name" : ""));
    for (size_t n = 0; n < r->n_runs; n++) {
        KS_TRY(judge_run(r, &r->run[n]));
        r->included[r->run[n].architecture] = r->included[r->run[n].architecture] ||
                                              r->run[n].complete;
    }
    KS_TRY(warn_incomplete(r));
    return warn_ends(r);
}
