/* kappascope-scores: scores over tasks, from the folders of studies and from tables of returns. */
#include <string.h>
#include <sys/stat.h>

#include "core/number.h"
#include "core/program.h"
#include "io/h5.h"
#include "report/report.h"
#include "results/aggregate.h"
#include "results/scores.h"

static char *missing, *grid, *every, *out, *resamples, *systems;
static int raw, csv;

static const struct poptOption options[] = {
    {"missing", '\0', POPT_ARG_STRING, &missing, 0,
     "a run without all scores, or with one that is not finite: error (default); drop: leave it "
     "out",
     "WORD"},
    {"grid", '\0', POPT_ARG_STRING, &grid, 0,
     "steps: all (default); common: only those that all runs of a system have, the last one "
     "included",
     "WORD"},
    {"every", '\0', POPT_ARG_STRING, &every, 0, "only steps that are multiples of N", "N"},
    {"systems", '\0', POPT_ARG_STRING, &systems, 0,
     "only these systems, names between commas, in this order", "NAMES"},
    {"raw", '\0', POPT_ARG_NONE, &raw, 0,
     "a line per task with its scores as they are, in place of normalized ones per suite", NULL},
    {"resamples", '\0', POPT_ARG_STRING, &resamples, 0,
     "bootstrap resamples per interval (default: 50000); 0: no intervals", "B"},
    {"csv", '\0', POPT_ARG_NONE, &csv, 0, "print CSV", NULL},
    {"out", 'o', POPT_ARG_STRING, &out, 0,
     "write tables and, unless scores are raw, a bar chart into this folder", "DIR"},
    POPT_TABLEEND};

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
    .options = options,
};

/* One of two words; `second` is set if it is the second one. */
static ks_status parse_word(const char *option, const char *text, const char *const words[2],
                            bool *second)
{
    *second = text && strcmp(text, words[1]) == 0;
    return !text || *second || strcmp(text, words[0]) == 0
               ? KS_OK
               : ks_fail(KS_USAGE, "--%s: expected %s or %s, found '%s'", option, words[0],
                         words[1], text);
}

static ks_status parse(struct ks_score_query *query, uint64_t *draws)
{
    static const char *const of_missing[] = {"error", "drop"}, *const of_grid[] = {"all", "common"};
    uint64_t steps = 0;

    KS_TRY(parse_word("missing", missing, of_missing, &query->drop_missing));
    KS_TRY(parse_word("grid", grid, of_grid, &query->common_grid));
    if (every && !ks_parse_integer(every, 1, (uint64_t)1 << 53, &steps))
        return ks_fail(KS_USAGE, "--every: expected a positive integer, found '%s'", every);
    KS_TRY(ks_option_integer("resamples", resamples, 0, 10000000, draws));
    query->every = (double)steps;
    query->normalize = !raw;
    return KS_OK;
}

static ks_status add_input(const char *path, struct ks_score_rows *rows)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? ks_score_rows_add_study(path, rows)
                                                           : ks_score_rows_add_csv(path, rows);
}

static ks_status scores(const struct ks_arguments *arguments)
{
    struct ks_score_rows rows = {0};
    struct ks_score_query query = {0};
    struct ks_score_summary *summary = NULL;
    uint64_t draws = KS_BOOTSTRAP_RESAMPLES;
    ks_status status = KS_OK;

    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected folders of studies or CSV files (see --help)");
    KS_TRY(parse(&query, &draws));
    for (size_t i = 0; i < arguments->n_rest; i++)
        KS_GO(add_input(arguments->rest[i], &rows));
    if (systems)
        KS_GO(ks_score_rows_keep(&rows, systems));
    KS_GO(ks_score_summary_new(&rows, &query, 0, &summary)); /* refuses what it refuses at once */
    if (!arguments->quiet && draws > 0)
        ks_say("resampling, some seconds for each system");
    ks_score_summary_free(summary);
    KS_GO(ks_score_summary_new(&rows, &query, (size_t)draws, &summary));
    ks_scores_warn(summary);
    KS_GO(ks_scores_warn_settings(&rows));
    if (out)
        KS_GO(ks_scores_write(summary, out, !raw));
    if (csv)
        KS_GO(ks_scores_print_csv(summary));
    else
        ks_scores_print(summary, stdout);
done:
    ks_score_summary_free(summary);
    ks_score_rows_free(&rows);
    return status;
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, scores);
}
