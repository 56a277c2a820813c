#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "io/csv.h"
#include "io/file.h"
#include "results/results.h"
#include "results/scores.h"

/* The one copy of a string. */
static ks_status keep_string(struct ks_score_rows *rows, const char *text, const char **copy)
{
    const struct ks_list *names = &rows->names;
    const size_t i = ks_word_index(text, names->n, (const char *const *)names->text);

    if (i == names->n)
        KS_TRY(ks_list_add(&rows->names, "%s", text));
    *copy = names->text[i];
    return KS_OK;
}

static ks_status keep_name(struct ks_score_rows *rows, const char *text, const char **name)
{
    char escaped[1024];

    return keep_string(rows, ks_escape(text, sizeof escaped, escaped), name);
}

static ks_status add_row(struct ks_score_rows *rows, const struct ks_score_row *row)
{
    KS_TRY(ks_grow(rows->n, sizeof *rows->row, &rows->room, &rows->row));
    rows->row[rows->n++] = *row;
    return KS_OK;
}

void ks_score_rows_free(struct ks_score_rows *rows)
{
    ks_list_clear(&rows->names);
    free(rows->row);
    *rows = (struct ks_score_rows){0};
}

/* --- a table --- */

enum { SYSTEM, TASK, SEED, STEP, VALUE, COLUMNS };

static const char *const columns[COLUMNS][6] = {
    [SYSTEM] = {"method", "system", "architecture", "exp_name"},
    [TASK] = {"env", "env_name", "task"},
    [SEED] = {"seed"},
    [STEP] = {"env_step", "step"},
    [VALUE] = {"return", "return_mean", "value", "score", "reward"},
};

/* A cell with a name; quotes are not supported. */
static ks_status keep_cell(const struct ks_csv *csv, size_t row, size_t column,
                           struct ks_score_rows *rows, const char **name)
{
    const char *text = ks_csv_cell(csv, row, column);

    if (!*text || strchr(text, '"'))
        return ks_fail(KS_FORMAT, "%s:%zu: %s: expected a name without quotes, found '%s'",
                       csv->path, row + 2, csv->name[column], text);
    return keep_name(rows, text, name);
}

/* "a, b, c", cut where there is no room. */
static void print_names(size_t n, const char *const *name, size_t room, char *text)
{
    size_t used = 0;

    for (size_t i = 0; i < n && name[i] && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "", name[i]);
}

/* Fails with the names that the column may have, and the names that there are. */
static ks_status find_column(const struct ks_csv *csv, int which, size_t *column)
{
    char expected[128], found[512];

    for (const char *const *name = columns[which]; *name; name++)
        if (ks_csv_column(csv, *name, column) == KS_OK)
            return KS_OK;
    print_names(SIZE_MAX, columns[which], sizeof expected, expected);
    print_names(csv->columns, csv->name, sizeof found, found);
    return ks_fail(KS_FORMAT, "%s: expected one column of the names %s, found the columns %s",
                   csv->path, expected, found);
}

static bool is_known(const char *name)
{
    for (int k = 0; k < COLUMNS; k++)
        for (const char *const *known = columns[k]; *known; known++)
            if (strcmp(*known, name) == 0)
                return true;
    return false;
}

/* Without a column that names the system, all rows are of one system. So a column of words that
 * might name it under another name is refused. */
static ks_status check_words(const struct ks_csv *csv)
{
    for (size_t j = 0; j < csv->columns; j++) {
        double number;

        if (!is_known(csv->name[j]) && csv->rows > 0 && ks_csv_number(csv, 0, j, &number) != KS_OK)
            return ks_fail(KS_FORMAT,
                           "%s: the column '%s' may name the system: expected the name method for "
                           "it, or no such column, as without a name all rows are of one system",
                           csv->path, csv->name[j]);
    }
    return KS_OK;
}

