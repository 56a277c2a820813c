#include "study/elsewhere.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/number.h"
#include "io/file.h"
#include "io/h5.h"
#include "study/study_parse.h"

/* --- what the folder of a run holds --- */

struct run {
    size_t architecture, seed; /* indices in the study */
    char folder[KS_PATH];
    bool has_table;                          /* returns.csv */
    size_t n_checkpoints, room, *checkpoint; /* steps, ascending; owned                  */
    size_t n_returns;
    struct ks_elsewhere_return *row; /* [n_returns]; owned */
};

struct runs {
    size_t n;
    struct run *run; /* [n]; owned */
};

static void runs_clear(struct runs *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        free(runs->run[i].checkpoint);
        free(runs->run[i].row);
    }
    free(runs->run);
}

struct network {
    char *text; /* owned */
    int64_t ensemble;
    size_t step; /* of its checkpoint */
};

static ks_status expect(const struct ks_h5 *h5, const char *name, size_t expected)
{
    int64_t value = 0;
    bool found;

    KS_TRY(ks_h5_has_attribute(h5, "/", name, &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_read_integer(h5, "/", name, 0, &value));
    return value == (int64_t)expected ? KS_OK
                                      : ks_fail(KS_FORMAT, "%s: %s: expected %zu, found %lld",
                                                h5->path, name, expected, (long long)value);
}

/* Reads the network of a checkpoint of this step and seed. */
static ks_status read_network(const char *path, size_t seed, struct network *out)
{
    struct ks_h5 *h5 = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_h5_open(path, "kappascope-checkpoint", &h5));
    KS_GO(expect(h5, "env_step", out->step));
    KS_GO(expect(h5, "seed", seed));
    KS_GO(ks_h5_read_string(h5, "/critic", "arch", &out->text));
    KS_GO(ks_h5_read_integer(h5, "/critic", "ensemble", 1, &out->ensemble));
done:
    ks_h5_close(h5);
    return status;
}

/* A run trains one network, which its first checkpoint has. */
static ks_status check_checkpoint(const struct ks_study *s, const struct run *run, size_t step,
                                  struct network *first)
{
    struct network network = {NULL, 0, step};
    char path[KS_PATH], name[32], before[32];
    ks_status status;

    ks_checkpoint_name(step, name);
    KS_TRY(ks_path_print(path, "%s/%s", run->folder, name));
    if (ks_link_dangles(path))
        return ks_fail(KS_IO, "%s: the link leads to no file", path);
    if (!ks_path_exists(path)) /* its spectrum does */
        return KS_OK;
    status = read_network(path, s->seed[run->seed], &network);
    if (status == KS_OK && !first->text) {
        *first = network;
        return KS_OK;
    }
    ks_checkpoint_name(first->step, before);
    if (status == KS_OK &&
        (strcmp(network.text, first->text) != 0 || network.ensemble != first->ensemble))
        status = ks_fail(KS_FORMAT,
                         "%s: /critic: expected the network of %s (arch, ensemble), "
                         "found another",
                         path, before);
    free(network.text);
    return status;
}

/* The step in the name of a checkpoint or of a spectrum. */
static bool read_step(const char *name, size_t *step)
{
    char digits[24] = "", same[32];
    uint64_t value;
    const size_t length = strncmp(name, "step_", 5) == 0 ? strspn(name + 5, "0123456789") : 0;

    if (length == 0 || length >= sizeof digits || name[5 + length] != '.')
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)length, name + 5);
    if (!ks_parse_integer(digits, 0, KS_MOST_STEPS, &value))
        return false;
    *step = (size_t)value;
    ks_checkpoint_name(*step, same);
    return strncmp(same, name, strlen(same) - strlen(".h5")) == 0 && length == strlen(same) - 8 &&
           (strcmp(name, same) == 0 || ks_path_ends(name, KS_STUDY_SPECTRUM));
}

