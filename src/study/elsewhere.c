#include "study/elsewhere.h"

#include <assert.h>
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

struct steps {
    size_t n, room, *step; /* ascending; owned */
};

static void steps_clear(struct steps *steps)
{
    free(steps->step);
}

struct run {
    size_t architecture, seed; /* indices in the study */
    char folder[KS_PATH];
    bool has_table;                    /* returns.csv */
    struct steps checkpoints, returns; /* within the study; of the returns the usable ones */
    size_t n_rows;                     /* of returns.csv, within the study                 */
    struct ks_elsewhere_return *row;   /* [n_rows]; owned */
};

struct runs {
    size_t n;
    struct run *run; /* [n]; owned */
};

static void runs_clear(struct runs *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        steps_clear(&runs->run[i].checkpoints);
        steps_clear(&runs->run[i].returns);
        free(runs->run[i].row);
    }
    free(runs->run);
}

struct network {
    char *text; /* owned */
    int64_t ensemble;
    size_t step; /* of its checkpoint */
};

static void network_clear(struct network *n)
{
    free(n->text);
}

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
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    KS_TRY(ks_h5_open(path, "kappascope-checkpoint", &h5));
    KS_TRY(expect(h5, "env_step", out->step));
    KS_TRY(expect(h5, "seed", seed));
    KS_TRY(ks_h5_read_string(h5, "/critic", "arch", &out->text));
    KS_TRY(ks_h5_read_integer(h5, "/critic", "ensemble", 1, &out->ensemble));
    return KS_OK;
}

/* A run trains one network, which its first checkpoint has. */
static ks_status check_checkpoint(const struct ks_study *s, const struct run *run, size_t step,
                                  struct network *first)
{
    KS_CLEARED_BY(network_clear) struct network network = {NULL, 0, step};
    char path[KS_PATH], name[32], before[32];

    ks_checkpoint_name(step, name);
    KS_TRY(ks_path_print(path, "%s/%s", run->folder, name));
    if (ks_link_dangles(path))
        return ks_fail(KS_IO, "%s: the link leads to no file", path);
    if (!ks_path_exists(path)) /* its spectrum does */
        return KS_OK;
    KS_TRY(read_network(path, s->seed[run->seed], &network));
    if (!first->text) {
        *first = network, network.text = NULL;
        return KS_OK;
    }
    ks_checkpoint_name(first->step, before);
    return strcmp(network.text, first->text) == 0 && network.ensemble == first->ensemble
               ? KS_OK
               : ks_fail(KS_FORMAT,
                         "%s: /critic: expected the network of %s (arch, ensemble), found another",
                         path, before);
}

static ks_status add_step(struct steps *list, size_t step)
{
    KS_TRY(ks_grow(list->n, sizeof *list->step, &list->room, &list->step));
    list->step[list->n++] = step;
    return KS_OK;
}

static ks_status add_steps(struct steps *list, const struct steps *more)
{
    for (size_t i = 0; i < more->n; i++)
        KS_TRY(add_step(list, more->step[i]));
    return KS_OK;
}

/* Sorts the steps and leaves out repeated ones. */
static void unite(struct steps *list)
{
    size_t kept = 0;

    if (list->n > 1)
        qsort(list->step, list->n, sizeof *list->step, ks_ascending_sizes);
    for (size_t i = 0; i < list->n; i++)
        if (kept == 0 || list->step[kept - 1] != list->step[i])
            list->step[kept++] = list->step[i];
    list->n = kept;
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

/* Keeps those checkpoints of the run that can be read, and warns about the others. */
static ks_status check_checkpoints(struct ks_study *s, struct run *run)
{
    struct steps *list = &run->checkpoints;
    KS_CLEARED_BY(network_clear) struct network first = {NULL, 0, 0};
    size_t left_out = 0, kept = 0;

    for (size_t i = 0; i < list->n; i++) {
        const ks_status one = check_checkpoint(s, run, list->step[i], &first);

        if (one == KS_MEMORY)
            return one;
        if (one == KS_OK) {
            list->step[kept++] = list->step[i];
            continue;
        }
        ks_fail(one, "%s: this checkpoint is left out", ks_error_text());
        KS_TRY(ks_warn_few(s, &left_out, ks_error_text()));
    }
    list->n = kept;
    return ks_warn_rest(s, run->folder, left_out, "checkpoint");
}

static ks_status find_checkpoints(struct ks_study *s, struct run *run)
{
    struct steps *list = &run->checkpoints;
    struct ks_left_out odd = {0};
    KS_CLEARED_BY(ks_folder_names_clear) struct ks_folder_names names = {0, NULL};
    size_t step = 0;

    ks_folder_names_read(run->folder, &names);
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name;

        if (read_step(name, &step))
            KS_TRY(add_step(list, step));
        else if (ks_elsewhere_resembles_checkpoint(name))
            ks_left_out_add(&odd, name);
    }
    unite(list);
    KS_TRY(check_checkpoints(s, run));
    return ks_left_out_warn(s, run->folder, &odd, "left out: expected step_NNNNNNNNN.h5");
}

