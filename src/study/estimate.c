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

enum {
    EPISODE = 1000
}; /* environment steps of an episode; at most, for tasks with terminal states */

static void add(struct ks_pace *sum, struct ks_pace more)
{
    sum->seconds += more.seconds;
    sum->amount += more.amount;
}

/* --- what a run's progress.csv says --- */

enum column { STEP, UPDATE, RATE, COLUMNS };
static const char *const columns[] = {"env_step", "update", "steps_per_second"};

static ks_status read_row(const struct ks_csv *csv, const size_t column[COLUMNS], size_t row,
                          double value[COLUMNS])
{
    for (size_t i = 0; i < COLUMNS; i++)
        KS_TRY(ks_csv_number(csv, row, column[i], &value[i]));
    return KS_OK;
}

/* A row's rate holds for the steps since the row before it; the first update follows a row. */
static ks_status add_rows(const struct ks_csv *csv, struct ks_paces *paces)
{
    size_t column[COLUMNS];
    double value[COLUMNS], before = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        KS_TRY(ks_csv_column(csv, columns[i], &column[i]));
    for (size_t row = 0; row < csv->rows; row++) {
        KS_TRY(read_row(csv, column, row, value));
        if (value[STEP] > before && value[RATE] > 0)
            add(value[UPDATE] > 0 ? &paces->training : &paces->acting,
                (struct ks_pace){(value[STEP] - before) / value[RATE], value[STEP] - before});
        before = value[STEP];
    }
    return KS_OK;
}

/* The step from which a training goes on, into e->step. */
static ks_status read_step(struct ks_forecast *e, size_t run, const char *dir)
{
    struct ks_study_run_state state;
    char *why;

    KS_TRY(ks_study_run_state(dir, e->graph->job[run].folder, &state));
    KS_TRY(ks_graph_restart(e->graph, run, dir, &why));
    e->step[run] = why ? 0 : state.env_step;
    free(why);
    return KS_OK;
}

static ks_status read_run(struct ks_forecast *e, size_t run, const char *dir)
{
    struct ks_paces *paces = &e->own[run % e->graph->study->n_architectures];
    double before = paces->training.amount;
    struct ks_csv *csv = NULL;
    char *path;

    KS_TRY(ks_print_string(&path, "%s/%s/progress.csv", dir, e->graph->job[run].folder));
    if (ks_path_exists(path) && ks_csv_read(path, true, &csv) == KS_OK)
        add_rows(csv, paces); /* the rows before a damaged one count */
    e->n_runs += paces->training.amount > before;
    ks_csv_free(csv);
    free(path);
    return KS_OK;
}

/* --- what the log of an analysis says --- */

/* The time in the last line that begins with `word`; -1: there is none. */
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

static ks_status read_log(struct ks_forecast *e, const struct ks_graph_job *job, const char *dir)
{
    struct ks_paces *paces = &e->own[job->run % e->graph->study->n_architectures];
    char *path, *text = NULL;
    double started, ended;

    KS_TRY(ks_print_string(&path, "%s/%s", dir, job->log));
    if (ks_path_exists(path) && ks_text_read(path, &text, NULL) == KS_OK) {
        started = find_time(text, KS_GRAPH_STARTED);
        ended = find_time(text, KS_GRAPH_ENDED);
        if (started > 0 && ended >= started) {
            add(&paces->spectrum[job->analysis], (struct ks_pace){ended - started, 1});
            e->n_spectra++;
        }
    }
    free(text);
    free(path);
    return KS_OK;
}

/* --- all --- */

ks_status ks_estimate_read(const struct ks_graph *graph, const char *dir, struct ks_forecast *e)
{
    *e = (struct ks_forecast){.graph = graph};
    KS_TRY(ks_alloc(graph->study->n_architectures, sizeof *e->own, &e->own));
    KS_TRY(ks_alloc(graph->n_runs, sizeof *e->step, &e->step));
    KS_TRY(ks_graph_done(graph, dir, &e->done));
    for (size_t i = 0; i < graph->n_jobs; i++)
        if (graph->job[i].trains) {
            KS_TRY(read_step(e, i, dir));
            KS_TRY(read_run(e, i, dir));
        } else if (ks_graph_targets(graph, i, dir) == graph->job[i].n_targets)
            KS_TRY(read_log(e, &graph->job[i], dir));
    for (size_t a = 0; a < graph->study->n_architectures; a++) {
        add(&e->all.acting, e->own[a].acting);
        add(&e->all.training, e->own[a].training);
        for (size_t k = 0; k < graph->study->n_analyses; k++)
            add(&e->all.spectrum[k], e->own[a].spectrum[k]);
    }
    return KS_OK;
}

void ks_estimate_clear(struct ks_forecast *e)
{
    free(e->own);
    free(e->done);
    free(e->step);
    *e = (struct ks_forecast){.graph = NULL};
}

/* Seconds for an amount at the architecture's own pace, or at the mean one; NaN: not known. */
static double seconds_for(double amount, struct ks_pace own, struct ks_pace all)
{
    struct ks_pace pace = own.amount > 0 ? own : all;

    return amount == 0 ? 0 : pace.amount > 0 ? amount * pace.seconds / pace.amount : NAN;
}

double ks_estimate_training(const struct ks_forecast *e, size_t run)
{
    const struct ks_study *s = e->graph->study;
    size_t a = run % s->n_architectures;
    const struct ks_settings *settings = &s->architecture[a].settings;
    const struct ks_paces *own = &e->own[a];
    size_t first = settings->random_steps * settings->action_repeat, episodes = 0;
    size_t step = e->step[run] < s->end ? e->step[run] : s->end;

    if (e->done[run])
        return 0;
    first = first < s->end ? first : s->end;
    for (size_t i = 0; i < s->n_evaluations; i++)
        if (step == 0 || s->evaluation[i] > step)
            episodes += settings->eval_episodes;
    return seconds_for((double)(episodes * EPISODE + (step < first ? first - step : 0)),
                       own->acting, e->all.acting) +
           seconds_for((double)(s->end - (step < first ? first : step)), own->training,
                       e->all.training);
}

/* `least`: with tolerances, the fewest. */
static double estimate_spectra(const struct ks_forecast *e, size_t run, bool least)
{
    const struct ks_graph *graph = e->graph;
    const struct ks_paces *own = &e->own[run % graph->study->n_architectures];
    double sum = 0;

    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == run && !e->done[i]) {
            size_t k = graph->job[i].analysis;

            sum += least && own->least[k] > 0
                       ? own->least[k]
                       : seconds_for(1, own->spectrum[k], e->all.spectrum[k]);
        }
    return sum;
}

double ks_estimate_spectra(const struct ks_forecast *e, size_t run)
{
    return estimate_spectra(e, run, false);
}

struct ks_time_left ks_estimate_all(const struct ks_forecast *e, size_t jobs)
{
    struct ks_time_left left = {0, 0, 0, 0};
    double longest = 0;

    for (size_t n = 0; n < e->graph->n_runs; n++) {
        double training = ks_estimate_training(e, n);

        left.training += training;
        left.spectra += ks_estimate_spectra(e, n);
        left.least_spectra += estimate_spectra(e, n, true);
        longest = training > longest ? training : longest;
    }
    left.all = (left.training + left.spectra) / (double)(jobs > 0 ? jobs : 1);
    if (left.all < longest)
        left.all = longest;
    return left;
}
