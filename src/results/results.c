#include "results/results.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "io/file.h"
#include "statistics/statistics.h"
#include "study/elsewhere.h"
#include "study/study_file.h"

const struct ks_spectrum *ks_results_spectrum(const struct ks_results *r,
                                              const struct ks_result *run, size_t analysis,
                                              size_t checkpoint)
{
    return run->spectrum[analysis * r->study->n_checkpoints + checkpoint];
}

double ks_results_statistic(const struct ks_results *r, const struct ks_result *run,
                            size_t analysis, size_t checkpoint, enum ks_statistic_id statistic)
{
    const struct ks_spectrum *s = ks_results_spectrum(r, run, analysis, checkpoint);

    return s ? ks_statistic_value(s, statistic) : NAN;
}

bool ks_results_is_pooled(const struct ks_results *r, size_t analysis, size_t checkpoint)
{
    return r->common_checkpoint[checkpoint] &&
           r->study->checkpoint[checkpoint] > r->study->first_update &&
           ks_study_asks_checkpoint(r->study, analysis, checkpoint);
}

bool ks_results_has(const struct ks_results *r, size_t architecture, size_t checkpoint)
{
    return r->common_checkpoint[checkpoint] && ks_study_has_any(r->study, architecture, checkpoint);
}

size_t ks_results_last(const struct ks_results *r, size_t architecture)
{
    size_t k = r->study->n_checkpoints - 1;

    while (k > 0 && !ks_results_has(r, architecture, k))
        k--;
    return k;
}

bool ks_results_has_return(const struct ks_results *r, size_t architecture, size_t evaluation)
{
    bool all = r->common_evaluation[evaluation];

    for (size_t i = 0; i < r->study->n_seeds && all; i++) {
        const struct ks_result *run = &r->run[architecture * r->study->n_seeds + i];

        all = !run->complete || !isnan(run->returns[evaluation]);
    }
    return all;
}

const char *ks_results_operator(const struct ks_spectrum *s)
{
    return ks_attribute_number(&s->attributes, "critic") < 0 &&
                   ks_attribute_number(&s->attributes, "layer") < 0 &&
                   !ks_attribute_find(&s->attributes, "array")
               ? ks_attribute_text(&s->attributes, "operator")
               : NULL;
}

ks_status ks_results_path(const struct ks_results *r, const struct ks_result *run, const char *name,
                          char **path)
{
    char *folder = NULL;
    ks_status status = ks_study_run_folder(r->study, run->architecture, run->seed, &folder);

    if (strcmp(name, "progress.csv") == 0 && r->study->architecture[run->architecture].elsewhere)
        name = KS_ELSEWHERE_RETURNS; /* may have metrics beside the returns */
    *path = NULL;
    if (status == KS_OK)
        status = ks_print_string(path, "%s/%s/%s", r->dir, folder, name);
    free(folder);
    return status;
}

ks_status ks_results_progress(const struct ks_results *r, const struct ks_result *run,
                              struct ks_csv **csv)
{
    char *path = NULL;
    ks_status status = ks_results_path(r, run, "progress.csv", &path);

    *csv = NULL;
    if (status == KS_OK && ks_path_exists(path))
        status = ks_csv_read(path, true, csv);
    free(path);
    return status == KS_FORMAT || status == KS_IO ? KS_OK : status;
}

enum { ENOUGH_RUNS = 5 }; /* for a bootstrap interval that is not too narrow */

/* Adds a warning, which is printed and goes into the report. */
static ks_status __attribute__((format(printf, 2, 3)))
warn(struct ks_results *r, const char *format, ...)
{
    va_list arguments;
    ks_status status;

    va_start(arguments, format);
    status = ks_list_print(&r->warning, &r->n_warnings, &r->warning_room, format, arguments);
    va_end(arguments);
    return status;
}

/* Frees the densities, which no table has. */
static void drop_densities(struct ks_spectrum *s)
{
    free(s->grid);
    free(s->density);
    free(s->symlog_grid);
    free(s->symlog_density);
    s->grid = s->density = s->symlog_grid = s->symlog_density = NULL;
    s->n_grid = 0;
}

static ks_status read_spectrum(struct ks_results *r, struct ks_result *run, const char *folder,
                               size_t analysis, size_t checkpoint)
{
    const struct ks_study *s = r->study;
    const struct ks_study_checkpoint id = {run->architecture, run->seed, s->checkpoint[checkpoint]};
    struct ks_spectrum **spectrum = &run->spectrum[analysis * s->n_checkpoints + checkpoint];
    char *path = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_study_output(&s->analysis[analysis], folder, id.step, KS_STUDY_SPECTRUM, &path));
    if (ks_path_exists(path))
        status = ks_study_read_spectrum(s, &id, path, spectrum);
    if (*spectrum)
        drop_densities(*spectrum);
    free(path);
    return status;
}