/* The file's name, for files without a column that names the system. */
static ks_status name_of_file(struct ks_score_rows *rows, const char *path, const char **name)
{
    KS_OWNED char *stem = NULL;

    KS_TRY(ks_copy_string(ks_path_base(path), &stem));
    stem[ks_path_stem(stem, ".csv")] = '\0';
    for (char *c = stem; (c = strpbrk(c, ",\""));)
        *c = '_'; /* names stand in tables without quotes */
    return keep_name(rows, stem, name);
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
    if (!has_system)
        KS_TRY(check_words(csv));
    KS_TRY(keep_name(rows, csv->path, &row.path));
    KS_TRY(name_of_file(rows, csv->path, &row.system));
    for (size_t i = 0; i < csv->rows; i++) {
        if (has_system)
            KS_TRY(keep_cell(csv, i, column[SYSTEM], rows, &row.system));
        KS_TRY(keep_cell(csv, i, column[TASK], rows, &row.task));
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
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;

    KS_TRY(ks_csv_read(path, true, &csv));
    if (csv->cut)
        return ks_fail(KS_FORMAT,
                       "%s: the last line has no newline, so it may be incomplete: end it with one",
                       path);
    return add_table(csv, rows);
}

/* --- a study --- */

static const char *column_of(const char *task)
{
    const struct ks_score_range *range = ks_score_range_find(task);

    return range && range->group == KS_SCORES_MYOSUITE ? "success" : "return_mean";
}

/* Settings that do not change what is learned. */
static const char *const aside[] = {"threads",       "products",    "checkpoints",
                                    "eval_episodes", "evaluations", "analysis_minibatches"};
enum { ASIDE = sizeof aside / sizeof *aside };

static ks_status keep_settings(struct ks_score_rows *rows, const struct ks_settings *settings,
                               const char **kept)
{
    KS_OWNED char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (const struct ks_key *key = ks_keys; key->name && out; key++) {
        char value[KS_VALUE_LENGTH];

        if (ks_word_index(key->name, ASIDE, aside) < ASIDE)
            continue;
        ks_key_print(key, settings, value);
        fprintf(out, "%s=%s ", key->name, value);
    }
    KS_TRY(ks_stream_close(out));
    return keep_string(rows, text, kept);
}

static ks_status add_run(const char *dir, const struct ks_study *study, struct ks_study_run run,
                         struct ks_score_rows *rows)
{
    struct ks_score_row row = {.seed = (double)study->seed[run.seed]};
    KS_OWNED char *relative = NULL, *folder = NULL, *path = NULL;
    KS_OWNED double *value = NULL;
    size_t last = study->n_evaluations; /* that this run is to have, of all that runs have */
    bool malformed;

    KS_TRY(ks_study_run_folder(study, run.architecture, run.seed, &relative));
    KS_TRY(ks_print_string(&folder, "%s/%s", dir, relative));
    KS_TRY(ks_print_string(&path, "%s/progress.csv", folder));
    KS_TRY(keep_name(rows, path, &row.path));
    KS_TRY(keep_name(rows, study->architecture[run.architecture].name, &row.system));
    KS_TRY(keep_name(rows, study->env, &row.task));
    KS_TRY(keep_settings(rows, &study->architecture[run.architecture].settings, &row.settings));
    KS_TRY(ks_alloc(study->n_evaluations, sizeof *value, &value));
    for (size_t k = 0; k < study->n_evaluations; k++) {
        value[k] = NAN;
        if (ks_study_has_return(study, (struct ks_study_place){run.architecture, run.seed, k}))
            last = k;
    }
    KS_TRY(ks_returns_read(study, run, folder, value, &malformed));
    KS_TRY(malformed ? KS_FORMAT : KS_OK); /* the message is there */
    for (size_t k = 0; k < study->n_evaluations; k++) {
        row.step = (double)study->evaluation[k];
        row.value = value[k];
        if (!isnan(value[k]) || (k == last && !study->architecture[run.architecture].elsewhere))
            KS_TRY(add_row(rows, &row));
    }
    return KS_OK;
}

ks_status ks_score_rows_add_study(const char *dir, struct ks_score_rows *rows)
{
    KS_OWNED_BY(ks_study_free) struct ks_study *study = NULL;
    KS_OWNED char *path = NULL;

    KS_TRY(ks_print_string(&path, "%s/study.study", dir));
    KS_TRY(ks_study_read(path, KS_STUDY_SHOW, &study));
    study->drop_missing = true; /* a return that is not finite counts as missing */
    for (size_t a = 0; a < study->n_architectures; a++)
        for (size_t i = 0; i < study->n_seeds; i++)
            if (ks_study_has_run(study, a, i))
                KS_TRY(add_run(dir, study,
                               (struct ks_study_run){a, i, column_of(study->env), false}, rows));
    return KS_OK;
}

/* --- names --- */

ks_status ks_score_rows_names(const struct ks_score_rows *rows, bool tasks, const char *system,
                              size_t *n, const char ***names)
{
    *n = 0;
    KS_TRY(ks_alloc(rows->names.n, sizeof(const char *), names));
    for (size_t k = 0; k < rows->n; k++) {
        const struct ks_score_row *row = &rows->row[k];
        const char *name = tasks ? row->task : row->system;
        size_t i = 0;

        if (system && strcmp(row->system, system) != 0)
            continue;
        while (i < *n && (*names)[i] != name) /* equal names are the same string */
            i++;
        if (i == *n)
            (*names)[(*n)++] = name;
    }
    return KS_OK;
}

static bool is_of(const struct ks_score_row *row, const char *name, size_t length)
{
    return strlen(row->system) == length && strncmp(row->system, name, length) == 0;
}

ks_status ks_score_rows_keep(struct ks_score_rows *rows, const char *list)
{
    size_t kept = 0, length;

    for (const char *name = list + strspn(list, ","); *name; name += strspn(name, ",")) {
        bool found = false;

        length = strcspn(name, ",");
        for (size_t k = 0; k < kept && !found; k++)
            found = is_of(&rows->row[k], name, length);
        for (size_t k = kept; k < rows->n; k++)
            if (is_of(&rows->row[k], name, length)) {
                struct ks_score_row row = rows->row[k];

                rows->row[k] = rows->row[kept];
                rows->row[kept++] = row;
                found = true;
            }
        if (!found)
            return ks_fail(KS_USAGE, "--systems: no scores of '%.*s'", (int)length, name);
        name += length;
    }
    rows->n = kept;
    return kept > 0 ? KS_OK : ks_fail(KS_USAGE, "--systems: expected names, found none");
}
