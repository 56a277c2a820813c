/* kappascope-scores: scores over tasks, from the folders of studies and from tables of returns. */
#include <sys/stat.h>

#include "core/program.h"
#include "io/h5.h"
#include "report/study_report.h"
#include "results/aggregate.h"
#include "results/scores.h"

static struct command {
    bool drop_missing, common_grid, raw, csv;
    size_t every, resamples;
    const char *systems, *out;
} command;

static const char *const of_missing[] = {"error", "drop", NULL};
static const char *const of_grid[] = {"all", "common", NULL};

#define AT(member) KS_KEY_AT(struct command, member), 0

static const struct ks_key keys[] = {
    {"missing", KS_ROW_CHOICE(of_missing), "error", AT(drop_missing), NULL,
     "a run without all scores, or with one that is not finite: error; drop: leave it out"},
    {"grid", KS_ROW_CHOICE(of_grid), "all", AT(common_grid), NULL,
     "steps: all; common: only those that all runs of a system have, the last one included"},
    {"every", KS_ROW_COUNT(1, KS_KEY_ANY), NULL, AT(every), "N",
     "only steps that are multiples of N"},
    {"systems", KS_ROW_TEXT(), NULL, AT(systems), "NAMES",
     "only these systems, names between commas, in this order"},
    {"raw", KS_ROW_FLAG(), NULL, AT(raw), NULL,
     "a line per task with its scores as they are, in place of normalized ones per suite"},
    {"resamples", KS_ROW_COUNT(0, 10000000), KS_DIGITS(KS_BOOTSTRAP_RESAMPLES), AT(resamples), "B",
     "bootstrap resamples per interval, 0 for no intervals"},
    {"csv", KS_ROW_FLAG(), NULL, AT(csv), NULL, "print CSV"},
    {"out", KS_ROW_TEXT(), NULL, AT(out), "DIR",
     "write tables and, unless scores are raw, a bar chart into this folder", .letter = 'o'},
    KS_KEYS_END};

static const struct ks_program program = {
    .libraries = {{"HDF5", ks_h5_version}},
    .name = "kappascope-scores",
    .synopsis = "[OPTION...] FOLDER|FILE.csv...",
    .description = "scores over tasks: interquartile means (IQM) and areas under their curves",
    .details =
        "DESCRIPTION\n"
        "  FOLDER is the folder of kappascope study, of one task; several are several tasks.\n"
        "  FILE.csv has a row per score and the columns\n"
        "\n"
        "    method      the system; also named system, architecture or exp_name; without\n"
        "                this column, the file's name is the system's\n"
        "    env         the task, as train --list names it; also: env_name, task\n"
        "    seed        the run\n"
        "    env_step    environment steps; also: step\n"
        "    return      the score; also: return_mean, value, score, reward. Of MyoSuite's tasks "
        "the\n"
        "                share of successful episodes\n"
        "\n"
        "  For each system or architecture and each suite of tasks, scores are normalized (0: a\n"
        "  random policy, 1: the target of the XQC paper) and pooled over tasks and seeds. The\n"
        "  table has their interquartile mean at the last step and the area under the curve of\n"
        "  interquartile means, divided by the steps from the first to the last one; in brackets\n"
        "  90% stratified bootstrap intervals. --out DIR writes DIR/tables/scores.csv,\n"
        "  DIR/tables/score_curves.csv and DIR/figures/scores.png, .pdf and .svg.\n"
        "\n"
        "EXAMPLES\n"
        "  kappascope scores checkpoints/dogtrot checkpoints/walker --out scores\n"
        "  kappascope scores --grid common returns.csv\n",
    .keys = keys,
    .values = &command,
};

static ks_status add_input(const char *path, struct ks_score_rows *rows)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? ks_score_rows_add_study(path, rows)
                                                           : ks_score_rows_add_csv(path, rows);
}

static ks_status scores(const struct ks_arguments *arguments)
{
    KS_CLEARED_BY(ks_score_rows_free) struct ks_score_rows rows = {0};
    const struct ks_score_query query = {.drop_missing = command.drop_missing,
                                         .common_grid = command.common_grid,
                                         .every = (double)command.every,
                                         .normalize = !command.raw};
    KS_CLEARED_BY(ks_score_summary_clear) struct ks_score_summary first = {0}, summary = {0};

    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected folders of studies or CSV files (see --help)");
    for (size_t i = 0; i < arguments->n_rest; i++)
        KS_TRY(add_input(arguments->rest[i], &rows));
    if (command.systems)
        KS_TRY(ks_score_rows_keep(&rows, command.systems));
    KS_TRY(ks_score_summary_new(&rows, &query, 0, &first)); /* refuses what it refuses at once */
    if (!arguments->quiet && command.resamples > 0)
        ks_say("resampling, some seconds for each system");
    KS_TRY(ks_score_summary_new(&rows, &query, command.resamples, &summary));
    KS_TRY(ks_scores_warn(&summary, &rows));
    if (command.out)
        KS_TRY(ks_scores_write(&summary, command.out, !command.raw));
    return ks_scores_print(&summary, command.csv);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, scores);
}
