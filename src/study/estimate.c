#define _DEFAULT_SOURCE /* timegm */
#include "study/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/memory.h"
#include "io/csv.h"
#include "io/text.h"

/* Environment steps of an episode; at most, for tasks with terminal states. */
enum { EPISODE = 1000 };

static void add(struct ks_pace *sum, struct ks_pace more)
{
    sum->seconds += more.seconds;
    sum->amount += more.amount;
}

/* What a run's progress.csv says: a row's rate holds for the steps since the row before it; the
 * first update follows a row. */
static ks_status add_rows(const struct ks_csv *csv, struct ks_paces *paces)
{
    size_t step_column, update_column, rate_column;
    double step, update, rate, before = 0;

    KS_TRY(ks_csv_column(csv, "env_step", &step_column));
    KS_TRY(ks_csv_column(csv, "update", &update_column));
    KS_TRY(ks_csv_column(csv, "steps_per_second", &rate_column));
    for (size_t row = 0; row < csv->rows; row++, before = step) {
        KS_TRY(ks_csv_number(csv, row, step_column, &step));
        KS_TRY(ks_csv_number(csv, row, update_column, &update));
        KS_TRY(ks_csv_number(csv, row, rate_column, &rate));
        if (step > before && rate > 0)
            add(update > 0 ? &paces->training : &paces->acting,
                (struct ks_pace){(step - before) / rate, step - before});
    }
    return KS_OK;
}

static ks_status read_run(struct ks_forecast *f, size_t run, const char *dir)
{
    const char *folder = f->graph->job[run].folder;
    struct ks_paces *paces = &f->own[run % f->graph->study->n_architectures];
    double before = paces->training.amount;
    struct ks_study_run_state state;
    struct ks_csv *csv = NULL;
    char *why = NULL, *path = NULL;

    KS_TRY(ks_study_run_state(dir, folder, &state));
    KS_TRY(ks_graph_restart(f->graph, run, dir, &why));
    f->step[run] = why ? 0 : state.env_step;
    free(why);
    KS_TRY(ks_print_string(&path, "%s/%s/progress.csv", dir, folder));
    if (ks_path_exists(path) && ks_csv_read(path, true, &csv) == KS_OK)
        add_rows(csv, paces); /* the rows before a damaged one count */
    f->n_runs += paces->training.amount > before;
    ks_csv_free(csv);
    free(path);
    return KS_OK;
}

/* The time in the last line of a log that begins with `word`; -1: there is none. */
static double find_time(const char *text, const char *word)
{
    double found = -1;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        struct tm t = {0};

        line += *line == '\n';
        if (strncmp(line, word, strlen(word)) == 0 &&
            sscanf(line + strlen(word), "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday,
                   &t.tm_hour, &t.tm_min, &t.tm_sec) == 6) {
            t.tm_year -= 1900;
            t.tm_mon--;
            found = (double)timegm(&t);
        }
    }
    return found;
}

/* What the log of an analysis says. */
static ks_status read_log(struct ks_forecast *f, const struct ks_graph_job *job, const char *dir)
{
    struct ks_paces *paces = &f->own[job->run % f->graph->study->n_architectures];
    char *path, *text = NULL;

    KS_TRY(ks_print_string(&path, "%s/%s", dir, job->log));
    if (ks_path_exists(path) && ks_text_read(path, &text, NULL) == KS_OK) {
        double started = find_time(text, KS_GRAPH_STARTED), ended = find_time(text, KS_GRAPH_ENDED);

        if (started > 0 && ended >= started) {
            add(&paces->spectrum[job->analysis], (struct ks_pace){ended - started, 1});
            f->n_spectra++;
        }
    }
    free(text);
    free(path);
    return KS_OK;
}

ks_status ks_forecast_read(const struct ks_graph *graph, const char *dir, struct ks_forecast *f)
{
    *f = (struct ks_forecast){.graph = graph};
    KS_TRY(ks_alloc(graph->study->n_architectures, sizeof *f->own, &f->own));
    KS_TRY(ks_alloc(graph->n_runs, sizeof *f->step, &f->step));
    KS_TRY(ks_graph_done(graph, dir, &f->done));
    for (size_t i = 0; i < graph->n_jobs; i++)
        if (graph->job[i].trains)
            KS_TRY(read_run(f, i, dir));
        else if (ks_graph_targets(graph, i, dir) == graph->job[i].n_targets)
            KS_TRY(read_log(f, &graph->job[i], dir));
    for (size_t a = 0; a < graph->study->n_architectures; a++) {
        add(&f->all.acting, f->own[a].acting);
        add(&f->all.training, f->own[a].training);
        for (size_t k = 0; k < graph->study->n_analyses; k++)
            add(&f->all.spectrum[k], f->own[a].spectrum[k]);
    }
    return KS_OK;
}

void ks_forecast_clear(struct ks_forecast *f)
{
    free(f->own);
    free(f->done);
    free(f->step);
    *f = (struct ks_forecast){.graph = NULL};
}

/* Seconds for an amount at the architecture's own pace, or at the mean one; NaN: not known. */
static double seconds_for(double amount, struct ks_pace own, struct ks_pace all)
{
    struct ks_pace pace = own.amount > 0 ? own : all;

    if (amount == 0)
        return 0;
    return pace.amount > 0 ? amount * pace.seconds / pace.amount : NAN;
}

static double estimate_training(const struct ks_forecast *f, size_t run)
{
    const struct ks_study *s = f->graph->study;
    const struct ks_settings *settings = &s->architecture[run % s->n_architectures].settings;
    const struct ks_paces *own = &f->own[run % s->n_architectures];
    size_t first = settings->random_steps * settings->action_repeat, episodes = 0;
    size_t step = f->step[run] < s->end ? f->step[run] : s->end;

    first = first < s->end ? first : s->end;
    for (size_t i = 0; i < s->n_evaluations; i++)
        if (step == 0 || s->evaluation[i] > step)
            episodes += settings->eval_episodes;
    return seconds_for((double)(episodes * EPISODE + (step < first ? first - step : 0)),
                       own->acting, f->all.acting) +
           seconds_for((double)(s->end - (step < first ? first : step)), own->training,
                       f->all.training);
}

struct ks_time_left ks_forecast_run(const struct ks_forecast *f, size_t run)
{
    const struct ks_graph *graph = f->graph;
    const struct ks_paces *own = &f->own[run % graph->study->n_architectures];
    struct ks_time_left left = {f->done[run] ? 0 : estimate_training(f, run), 0, 0, 0};

    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == run && !f->done[i]) {
            size_t k = graph->job[i].analysis;
            double spectrum = seconds_for(1, own->spectrum[k], f->all.spectrum[k]);

            left.spectra += spectrum;
            left.best_spectra += own->best[k] > 0 ? own->best[k] : spectrum;
        }
    left.all = left.training + left.spectra;
    return left;
}

struct ks_time_left ks_forecast_all(const struct ks_forecast *f, size_t jobs)
{
    struct ks_time_left sum = {0, 0, 0, 0};
    double longest = 0;

    for (size_t n = 0; n < f->graph->n_runs; n++) {
        struct ks_time_left left = ks_forecast_run(f, n);

        sum.training += left.training;
        sum.spectra += left.spectra;
        sum.best_spectra += left.best_spectra;
        longest = left.training > longest ? left.training : longest;
    }
    sum.all = (sum.training + sum.spectra) / (double)(jobs > 0 ? jobs : 1);
    if (sum.all < longest)
        sum.all = longest;
    return sum;
}