static ks_status find_checkpoints(struct ks_study *s, struct run *run)
{
    struct network first = {NULL, 0, 0};
    struct ks_left_out odd = {0};
    struct ks_folder_names names;
    size_t step = 0, left_out = 0;
    ks_status status = KS_OK;

    ks_folder_names_read(run->folder, &names);
    for (int i = 0; i < names.n && status == KS_OK; i++) {
        const char *name = names.list[i]->d_name;
        const bool is_step = read_step(name, &step);

        if (!is_step && ks_elsewhere_resembles_checkpoint(name))
            ks_left_out_add(&odd, name);
        if (!is_step || (run->n_checkpoints > 0 && run->checkpoint[run->n_checkpoints - 1] == step))
            continue;
        status = ks_grow(run->n_checkpoints, sizeof *run->checkpoint, &run->room, &run->checkpoint);
        if (status == KS_OK)
            run->checkpoint[run->n_checkpoints++] = step;
    }
    ks_folder_names_clear(&names);
    if (run->n_checkpoints > 1)
        qsort(run->checkpoint, run->n_checkpoints, sizeof *run->checkpoint, ks_ascending_sizes);
    for (size_t i = 0, n = run->n_checkpoints; i < n && status == KS_OK; i++) {
        const ks_status one = check_checkpoint(s, run, run->checkpoint[i], &first);

        run->n_checkpoints = i == 0 ? 0 : run->n_checkpoints;
        if (one == KS_OK)
            run->checkpoint[run->n_checkpoints++] = run->checkpoint[i];
        else if (one == KS_MEMORY)
            status = one;
        else {
            ks_fail(one, "%s: this checkpoint is left out", ks_error_text());
            status = ks_warn_few(s, &left_out, ks_error_text());
        }
    }
    free(first.text);
    KS_TRY(status);
    KS_TRY(ks_warn_rest(s, run->folder, left_out, "checkpoint"));
    return ks_left_out_warn(s, run->folder, &odd, "left out: expected step_NNNNNNNNN.h5");
}

static ks_status find_returns(struct ks_study *s, struct run *run)
{
    char path[KS_PATH];
    ks_status status;

    KS_TRY(ks_path_print(path, "%s/" KS_ELSEWHERE_RETURNS, run->folder));
    if (!ks_path_exists(path))
        return run->n_checkpoints > 0
                   ? ks_study_warn(s, "%s: missing: the run has no returns", path)
                   : KS_OK;
    status = ks_elsewhere_returns(path, s, &run->n_returns, &run->row);
    run->has_table = status == KS_OK;
    return status == KS_FORMAT || status == KS_IO
               ? ks_study_warn(s, "%s: the run has no returns", ks_error_text())
               : status;
}

static ks_status find_run(struct ks_study *s, struct run *run)
{
    char *relative = NULL;
    ks_status status = ks_study_run_folder(s, run->architecture, run->seed, &relative);

    if (status == KS_OK)
        status = ks_path_print(run->folder, "%s/%s", s->folder, relative);
    free(relative);
    KS_TRY(status);
    KS_TRY(find_checkpoints(s, run));
    KS_TRY(find_returns(s, run));
    return run->n_checkpoints == 0 && ks_path_exists(run->folder)
               ? ks_study_warn(s, "%s: left out: it has no checkpoint", run->folder)
               : KS_OK;
}

static ks_status find_runs(struct ks_study *s, struct runs *runs)
{
    KS_TRY(ks_alloc(s->n_architectures * s->n_seeds, sizeof *runs->run, &runs->run));
    for (size_t a = 0; a < s->n_architectures; a++)
        for (size_t i = 0; i < s->n_seeds && s->architecture[a].elsewhere; i++) {
            struct run *run = &runs->run[runs->n++];

            run->architecture = a;
            run->seed = i;
            KS_TRY(find_run(s, run));
        }
    return KS_OK;
}

/* --- the steps of the study --- */

/* Leaves out what is after the study's end, with a warning unless the file asks for the end alone.
 */
static ks_status cut(struct ks_study *s, struct run *run, size_t end)
{
    size_t later = 0;

    while (run->n_checkpoints > 0 && run->checkpoint[run->n_checkpoints - 1] > end) {
        run->n_checkpoints--;
        later++;
    }
    while (run->n_returns > 0 && run->row[run->n_returns - 1].step > end)
        run->n_returns--;
    return later > 0 && !s->elsewhere
               ? ks_study_warn(s, "%s: left out: %zu checkpoint%s after step %zu, the study's end",
                               run->folder, later, later == 1 ? "" : "s", end)
               : KS_OK;
}

/* Sorts the steps and leaves out repeated ones; returns how many stay. */
static size_t unite(size_t n, size_t *step)
{
    size_t kept = 0;

    if (n > 1)
        qsort(step, n, sizeof *step, ks_ascending_sizes);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || step[kept - 1] != step[i])
            step[kept++] = step[i];
    return kept;
}

