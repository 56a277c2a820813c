#include "results/score_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/path.h"
#include "core/say.h"
#include "io/text.h"
#include "results/returns.h"
#include "results/score_ranges.h"
#include "study/csv.h"

/* The one copy of a name. */
static ks_status keep_name(struct ks_score_rows *rows, const char *text, const char **name)
{
    char escaped[1024];

    ks_escape(text, sizeof escaped, escaped);
    for (size_t i = 0; i < rows->n_names; i++)
        if (strcmp(rows->name[i], escaped) == 0) {
            *name = rows->name[i];
            return KS_OK;
        }
    KS_TRY(ks_grow(rows->n_names, sizeof *rows->name, &rows->name_room, &rows->name));
    KS_TRY(ks_copy_string(escaped, &rows->name[rows->n_names]));
    *name = rows->name[rows->n_names++];
    return KS_OK;
}

static ks_status add_row(struct ks_score_rows *rows, const struct ks_score_row *row)
{
    KS_TRY(ks_grow(rows->n, sizeof *rows->row, &rows->room, &rows->row));
    rows->row[rows->n++] = *row;
    return KS_OK;
}

void ks_score_rows_free(struct ks_score_rows *rows)
{
    for (size_t i = 0; i < rows->n_names; i++)
        free(rows->name[i]);
    free(rows->name);
    free(rows->row);
    *rows = (struct ks_score_rows){0};
}

/* --- a table --- */

enum { SYSTEM, TASK, SEED, STEP, VALUE, COLUMNS };

static const char *const columns[COLUMNS][5] = {
    [SYSTEM] = {"method", "system", "architecture", "exp_name"},
    [TASK] = {"env", "env_name", "task"},
    [SEED] = {"seed"},
    [STEP] = {"env_step", "step"},
    [VALUE] = {"return", "return_mean", "value", "score"},
};

/* Fails with the first of the names that the column may have. */
static ks_status find_column(const struct ks_csv *csv, int which, size_t *column)
{
    for (const char *const *name = columns[which]; *name; name++)
        if (ks_csv_column(csv, *name, column) == KS_OK)
            return KS_OK;
    return ks_csv_column(csv, columns[which][0], column);
}

/* The file's name, for files without a column that names the system. */
static ks_status name_of_file(struct ks_score_rows *rows, const char *path, const char **name)
{
    char *stem = NULL;
    ks_status status;

    KS_TRY(ks_copy_string(ks_path_base(path), &stem));
    stem[ks_path_stem(stem, ".csv")] = '\0';
    status = keep_name(rows, stem, name);
    free(stem);
    return status;
}

static ks_status add_table(const struct ks_csv *csv, struct ks_score_rows *rows)
{
    struct ks_score_row row = {.value = NAN};
    size_t column[COLUMNS];
    bool has_system = find_column(csv, SYSTEM, &column[SYSTEM]) == KS_OK;

    for (int k = TASK; k < COLUMNS; k++)
        KS_TRY(find_column(csv, k, &column[k]));
    if (csv->rows == 0)
        return ks_fail(KS_FORMAT, "%s: no scores", csv->path);
    KS_TRY(keep_name(rows, csv->path, &row.path));
    KS_TRY(name_of_file(rows, csv->path, &row.system));
    for (size_t i = 0; i < csv->rows; i++) {
        if (has_system)
            KS_TRY(keep_name(rows, ks_csv_cell(csv, i, column[SYSTEM]), &row.system));
        KS_TRY(keep_name(rows, ks_csv_cell(csv, i, column[TASK]), &row.task));
        KS_TRY(ks_csv_number(csv, i, column[SEED], &row.seed));
        KS_TRY(ks_csv_number(csv, i, column[STEP], &row.step));
        KS_TRY(ks_csv_number(csv, i, column[VALUE], &row.value));
        if (!isfinite(row.seed) || !isfinite(row.step))
            return ks_fail(KS_FORMAT, "%s:%zu: seed and step must be finite numbers", csv->path,
                           i + 2);
        KS_TRY(add_row(rows, &row));
    }
    return KS_OK;
}

