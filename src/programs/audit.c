/* kappascope-audit: one page on a critic. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <omp.h>

#include "audit/answer.h"
#include "audit/audit.h"
#include "audit/measured.h"
#include "audit/several.h"
#include "audit/training.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/program.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "io/h5.h"
#include "io/scout.h"

enum { LIMITS = 32 }; /* the most --fail-if                */
enum { MET = 3 };     /* the exit status if a limit is met */

static struct command {
    struct ks_audit_options audit;
    struct ks_audit_training training;
    const char *against, *page;
    struct ks_key_texts fail_if;
} command = {.audit = {.order = KS_AUDIT_PLANNED, .layer_order = KS_AUDIT_PLANNED}};
static bool met; /* whether a limit is met */

#define AT(member) KS_KEY_AT(struct command, member), 0

static const struct ks_key keys[] = {
    {"output", KS_ROW_TEXT(), NULL, AT(page), "PAGE", "also write the audit as one HTML page",
     .letter = 'o'},
    {"against", KS_ROW_TEXT(), NULL, AT(against), "STUDY|FILE|shipped",
     "compare with another checkpoint FILE, too, or with the critics of a study's folder in place "
     "of those that come with the program (shipped)"},
    {"fail-if", KS_ROW_TEXTS(), NULL, AT(fail_if), "EXPRESSION",
     "exit with status 3 if a bound is beyond a limit, e.g. 'kappa_effective_bound>1e4'; may be "
     "repeated"},
    {"count-above", KS_ROW_NUMBER(DBL_TRUE_MIN, DBL_MAX), NULL, AT(audit.count_above), "X",
     "also count the eigenvalues of an absolute value above X, for 'directions_above_lower<10'"},
    {"thorough", KS_ROW_FLAG(), NULL, AT(audit.thorough), NULL,
     "use all minibatches, and 90 Lanczos steps for each spectrum, 30 for each layer: narrower "
     "intervals in three times the time"},
    {"order", KS_ROW_COUNT(1, 10000), NULL, AT(audit.order), "M",
     "Lanczos steps of all spectra (default: 60 of the Hessian, 40 with half of the minibatches, "
     "20 of the others)"},
    {"layer-order", KS_ROW_COUNT(0, 10000), NULL, AT(audit.layer_order), "M",
     "Lanczos steps for the block of each layer, 0 for no layers (default: 10)"},
    {"batches", KS_ROW_COUNT(1, 10000), NULL, AT(audit.batches), "N",
     "use the first N minibatches (default: all, of large critics fewer)"},
    {"seed", KS_ROW_COUNT(0, KS_KEY_ANY), "0", AT(audit.seed), "S", "seed of the start vectors"},
    {"train", KS_ROW_TEXT(), NULL, AT(training.arch), "NAME.arch",
     "first train the critic that this file describes, and a baseline, then audit both"},
    {"env", KS_ROW_TEXT(), NULL, AT(training.env), "TASK", "the task of --train"},
    {"baseline", KS_ROW_TEXT(), "bn+wn+ce", AT(training.baseline), "NAME",
     "what --train compares with: an architecture, a system or a file"},
    {"steps", KS_ROW_COUNT(1000, 10000000), "5000", AT(training.steps), "N",
     "environment steps of --train"},
    {"out", KS_ROW_TEXT(), NULL, AT(training.folder), "DIR",
     "the folder of --train, which `kappascope study` continues (default: NAME-TASK)"},
    {"cache", KS_ROW_TEXT(), NULL, AT(audit.cache), "DIR",
     "keep the spectra in DIR/CHECKPOINT.audit (default: beside the checkpoint)"},
    KS_KEYS_END};

static const struct ks_key_rule rules[] = {
    {"train", "--train: expected together with --env", .needs = "env"},
    {"env", "--env: expected together with --train", .needs = "train"},
    {"baseline", "--baseline: expected only together with --train", .needs = "train"},
    {"steps", "--steps: expected only together with --train", .needs = "train"},
    {"out", "--out: expected only together with --train (-o, --output is the page)",
     .needs = "train"},
    {"thorough", "--thorough: expected no --%s, as it takes all minibatches",
     .excluded = {"batches"}},
    {.option = NULL}};