/* A list of steps of the study, and which run has which. */
struct grid {
    size_t n, *step; /* owned until they become the study's */
    bool *has;       /* [architectures, seeds, n]; likewise */
};

/* The index of a step; n if the grid lacks it. */
static size_t find_step(size_t n, const size_t *step, size_t wanted)
{
    const size_t *at = bsearch(&wanted, step, n, sizeof *step, ks_ascending_sizes);

    return at ? (size_t)(at - step) : n;
}

/* Starts with the steps of the runs that are trained here. */
static ks_status grid_start(size_t n, const size_t *own, size_t more, struct grid *g)
{
    KS_TRY(ks_alloc(n + more, sizeof *g->step, &g->step));
    if (n > 0)
        memcpy(g->step, own, n * sizeof *own);
    g->n = n;
    return KS_OK;
}

/* The runs that are trained here have n of the steps, `own`. */
static ks_status grid_fill_own(const struct ks_study *s, size_t n, const size_t *own,
                               struct grid *g)
{
    KS_TRY(ks_alloc(s->n_architectures * s->n_seeds * g->n, sizeof *g->has, &g->has));
    for (size_t run = 0; run < s->n_architectures * s->n_seeds; run++)
        for (size_t k = 0; k < n && !s->architecture[run / s->n_seeds].elsewhere; k++)
            g->has[run * g->n + find_step(g->n, g->step, own[k])] = true;
    return KS_OK;
}

static bool *row_of(const struct ks_study *s, const struct run *run, const struct grid *g)
{
    return g->has + (run->architecture * s->n_seeds + run->seed) * g->n;
}

static ks_status set_checkpoints(struct ks_study *s, const struct runs *runs)
{
    struct grid g = {0, NULL, NULL};
    size_t more = 0;
    ks_status status = KS_OK;

    for (size_t i = 0; i < runs->n; i++)
        more += runs->run[i].n_checkpoints;
    KS_GO(grid_start(s->n_scheduled, s->checkpoint, more, &g));
    for (size_t i = 0; i < runs->n; i++)
        for (size_t k = 0; k < runs->run[i].n_checkpoints; k++)
            g.step[g.n++] = runs->run[i].checkpoint[k];
    s->n_scheduled = unite(g.n, g.step);
    for (g.n = 0; g.n < s->n_scheduled && g.step[g.n] <= s->end;)
        g.n++;
    KS_GO(grid_fill_own(s, s->n_checkpoints, s->checkpoint, &g));
    for (size_t i = 0; i < runs->n; i++)
        for (size_t k = 0; k < runs->run[i].n_checkpoints; k++)
            row_of(s, &runs->run[i], &g)[find_step(g.n, g.step, runs->run[i].checkpoint[k])] = true;
    free(s->checkpoint);
    s->checkpoint = g.step, g.step = NULL;
    s->has_checkpoint = g.has, g.has = NULL;
    s->n_checkpoints = g.n;
done:
    free(g.step);
    free(g.has);
    return status;
}

/* A study without any return has the step of its end, where no run has one. */
static ks_status set_returns(struct ks_study *s, const struct runs *runs)
{
    struct grid g = {0, NULL, NULL};
    size_t more = 1;
    ks_status status = KS_OK;

    for (size_t i = 0; i < runs->n; i++)
        more += runs->run[i].n_returns;
    KS_GO(grid_start(s->n_evaluations, s->evaluation, more, &g));
    for (size_t i = 0; i < runs->n; i++)
        for (size_t k = 0; k < runs->run[i].n_returns; k++)
            if (!isnan(runs->run[i].row[k].value))
                g.step[g.n++] = runs->run[i].row[k].step;
    if (g.n == 0)
        g.step[g.n++] = s->end;
    g.n = unite(g.n, g.step);
    KS_GO(grid_fill_own(s, s->n_evaluations, s->evaluation, &g));
    for (size_t i = 0; i < runs->n; i++)
        for (size_t k = 0; k < runs->run[i].n_returns; k++)
            if (!isnan(runs->run[i].row[k].value))
                row_of(s, &runs->run[i],
                       &g)[find_step(g.n, g.step, runs->run[i].row[k].step)] = true;
    free(s->evaluation);
    s->evaluation = g.step, g.step = NULL;
    s->has_return = g.has, g.has = NULL;
    s->n_evaluations = g.n;
done:
    free(g.step);
    free(g.has);
    return status;
}

/* --- returns that are missing --- */