ks_status ks_score_rows_add_csv(const char *path, struct ks_score_rows *rows)
{
    struct ks_csv *csv = NULL;
    ks_status status;

    KS_TRY(ks_csv_read(path, false, &csv));
    status = add_table(csv, rows);
    ks_csv_free(csv);
    return status;
}

/* --- a study --- */

static const char *column_of(const char *task)
{
    const struct ks_score_range *range;

    return ks_score_range_find(task, &range) == KS_OK && range->group == KS_SCORES_MYOSUITE
               ? "success"
               : "return_mean";
}

/* Reads the scores of a run into value [n_evaluations]. */
static ks_status read_run(const struct ks_study *study, struct ks_study_run run, const char *folder,
                          double *value)
{
    bool malformed;

    for (size_t k = 0; k < study->n_evaluations; k++)
        value[k] = NAN;
    KS_TRY(ks_returns_read(study, run, folder, value, &malformed));
    return malformed ? KS_FORMAT : KS_OK; /* the message is there */
}

static ks_status add_run(const char *dir, const struct ks_study *study, struct ks_study_run run,
                         struct ks_score_rows *rows)
{
    struct ks_score_row row = {.seed = (double)study->seed[run.seed]};
    char *relative = NULL, *folder = NULL, *path = NULL;
    double *value = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_study_run_folder(study, run.architecture, run.seed, &relative));
    KS_GO(ks_print_string(&folder, "%s/%s", dir, relative));
    KS_GO(ks_print_string(&path, "%s/progress.csv", folder));
    KS_GO(keep_name(rows, path, &row.path));
    KS_GO(keep_name(rows, study->architecture[run.architecture].name, &row.system));
    KS_GO(keep_name(rows, study->env, &row.task));
    KS_GO(ks_alloc(study->n_evaluations, sizeof *value, &value));
    KS_GO(read_run(study, run, folder, value));
    for (size_t k = 0; k < study->n_evaluations; k++) {
        row.step = (double)study->evaluation[k];
        row.value = value[k];
        if (!isnan(value[k]) || k + 1 == study->n_evaluations)
            KS_GO(add_row(rows, &row));
    }
done:
    free(relative);
    free(folder);
    free(path);
    free(value);
    return status;
}

ks_status ks_score_rows_add_study(const char *dir, struct ks_score_rows *rows)
{
    struct ks_study *study = NULL;
    char *path = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_print_string(&path, "%s/study.study", dir));
    KS_GO(ks_study_read(path, false, &study));
    study->drop_missing = true; /* a return that is not finite counts as missing */
    for (size_t a = 0; a < study->n_architectures; a++)
        for (size_t i = 0; i < study->n_seeds; i++)
            KS_GO(add_run(dir, study, (struct ks_study_run){a, i, column_of(study->env)}, rows));
done:
    ks_study_free(study);
    free(path);
    return status;
}

/* --- names --- */

static ks_status list_names(const struct ks_score_rows *rows, const char *system, size_t *n,
                            const char ***names)
{
    *n = 0;
    KS_TRY(ks_alloc(rows->n_names, sizeof(const char *), names));
    for (size_t k = 0; k < rows->n; k++) {
        const struct ks_score_row *row = &rows->row[k];
        const char *name = system ? row->task : row->system;
        size_t i = 0;

        if (system && strcmp(row->system, system) != 0)
            continue;
        while (i < *n && (*names)[i] != name)
            i++;
        if (i == *n)
            (*names)[(*n)++] = name;
    }
    return KS_OK;
}

ks_status ks_score_rows_systems(const struct ks_score_rows *rows, size_t *n, const char ***names)
{
    return list_names(rows, NULL, n, names);
}

ks_status ks_score_rows_tasks(const struct ks_score_rows *rows, const char *system, size_t *n,
                              const char ***names)
{
    return list_names(rows, system, n, names);
}