static ks_status warn_changes(struct ks_results *r, const char *relative, size_t architecture,
                              size_t seed)
{
    ks_status status = KS_OK;
    char *changes;

    KS_TRY(ks_changes_read(r->dir, relative, &changes));
    if (*changes)
        status = warn(
            r,
            "%s, seed %zu: the run was resumed under other conditions, so it does not equal an "
            "uninterrupted run bit for bit: %s",
            r->study->architecture[architecture].name, r->study->seed[seed], changes);
    free(changes);
    return status;
}

/* A run with results has a run.json that says how far it is. */
static ks_status expect_state(const struct ks_study *s, const struct ks_result *run,
                              const char *folder, const struct ks_study_run_state *state)
{
    bool has_spectra = false;

    for (size_t i = 0; i < s->n_analyses * s->n_checkpoints; i++)
        has_spectra = has_spectra || run->spectrum[i];
    if (has_spectra && strcmp(state->word, "unknown") == 0)
        return ks_fail(KS_FORMAT, "%s/run.json: damaged: expected the state of a run", folder);
    if (has_spectra && strcmp(state->word, "waiting") == 0)
        return ks_fail(KS_FORMAT, "%s/run.json: missing, although the run has spectra", folder);
    return KS_OK;
}

static ks_status read_run(struct ks_results *r, size_t architecture, size_t seed)
{
    const struct ks_study *s = r->study;
    struct ks_result *run = &r->run[architecture * s->n_seeds + seed];
    struct ks_study_run id = {architecture, seed, "return_mean", false};
    struct ks_study_run_state state;
    char *relative = NULL, *folder = NULL;
    bool malformed;
    ks_status status = KS_OK;

    run->architecture = architecture;
    run->seed = seed;
    run->exists = ks_study_has_run(s, architecture, seed);
    KS_GO(ks_pool_alloc(&r->pool, s->n_analyses * s->n_checkpoints, sizeof(struct ks_spectrum *),
                        &run->spectrum));
    KS_GO(ks_pool_alloc(&r->pool, s->n_evaluations, sizeof *run->returns, &run->returns));
    for (size_t k = 0; k < s->n_evaluations; k++)
        run->returns[k] = NAN;
    KS_GO(ks_study_run_folder(s, architecture, seed, &relative));
    KS_GO(ks_print_string(&folder, "%s/%s", r->dir, relative));
    for (size_t k = 0; k < s->n_analyses; k++)
        for (size_t i = 0; i < s->n_checkpoints; i++)
            if (ks_study_has_checkpoint(s, (struct ks_study_place){architecture, seed, i}))
                KS_GO(read_spectrum(r, run, folder, k, i));
    if (s->architecture[architecture].elsewhere) {
        run->is_over = true;
    } else {
        KS_GO(ks_study_run_state(r->dir, relative, &state));
        KS_GO(expect_state(s, run, folder, &state));
        id.is_over = run->is_over = ks_study_run_is_over(s, &state);
        KS_GO(warn_changes(r, relative, architecture, seed));
    }
    KS_GO(ks_returns_read(s, id, folder, run->returns, &malformed));
    if (malformed) /* the run has no returns */
        status = warn(r, "%s", ks_error_text());
done:
    free(relative);
    free(folder);
    return status;
}