/* The row of a step, whose return may be unusable; NULL: there is none. */
static const struct ks_elsewhere_return *find_row(const struct run *run, size_t step)
{
    size_t low = 0, high = run->n_returns;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (run->row[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < run->n_returns && run->row[low].step == step ? &run->row[low] : NULL;
}

/* The line after which a row of this step would be. */
static size_t line_before(const struct run *run, size_t step)
{
    size_t line = 1;

    for (size_t k = 0; k < run->n_returns && run->row[k].step < step; k++)
        line = run->row[k].line;
    return line;
}

/* "; likewise at N further steps" */
static const char *further(size_t n, char text[48])
{
    snprintf(text, 48, n == 1 ? "" : "; likewise at %zu further step%s", n - 1, n == 2 ? "" : "s");
    return text;
}

static ks_status warn_checkpoints(struct ks_study *s, const struct run *run)
{
    size_t n = 0, first = 0;
    char more[48];

    for (size_t k = 0; k < run->n_checkpoints; k++)
        if (run->checkpoint[k] > 0 && !find_row(run, run->checkpoint[k]) && n++ == 0)
            first = run->checkpoint[k];
    return n == 0 ? KS_OK
                  : ks_study_warn(s,
                                  "%s/" KS_ELSEWHERE_RETURNS ":%zu: expected a return at step %zu "
                                  "after this row, where there is a checkpoint, found none%s",
                                  run->folder, line_before(run, first), first, further(n, more));
}

/* Beside other seeds of the name. */
static ks_status warn_seeds(struct ks_study *s, const struct runs *runs, const struct run *run)
{
    size_t n = 0, first = 0, seed = 0;
    char more[48];

    for (size_t k = 0; k < s->n_evaluations; k++)
        for (size_t i = 0; i < runs->n; i++) {
            const struct run *other = &runs->run[i];
            const struct ks_elsewhere_return *row = other->architecture == run->architecture
                                                        ? find_row(other, s->evaluation[k])
                                                        : NULL;

            if (!row || isnan(row->value) || find_row(run, row->step))
                continue;
            if (n++ == 0) {
                first = row->step;
                seed = s->seed[other->seed];
            }
            break;
        }
    return n == 0
               ? KS_OK
               : ks_study_warn(s,
                               "%s/" KS_ELSEWHERE_RETURNS ":%zu: expected a return at step %zu "
                               "after this row, which seed %zu has, found none%s: the curve "
                               "of returns leaves such steps out",
                               run->folder, line_before(run, first), first, seed, further(n, more));
}

ks_status ks_elsewhere_steps(struct ks_study *s)
{
    struct runs runs = {0, NULL};
    const size_t limit = ks_study_trains(s) ? s->end : s->stop ? s->stop : s->steps;
    size_t checkpoints = 0;
    ks_status status = KS_OK;

    if (!ks_study_has_elsewhere(s))
        return KS_OK;
    KS_GO(find_runs(s, &runs));
    for (size_t i = 0; i < runs.n; i++) {
        struct run *run = &runs.run[i];

        if (limit > 0)
            KS_GO(cut(s, run, limit));
        checkpoints += run->n_checkpoints;
        if (run->n_checkpoints == 0)
            run->n_returns = 0;
        else if (run->checkpoint[run->n_checkpoints - 1] > s->end)
            s->end = run->checkpoint[run->n_checkpoints - 1];
        if (run->n_returns > 0 && run->row[run->n_returns - 1].step > s->end)
            s->end = run->row[run->n_returns - 1].step;
    }
    s->end = s->stop || !s->steps ? s->end : limit;
    s->steps = s->steps ? s->steps : s->end;
    if (checkpoints == 0 && !ks_study_trains(s)) {
        status = ks_fail(KS_FORMAT,
                         "%s: expected checkpoints %s/runs/%s/NAME/seedS/step_*.h5, "
                         "found none%s%s",
                         s->path, s->folder, s->env, s->n_warnings ? ": " : "",
                         s->n_warnings ? s->warning[0] : "");
        goto done;
    }
    KS_GO(set_checkpoints(s, &runs));
    KS_GO(set_returns(s, &runs));
    for (size_t i = 0; i < runs.n; i++)
        if (runs.run[i].has_table && runs.run[i].n_checkpoints > 0) {
            KS_GO(warn_checkpoints(s, &runs.run[i]));
            KS_GO(warn_seeds(s, &runs, &runs.run[i]));
        }
done:
    runs_clear(&runs);
    return status;
}