static const struct ks_program program = {
    .libraries = {{"HDF5", ks_h5_version}},
    .name = "kappascope-audit",
    .synopsis = "[OPTION...] CHECKPOINT...|--train=NAME.arch --env=TASK",
    .description = "one page on a critic: its statistics, findings and limits",
    .details = "DESCRIPTION\n"
               "  Analyzes the Hessian, its Gauss-Newton matrix and residual, the block of each\n"
               "  layer and, with Adam's second moments, the preconditioned Hessian; and the\n"
               "  Hessian on half of the minibatches. The spectra are kept in the folder\n"
               "  CHECKPOINT.audit, from which a second audit reads them. If one of several\n"
               "  checkpoints fails, the audit ends there and no page is written.\n"
               "\n"
               "LIMITS\n"
               "  --fail-if takes a bound: kappa_effective_bound, kappa_lower_bound,\n"
               "  lambda_max, sharpness_ratio, NAME_lower or NAME_upper, with > >= < or <=.\n"
               "  A lower bound below a limit proves nothing: \"not shown to be worse\". An\n"
               "  upper bound below a limit shows that the number is not above it. If a limit\n"
               "  is met, the exit status is 3.\n"
               "\n"
               "EXAMPLES\n"
               "  kappascope audit -o page.html mine.h5\n"
               "  kappascope audit --against checkpoints/quick mine.h5\n"
               "  kappascope audit --train mine.arch --env cartpole-swingup\n"
               "  kappascope audit --fail-if 'kappa_effective_bound>1e4' mine.h5\n",
    .keys = keys,
    .rules = rules,
    .values = &command,
};

struct job {
    struct ks_audit_options options;
    size_t n_limits;
    struct ks_limit limit[LIMITS];
    const char *other;               /* the checkpoint of --against; NULL: none              */
    struct ks_audit reference;       /* the audit of `other`                                 */
    char *table;                     /* of the critics that were measured; owned             */
    const char *study;               /* whose it is; NULL: of the studies that it names      */
    char *folder;                    /* of --train; NULL: without; owned                     */
    char *page;                      /* owned; NULL: none                                    */
    char *trained[KS_AUDIT_TRAINED]; /* owned                                          */
    size_t n;
    const char *const *checkpoint; /* [n]                                                 */
    struct ks_audit *audit;        /* [n]; owned, with its contents                       */
    struct ks_document *document;  /* [n + 1], a comparison, then one per checkpoint; owned */
};

/* --- options --- */

static ks_status read_options(const struct ks_arguments *arguments, struct job *job)
{
    const struct ks_key_texts *limits = &command.fail_if;

    if (command.training.arch ? arguments->n_rest > 0 : arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected a checkpoint%s (see --help)",
                       command.training.arch ? " or --train, found both" : ", found none");
    if (command.training.arch && command.audit.batches > KS_AUDIT_MINIBATCHES)
        return ks_fail(KS_USAGE, "--batches: expected at most %d, which --train stores, found %zu",
                       KS_AUDIT_MINIBATCHES, command.audit.batches);
    command.audit.quiet = command.training.quiet = arguments->quiet;
    job->options = command.audit;
    for (size_t i = 0; i < limits->n; i++) {
        if (job->n_limits == LIMITS)
            return ks_fail(KS_USAGE, "--fail-if: expected at most %d of them", LIMITS);
        KS_TRY(ks_limit_read(limits->text[i], command.audit.count_above,
                             &job->limit[job->n_limits++]));
    }
    job->n = command.training.arch ? KS_AUDIT_TRAINED : arguments->n_rest;
    job->checkpoint = command.training.arch ? (const char *const *)job->trained : arguments->rest;
    KS_TRY(ks_alloc(job->n, sizeof *job->audit, &job->audit));
    return ks_alloc(job->n + 1, sizeof *job->document, &job->document);
}

/* The table of the critics to compare with. */
static ks_status find_table(struct job *job)
{
    const char *against = command.against;
    struct stat info;

    if (!against || strcmp(against, "shipped") == 0)
        return ks_installed_shared("plots/gallery/critics.csv", &job->table);
    if (stat(against, &info) != 0 || !S_ISDIR(info.st_mode)) {
        if (!ks_path_ends(against, ".h5"))
            return ks_fail(KS_USAGE,
                           "--against: expected a study's folder, a checkpoint (.h5) or shipped, "
                           "found '%s'",
                           against);
        job->other = against;
        return ks_installed_shared("plots/gallery/critics.csv", &job->table);
    }
    job->study = *ks_path_base(against) ? ks_path_base(against) : against;
    KS_TRY(ks_print_string(&job->table, "%s/tables/checkpoints.csv", against));
    return ks_path_exists(job->table)
               ? KS_OK
               : ks_fail(KS_IO,
                         "%s: expected tables/checkpoints.csv in the folder of a study: run "
                         "`kappascope plot` on it first",
                         against);
}

/* --- checks before any work --- */

static ks_status check_checkpoint(const char *path)
{
    KS_TRY(ks_foreign_check(path));
    KS_TRY(ks_scout(path));
    return command.page ? ks_output_check(command.page, path) : KS_OK;
}

/* Two checkpoints of one name would overwrite each other's spectra in the cache. */
static ks_status check_folders(const struct job *job, const char *a, const char *b)
{
    KS_OWNED char *first = NULL, *second = NULL;

    KS_TRY(ks_audit_folder(a, &job->options, &first));
    KS_TRY(ks_audit_folder(b, &job->options, &second));
    return !ks_output_same(first, second) || ks_output_same(a, b)
               ? KS_OK
               : ks_fail(KS_USAGE, "%s and %s: the spectra of both would be kept in %s", a, b,
                         first);
}

