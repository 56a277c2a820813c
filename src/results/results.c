#include "results/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "io/file.h"
#include "io/scout.h"
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
    KS_OWNED char *folder = NULL;

    *path = NULL;
    KS_TRY(ks_study_run_folder(r->study, run->architecture, run->seed, &folder));
    if (strcmp(name, "progress.csv") == 0 && r->study->architecture[run->architecture].elsewhere)
        name = KS_ELSEWHERE_RETURNS; /* may have metrics beside the returns */
    return ks_print_string(path, "%s/%s/%s", r->dir, folder, name);
}

ks_status ks_results_progress(const struct ks_results *r, const struct ks_result *run,
                              struct ks_csv **csv)
{
    KS_OWNED char *path = NULL;
    ks_status status = KS_OK;

    *csv = NULL;
    KS_TRY(ks_results_path(r, run, "progress.csv", &path));
    if (ks_path_exists(path))
        status = r->study->architecture[run->architecture].elsewhere ? ks_elsewhere_table(path, csv)
                                                                     : ks_csv_read(path, true, csv);
    return status == KS_FORMAT || status == KS_IO ? KS_OK : status;
}

enum { ENOUGH_RUNS = 5 }; /* for a bootstrap interval that is not too narrow */

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
    const struct ks_study_spectrum id = {run->architecture, run->seed, analysis,
                                         s->checkpoint[checkpoint]};
    struct ks_spectrum **spectrum = &run->spectrum[analysis * s->n_checkpoints + checkpoint];
    KS_OWNED char *path = NULL;

    KS_TRY(ks_study_output(&s->analysis[analysis], folder, id.step, KS_STUDY_SPECTRUM, &path));
    if (!ks_path_exists(path))
        return KS_OK;
    KS_TRY(ks_study_read_spectrum(s, &id, path, spectrum));
    drop_densities(*spectrum);
    return KS_OK;
}

static ks_status warn_changes(struct ks_results *r, const char *relative, size_t architecture,
                              size_t seed)
{
    KS_OWNED char *changes = NULL;

    KS_TRY(ks_changes_read(r->dir, relative, &changes));
    if (!*changes)
        return KS_OK;
    return ks_list_add(
        &r->warnings,
        "%s, seed %zu: the run was resumed under other conditions, so it does not equal an "
        "uninterrupted run bit for bit: %s",
        r->study->architecture[architecture].name, r->study->seed[seed], changes);
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
    KS_OWNED char *relative = NULL, *folder = NULL;
    bool malformed;

    run->architecture = architecture;
    run->seed = seed;
    run->exists = ks_study_has_run(s, architecture, seed);
    KS_TRY(ks_pool_alloc(&r->pool, s->n_analyses * s->n_checkpoints, sizeof(struct ks_spectrum *),
                         &run->spectrum));
    KS_TRY(ks_pool_alloc(&r->pool, s->n_evaluations, sizeof *run->returns, &run->returns));
    for (size_t k = 0; k < s->n_evaluations; k++)
        run->returns[k] = NAN;
    KS_TRY(ks_study_run_folder(s, architecture, seed, &relative));
    KS_TRY(ks_print_string(&folder, "%s/%s", r->dir, relative));
    for (size_t k = 0; k < s->n_analyses; k++)
        for (size_t i = 0; i < s->n_checkpoints; i++)
            if (ks_study_has_checkpoint(s, (struct ks_study_place){architecture, seed, i}))
                KS_TRY(read_spectrum(r, run, folder, k, i));
    if (s->architecture[architecture].elsewhere) {
        run->is_over = true;
    } else {
        KS_TRY(ks_study_run_state(r->dir, relative, &state));
        KS_TRY(expect_state(s, run, folder, &state));
        memcpy(run->began, state.began, sizeof run->began);
        id.is_over = run->is_over = ks_study_run_is_over(s, &state);
        KS_TRY(warn_changes(r, relative, architecture, seed));
    }
    KS_TRY(ks_returns_read(s, id, folder, run->returns, &malformed));
    return malformed ? ks_list_add(&r->warnings, "%s", ks_error_text())
                     : KS_OK; /* it has no returns */
}

/* `first`: the first architecture of group 1. */
static ks_status warn_condition(struct ks_results *r, size_t architecture, size_t first)
{
    const struct ks_study_architecture *all = r->study->architecture;
    const struct ks_comparability *c = &r->conditions[architecture];
    const char *name = all[architecture].name;
    KS_OWNED char *text = NULL;

    if (!c->mixed && c->group <= 1)
        return KS_OK;
    KS_TRY(
        ks_conditions_print(r, architecture, c->mixed ? r->study->n_architectures : first, &text));
    return c->mixed
               ? ks_list_add(&r->warnings, "%s: its own spectra are not comparable: %s", name, text)
               : ks_list_add(&r->warnings, "%s: not comparable with %s: %s", name, all[first].name,
                             text);
}