static ks_status find_returns(struct ks_study *s, struct run *run)
{
    char path[KS_PATH];
    ks_status status;

    KS_TRY(ks_path_print(path, "%s/" KS_ELSEWHERE_RETURNS, run->folder));
    if (!ks_path_exists(path))
        return run->checkpoints.n > 0
                   ? ks_list_add(&s->warnings, "%s: missing: the run has no returns", path)
                   : KS_OK;
    status = ks_elsewhere_returns(path, s, &run->n_rows, &run->row);
    run->has_table = status == KS_OK;
    return status == KS_FORMAT || status == KS_IO
               ? ks_list_add(&s->warnings, "%s: the run has no returns", ks_error_text())
               : status;
}

static ks_status find_run(struct ks_study *s, struct run *run)
{
    KS_OWNED char *relative = NULL;

    KS_TRY(ks_study_run_folder(s, run->architecture, run->seed, &relative));
    KS_TRY(ks_path_print(run->folder, "%s/%s", s->folder, relative));
    KS_TRY(find_checkpoints(s, run));
    KS_TRY(find_returns(s, run));
    return run->checkpoints.n == 0 && ks_path_exists(run->folder)
               ? ks_list_add(&s->warnings, "%s: left out: it has no checkpoint", run->folder)
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

static size_t last_checkpoint(const struct run *run)
{
    return run->checkpoints.step[run->checkpoints.n - 1];
}

/* Leaves out what is after the study's end, with a warning unless the file asks for the end alone.
 */
static ks_status cut(struct ks_study *s, struct run *run, size_t end)
{
    size_t later = 0;

    while (run->checkpoints.n > 0 && last_checkpoint(run) > end) {
        run->checkpoints.n--;
        later++;
    }
    while (run->n_rows > 0 && run->row[run->n_rows - 1].step > end)
        run->n_rows--;
    return later > 0 && !s->elsewhere
               ? ks_list_add(&s->warnings,
                             "%s: left out: %zu checkpoint%s after step %zu, the study's end",
                             run->folder, later, later == 1 ? "" : "s", end)
               : KS_OK;
}

/* Marks, in the row of a run, the steps of the study that it has. */
static void mark(const struct steps *all, const struct steps *own, bool *row)
{
    for (size_t i = 0; i < own->n; i++) {
        const size_t *at = bsearch(&own->step[i], all->step, all->n, sizeof *all->step,
                                   ks_ascending_sizes);

        assert(at);
        row[at - all->step] = true;
    }
}

static const struct steps *steps_of(const struct run *run, bool returns)
{
    return returns ? &run->returns : &run->checkpoints;
}

/* The study's steps, of checkpoints or of returns, become those of the runs that are trained here
 * and those of the runs from elsewhere, and the study notes which run has which. A study without
 * any return has the step of its end, where no run has one. */
static ks_status set_steps(struct ks_study *s, const struct runs *runs, bool returns)
{
    const struct steps own = {.n = returns ? s->n_evaluations : s->n_checkpoints,
                              .step = returns ? s->evaluation : s->checkpoint};
    const struct steps scheduled = {.n = returns ? own.n : s->n_scheduled, .step = own.step};
    KS_CLEARED_BY(steps_clear) struct steps all = {0};
    KS_OWNED bool *has = NULL;

    KS_TRY(add_steps(&all, &scheduled));
    for (size_t i = 0; i < runs->n; i++)
        KS_TRY(add_steps(&all, steps_of(&runs->run[i], returns)));
    if (all.n == 0)
        KS_TRY(add_step(&all, s->end));
    unite(&all);
    if (!returns)
        s->n_scheduled = all.n;
    while (all.n > 0 && all.step[all.n - 1] > s->end)
        all.n--;
    KS_TRY(ks_alloc(s->n_architectures * s->n_seeds * all.n, sizeof *has, &has));
    for (size_t run = 0; run < s->n_architectures * s->n_seeds; run++)
        if (!s->architecture[run / s->n_seeds].elsewhere)
            mark(&all, &own, has + run * all.n);
    for (size_t i = 0; i < runs->n; i++)
        mark(&all, steps_of(&runs->run[i], returns),
             has + (runs->run[i].architecture * s->n_seeds + runs->run[i].seed) * all.n);
    free(own.step);
    *(returns ? &s->evaluation : &s->checkpoint) = all.step, all.step = NULL;
    *(returns ? &s->n_evaluations : &s->n_checkpoints) = all.n;
    *(returns ? &s->has_return : &s->has_checkpoint) = has, has = NULL;
    return KS_OK;
}

/* --- returns that are missing --- */

/* The row of a step, whose return may be unusable; NULL: there is none. */
static const struct ks_elsewhere_return *find_row(const struct run *run, size_t step)
{
    return run->n_rows > 0
               ? bsearch(&step, run->row, run->n_rows, sizeof *run->row, ks_ascending_sizes)
               : NULL;
}

/* The line after which a row of this step would be. */
static size_t line_before(const struct run *run, size_t step)
{
    size_t line = 1;

    for (size_t k = 0; k < run->n_rows && run->row[k].step < step; k++)
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

    for (size_t k = 0; k < run->checkpoints.n; k++)
        if (run->checkpoints.step[k] > 0 && !find_row(run, run->checkpoints.step[k]) && n++ == 0)
            first = run->checkpoints.step[k];
    return n == 0 ? KS_OK
                  : ks_list_add(&s->warnings,
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
               : ks_list_add(&s->warnings,
                             "%s/" KS_ELSEWHERE_RETURNS ":%zu: expected a return at step %zu "
                             "after this row, which seed %zu has, found none%s: the curve "
                             "of returns leaves such steps out",
                             run->folder, line_before(run, first), first, seed, further(n, more));
}

/* Cuts off what is after the end of the study, whose end may be the last of these steps, and lists
 * the usable returns. */
static ks_status take_run(struct ks_study *s, struct run *run, size_t limit)
{
    if (limit > 0)
        KS_TRY(cut(s, run, limit));
    if (run->checkpoints.n == 0)
        run->n_rows = 0;
    else if (last_checkpoint(run) > s->end)
        s->end = last_checkpoint(run);
    if (run->n_rows > 0 && run->row[run->n_rows - 1].step > s->end)
        s->end = run->row[run->n_rows - 1].step;
    for (size_t k = 0; k < run->n_rows; k++)
        if (!isnan(run->row[k].value))
            KS_TRY(add_step(&run->returns, run->row[k].step));
    return KS_OK;
}

ks_status ks_elsewhere_steps(struct ks_study *s)
{
    KS_CLEARED_BY(runs_clear) struct runs runs = {0, NULL};
    const size_t limit = ks_study_trains(s) ? s->end : s->stop ? s->stop : s->steps;
    size_t checkpoints = 0;

    if (!ks_study_has_elsewhere(s))
        return KS_OK;
    KS_TRY(find_runs(s, &runs));
    for (size_t i = 0; i < runs.n; i++) {
        KS_TRY(take_run(s, &runs.run[i], limit));
        checkpoints += runs.run[i].checkpoints.n;
    }
    s->end = s->stop || !s->steps ? s->end : limit;
    s->steps = s->steps ? s->steps : s->end;
    if (checkpoints == 0 && !ks_study_trains(s))
        return ks_fail(KS_FORMAT,
                       "%s: expected checkpoints %s/runs/%s/NAME/seedS/step_*.h5, "
                       "found none%s%s",
                       s->path, s->folder, s->env, s->warnings.n ? ": " : "",
                       s->warnings.n ? s->warnings.text[0] : "");
    KS_TRY(set_steps(s, &runs, false));
    KS_TRY(set_steps(s, &runs, true));
    for (size_t i = 0; i < runs.n; i++)
        if (runs.run[i].has_table && runs.run[i].checkpoints.n > 0) {
            KS_TRY(warn_checkpoints(s, &runs.run[i]));
            KS_TRY(warn_seeds(s, &runs, &runs.run[i]));
        }
    return KS_OK;
}