static ks_status check_files(const struct job *job)
{
    if (job->other)
        KS_TRY(check_checkpoint(job->other));
    for (size_t i = 0; i < job->n; i++) {
        KS_TRY(check_checkpoint(job->checkpoint[i]));
        if (job->other)
            KS_TRY(check_folders(job, job->other, job->checkpoint[i]));
        for (size_t j = 0; j < i; j++)
            KS_TRY(check_folders(job, job->checkpoint[j], job->checkpoint[i]));
    }
    return KS_OK;
}

/* --- one checkpoint --- */

static ks_status describe(struct job *job, const struct ks_audit *audit, struct ks_document *d)
{
    KS_CLEARED_BY(ks_measured_clear) struct ks_measured measured = {.n = 0}, trained = {.n = 0};

    KS_TRY(ks_measured_read(job->table, job->study, audit->summary.env_step,
                            audit->summary.untrained, &measured));
    KS_TRY(ks_measured_read(job->table, job->study, NAN, false, &trained));
    ks_document_add(d, KS_BLOCK_SECTION, "%s", audit->path);
    ks_audit_answer(audit, &measured, &trained, d);
    if (job->other)
        ks_audit_compare(audit, &job->reference, d);
    KS_TRY(ks_audit_place(audit, &measured, d));
    KS_TRY(ks_audit_describe(audit, d));
    if (job->n_limits > 0)
        ks_document_add(d, KS_BLOCK_SECTION, "Limits");
    for (size_t i = 0; i < job->n_limits; i++) {
        bool this;

        KS_TRY(ks_limit_judge(&job->limit[i], audit->path, audit->spectrum[KS_AUDIT_HESSIAN], &this,
                              d));
        met |= this;
    }
    return d->status;
}

static ks_status audit_one(struct job *job, size_t i)
{
    struct ks_document *d = &job->document[i + 1];

    KS_TRY(ks_audit_run(job->checkpoint[i], &job->options, &job->audit[i]));
    KS_TRY(describe(job, &job->audit[i], d));
    return ks_document_print(d, KS_DOCUMENT_WIDTH, stdout);
}

/* Which of several checkpoints is better conditioned: the last thing on the terminal, so that it
 * is seen, and the first one on the page. */
static ks_status compare_all(struct job *job)
{
    if (job->n < 2)
        return KS_OK;
    ks_audit_several(job->n, job->audit, job->document);
    return ks_document_print(job->document, KS_DOCUMENT_WIDTH, stdout);
}

static ks_status write_page(struct job *job)
{
    const size_t first = job->n < 2; /* of one checkpoint there is no comparison */

    return ks_audit_page(command.page, job->n + 1 - first, job->document + first);
}

/* With --train the page is in the study's folder, unless the command names another one. */
static ks_status train(struct job *job)
{
    if (!command.training.arch)
        return KS_OK;
    if (command.page) /* before the training */
        KS_TRY(ks_output_check(command.page, command.training.arch));
    KS_TRY(ks_audit_train(&command.training, &job->folder, job->trained));
    if (!command.page) {
        KS_TRY(ks_print_string(&job->page, "%s/audit.html", job->folder));
        command.page = job->page;
    }
    return KS_OK;
}

static ks_status run(const struct ks_arguments *arguments, struct job *job)
{
    KS_TRY(read_options(arguments, job));
    KS_TRY(find_table(job));
    KS_TRY(train(job));
    KS_TRY(check_files(job));
    KS_TRY(ks_blas_reserve((size_t)omp_get_max_threads()));
    if (job->other)
        KS_TRY(ks_audit_run(job->other, &job->options, &job->reference));
    for (size_t i = 0; i < job->n; i++)
        KS_TRY(audit_one(job, i));
    KS_TRY(compare_all(job));
    return command.page ? write_page(job) : KS_OK;
}

static ks_status audit(const struct ks_arguments *arguments)
{
    struct job job = {.n = 0};
    const ks_status status = run(arguments, &job);

    for (size_t i = 0; job.document && i <= job.n; i++)
        ks_document_clear(&job.document[i]);
    for (size_t i = 0; job.audit && i < job.n; i++)
        ks_audit_clear(&job.audit[i]);
    free(job.document);
    free(job.audit);
    free(job.table);
    free(job.folder);
    free(job.page);
    for (size_t i = 0; i < KS_AUDIT_TRAINED; i++)
        free(job.trained[i]);
    ks_audit_clear(&job.reference);
    return status;
}

int main(int argc, char **argv)
{
    const int code = ks_program_run(&program, argc, argv, audit);

    return code == 0 && met ? MET : code;
}