static ks_status warn_conditions(struct ks_results *r)
{
    size_t first = 0, order[KS_STUDY_ARCHITECTURES], n = ks_results_order(r, order);

    for (size_t i = n; i-- > 0;)
        first = r->conditions[order[i]].group == 1 ? order[i] : first;
    for (size_t i = 0; i < n; i++)
        KS_TRY(warn_condition(r, order[i], first));
    return r->n_groups < 2 ? KS_OK
                           : ks_list_add(&r->warnings,
                                         "correlations are not computed, as not all spectra are "
                                         "comparable; figures against the return draw them apart");
}

static ks_status read_runs(void *results)
{
    struct ks_results *r = results;

    for (size_t a = 0; a < r->study->n_architectures; a++)
        for (size_t i = 0; i < r->study->n_seeds; i++)
            KS_TRY(read_run(r, a, i));
    return KS_OK;
}

static ks_status read_all(struct ks_results *r)
{
    const struct ks_study *s = r->study;

    for (size_t i = 0; i < s->warnings.n; i++)
        KS_TRY(ks_list_add(&r->warnings, "%s", s->warnings.text[i]));
    KS_TRY(ks_scout_many(r->n_runs * s->n_analyses * s->n_checkpoints, read_runs, r));
    KS_TRY(ks_results_judge(r));
    KS_TRY(ks_conditions_find(r));
    return warn_conditions(r);
}

ks_status ks_results_read(const char *dir, struct ks_study *study, struct ks_results **out)
{
    KS_OWNED_BY(ks_results_free) struct ks_results *r = NULL;
    KS_OWNED char *path = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    KS_TRY(ks_copy_string(dir, &r->dir));
    KS_TRY(ks_print_string(&path, "%s/study.study", dir));
    if (!study)
        KS_TRY(ks_study_read(path, KS_STUDY_SHOW, &r->own_study));
    r->study = study ? study : r->own_study;
    r->n_runs = r->study->n_architectures * r->study->n_seeds;
    KS_TRY(ks_pool_alloc(&r->pool, r->n_runs, sizeof *r->run, &r->run));
    KS_TRY(ks_pool_alloc(&r->pool, r->study->n_architectures, sizeof *r->included, &r->included));
    KS_TRY(ks_pool_alloc(&r->pool, r->study->n_analyses * r->study->n_architectures,
                         sizeof *r->conditions, &r->conditions));
    KS_TRY(ks_pool_alloc(&r->pool, r->study->n_checkpoints, sizeof *r->common_checkpoint,
                         &r->common_checkpoint));
    KS_TRY(ks_pool_alloc(&r->pool, r->study->n_evaluations, sizeof *r->common_evaluation,
                         &r->common_evaluation));
    KS_TRY(read_all(r));
    *out = r, r = NULL;
    return KS_OK;
}

void ks_results_free(struct ks_results *r)
{
    if (!r)
        return;
    for (size_t n = 0; r->run && n < r->n_runs; n++)
        for (size_t i = 0; r->run[n].spectrum && i < r->study->n_analyses * r->study->n_checkpoints;
             i++)
            ks_spectrum_free(r->run[n].spectrum[i]);
    ks_list_clear(&r->warnings);
    ks_conditions_clear(r);
    ks_pool_free(&r->pool);
    ks_study_free(r->own_study);
    free(r->dir);
    free(r);
}

struct ks_runs ks_results_runs(const struct ks_results *r, size_t architecture)
{
    struct ks_runs runs = {.n = 0};

    for (size_t i = 0; i < r->study->n_seeds; i++) {
        const struct ks_result *run = &r->run[architecture * r->study->n_seeds + i];

        if (run->complete)
            runs.run[runs.n++] = run;
    }
    return runs;
}

ks_status ks_results_warn_intervals(struct ks_results *r)
{
    size_t few = 0, included = 0;

    for (size_t a = 0; a < r->study->n_architectures; a++) {
        const size_t runs = ks_results_runs(r, a).n;

        included += r->included[a];
        few += r->included[a] && runs > 1 && runs < ENOUGH_RUNS;
    }
    return few == 0
               ? KS_OK
               : ks_list_add(&r->warnings,
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