/* Counts the missing spectra of an analysis, at checkpoints that are aggregated. */
static size_t count_missing_spectra(const struct ks_results *r, const struct ks_result *run,
                                    size_t analysis)
{
    size_t missing = 0;

    for (size_t i = 0; i < r->study->n_checkpoints; i++)
        missing += r->common_checkpoint[i] && !ks_results_spectrum(r, run, analysis, i) &&
                   ks_study_asks(r->study, analysis, run->architecture, i);
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

static ks_status warn_further_analyses(struct ks_results *r, const struct ks_result *run)
{
    const struct ks_study *s = r->study;

    for (size_t k = 1; k < s->n_analyses; k++) {
        size_t missing = count_missing_spectra(r, run, k);

        if (missing > 0)
            KS_TRY(warn(r,
                        "%s, seed %zu: %zu of %zu spectra of [analyze %s] are missing: "
                        "they count as failed analyses",
                        s->architecture[run->architecture].name, s->seed[run->seed], missing,
                        ks_study_asked_checkpoints(s, k, run->architecture), s->analysis[k].name));
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
            return warn(r,
                        "%s, seed %zu: left out, as it lacks the checkpoint at step %zu, which "
                        "another seed has (grid = common in [study] leaves the step out instead)",
                        name, seed, s->checkpoint[i]);
    for (size_t i = 0; i < s->n_seeds; i++) {
        const size_t k = last_return(r, &r->run[run->architecture * s->n_seeds + i]);

        if (k < s->n_evaluations && s->evaluation[k] > longest)
            longest = s->evaluation[k];
    }
    if ((double)s->evaluation[last] < ENDS * (double)longest)
        return warn(r,
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
               : warn(r,
                      "the returns at the end are at different steps, from %zu (%s, seed %zu) to "
                      "%zu (%s, seed %zu)",
                      least, s->architecture[first->architecture].name, s->seed[first->seed], most,
                      s->architecture[last->architecture].name, s->seed[last->seed]);
}

/* Decides whether a run can be aggregated; warns if analyses of a complete one are missing. */
static ks_status judge_run(struct ks_results *r, struct ks_result *run)
{
    const struct ks_study *s = r->study;
    size_t spectra = count_missing_spectra(r, run, 0), returns = 0;

    for (size_t k = 0; k < s->n_evaluations; k++)
        returns += r->common_evaluation[k] && isnan(run->returns[k]) && is_due(r, run, k);
    run->complete = run->exists && returns == 0 && (spectra == 0 || run->is_over);
    if (run->complete && s->architecture[run->architecture].elsewhere)
        KS_TRY(judge_elsewhere(r, run));
    if (!run->complete)
        return KS_OK;
    if (spectra > 0)
        KS_TRY(warn(r,
                    "%s, seed %zu: the run is over, but %zu of %zu spectra are missing: they "
                    "count as failed analyses",
                    s->architecture[run->architecture].name, s->seed[run->seed], spectra,
                    ks_study_asked_checkpoints(s, 0, run->architecture)));
    return warn_further_analyses(r, run);
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
    size_t incomplete = 0, all = 0, least = s->n_seeds, most = 0, size;
    char *list = NULL;
    FILE *out = open_memstream(&list, &size);
    ks_status status;

    if (!out)
        return ks_stream_close(out);
    for (size_t a = 0; a < s->n_architectures; a++) {
        const struct ks_result *run[KS_STUDY_SEEDS];
        const size_t complete = ks_results_runs(r, a, run), runs = count_runs(r, a);

        if (complete < runs) {
            fputs(incomplete > 0 ? "; " : ": ", out);
            print_incomplete(r, a, complete, out);
        }
        incomplete += runs - complete;
        all += runs;
        least = complete > 0 && complete < least ? complete : least;
        most = complete > most ? complete : most;
    }
    if (least < most)
        fprintf(out, ". The architectures have unequal numbers of seeds, %zu to %zu", least, most);
    status = ks_stream_close(out);
    if (status == KS_OK && incomplete > 0)
        status = warn(r, "%zu of %zu runs are not complete and left out%s", incomplete, all, list);
    free(list);
    return status;
}

static ks_status warn_conditions(struct ks_results *r)
{
    const struct ks_study_architecture *all = r->study->architecture;
    size_t first = 0, order[KS_STUDY_ARCHITECTURES], n = ks_results_order(r, order);
    char text[KS_CONDITIONS_TEXT];

    for (size_t i = n; i-- > 0;)
        first = r->conditions[order[i]].group == 1 ? order[i] : first;
    for (size_t i = 0; i < n; i++) {
        const struct ks_conditions *c = &r->conditions[order[i]];
        const char *name = all[order[i]].name;

        ks_conditions_print(c, c->mixed ? NULL : &r->conditions[first], sizeof text, text);
        if (c->mixed)
            KS_TRY(warn(r, "%s: its own spectra are not comparable: %s", name, text));
        else if (c->group > 1)
            KS_TRY(warn(r, "%s: not comparable with %s: %s", name, all[first].name, text));
    }
    return r->n_groups < 2 ? KS_OK
                           : warn(r, "correlations are not computed, as not all spectra are "
                                     "comparable; figures against the return draw them apart");
}

static ks_status read_all(struct ks_results *r)
{
    const struct ks_study *s = r->study;

    for (size_t i = 0; i < s->n_warnings; i++)
        KS_TRY(warn(r, "%s", s->warning[i]));
    for (size_t a = 0; a < s->n_architectures; a++)
        for (size_t i = 0; i < s->n_seeds; i++)
            KS_TRY(read_run(r, a, i));
    memset(r->common_checkpoint, true, s->n_checkpoints * sizeof *r->common_checkpoint);
    memset(r->common_evaluation, true, s->n_evaluations * sizeof *r->common_evaluation);
    if (s->common_grid)
        find_common_grid(r);
    if (memchr(r->common_checkpoint, 0, s->n_checkpoints) ||
        memchr(r->common_evaluation, 0, s->n_evaluations))
        KS_TRY(warn(r, "grid = common: only the steps that all runs have are aggregated"));
    for (size_t n = 0; n < r->n_runs; n++) {
        KS_TRY(judge_run(r, &r->run[n]));
        r->included[r->run[n].architecture] = r->included[r->run[n].architecture] ||
                                              r->run[n].complete;
    }
    KS_TRY(warn_incomplete(r));
    KS_TRY(warn_ends(r));
    KS_TRY(ks_conditions_find(r));
    return warn_conditions(r);
}

ks_status ks_results_read(const char *dir, const struct ks_study *study, struct ks_results **out)
{
    struct ks_results *r = NULL;
    char *path = NULL;
    ks_status status = KS_OK;

    *out = NULL;
    KS_GO(ks_alloc(1, sizeof *r, &r));
    KS_GO(ks_copy_string(dir, &r->dir));
    KS_GO(ks_print_string(&path, "%s/study.study", dir));
    if (!study)
        KS_GO(ks_study_read(path, false, &r->own_study));
    r->study = study ? study : r->own_study;
    r->n_runs = r->study->n_architectures * r->study->n_seeds;
    KS_GO(ks_pool_alloc(&r->pool, r->n_runs, sizeof *r->run, &r->run));
    KS_GO(ks_pool_alloc(&r->pool, r->study->n_architectures, sizeof *r->included, &r->included));
    KS_GO(
        ks_pool_alloc(&r->pool, r->study->n_architectures, sizeof *r->conditions, &r->conditions));
    KS_GO(ks_pool_alloc(&r->pool, r->study->n_checkpoints, sizeof *r->common_checkpoint,
                        &r->common_checkpoint));
    KS_GO(ks_pool_alloc(&r->pool, r->study->n_evaluations, sizeof *r->common_evaluation,
                        &r->common_evaluation));
    KS_GO(read_all(r));
    *out = r, r = NULL;
done:
    free(path);
    ks_results_free(r);
    return status;
}

void ks_results_free(struct ks_results *r)
{
    if (!r)
        return;
    for (size_t n = 0; r->run && n < r->n_runs; n++)
        for (size_t i = 0; r->run[n].spectrum && i < r->study->n_analyses * r->study->n_checkpoints;
             i++)
            ks_spectrum_free(r->run[n].spectrum[i]);
    for (size_t i = 0; i < r->n_warnings; i++)
        free(r->warning[i]);
    free(r->warning);
    ks_pool_free(&r->pool);
    ks_study_free(r->own_study);
    free(r->dir);
    free(r);
}

size_t ks_results_runs(const struct ks_results *r, size_t architecture,
                       const struct ks_result **list)
{
    size_t n = 0;

    for (size_t i = 0; i < r->study->n_seeds; i++) {
        const struct ks_result *run = &r->run[architecture * r->study->n_seeds + i];

        if (run->complete)
            list[n++] = run;
    }
    return n;
}

ks_status ks_results_warn_intervals(struct ks_results *r)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t few = 0, included = 0;

    for (size_t a = 0; a < r->study->n_architectures; a++) {
        size_t runs = ks_results_runs(r, a, run);

        included += r->included[a];
        few += r->included[a] && runs > 1 && runs < ENOUGH_RUNS;
    }
    return few == 0 ? KS_OK
                    : warn(r,
                           "%zu of %zu architectures have fewer than %d runs: their bootstrap "
                           "intervals are too narrow",
                           few, included, ENOUGH_RUNS);
}

static size_t rank_of(const struct ks_study_architecture *a)
{
    static const char *const losses[] = {"ce", "mse"}, *const norms[] = {"bn", "ln", "dense"};
    size_t loss = ks_word_index(a->loss, 2, losses),
           norm = ks_word_index(a->normalization, 3, norms);

    return 2 * (8 * loss + 2 * norm + a->weight_normalization) + (a->line > 0);
}

size_t ks_results_order(const struct ks_results *r, size_t *architecture)
{
    const struct ks_study_architecture *all = r->study->architecture;
    size_t n = 0;

    for (size_t a = 0; a < r->study->n_architectures; a++) { /* insertion sort is stable */
        size_t i = n;

        if (!r->included[a])
            continue;
        for (; i > 0 && rank_of(&all[architecture[i - 1]]) > rank_of(&all[a]); i--)
            architecture[i] = architecture[i - 1];
        architecture[i] = a;
        n++;
    }
    return n;
}
