/* kappascope-audit: one page on a critic. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <omp.h>

#include "audit/audit.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/program.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "io/h5.h"
#include "io/scout.h"

enum { LIMITS = 32, STUDIES = 4 }; /* the most --fail-if; the shipped studies */
enum { MET = 3 };                  /* the exit status if a limit is met       */

static struct command {
    struct ks_audit_options audit;
    const char *against, *page;
    struct ks_key_texts fail_if;
} command;
static bool met; /* whether a limit is met */

#define AT(member) KS_KEY_AT(struct command, member), 0

static const struct ks_key keys[] = {
    {"output", KS_ROW_TEXT(), NULL, AT(page), "PAGE", "also write the audit as one HTML page",
     .letter = 'o'},
    {"against", KS_ROW_TEXT(), NULL, AT(against), "STUDY|FILE|shipped",
     "compare with another checkpoint FILE, or with the architectures of a study's folder "
     "(default: shipped, the tables that come with the program)"},
    {"fail-if", KS_ROW_TEXTS(), NULL, AT(fail_if), "EXPRESSION",
     "exit with status 3 if a bound is beyond a limit, e.g. 'kappa_effective_bound>1e4'; may be "
     "repeated"},
    {"count-above", KS_ROW_NUMBER(DBL_TRUE_MIN, DBL_MAX), NULL, AT(audit.count_above), "X",
     "also count the eigenvalues of an absolute value above X, for 'directions_above_lower<10'"},
    {"order", KS_ROW_COUNT(1, 10000), "90", AT(audit.order), "M", "Lanczos steps"},
    {"layer-order", KS_ROW_COUNT(0, 10000), "30", AT(audit.layer_order), "M",
     "Lanczos steps for the block of each layer, 0 for no layers"},
    {"batches", KS_ROW_COUNT(1, 10000), NULL, AT(audit.batches), "N",
     "use the first N minibatches (default: all)"},
    {"seed", KS_ROW_COUNT(0, KS_KEY_ANY), "0", AT(audit.seed), "S", "seed of the start vectors"},
    {"cache", KS_ROW_TEXT(), NULL, AT(audit.cache), "DIR",
     "keep the spectra in DIR/CHECKPOINT.audit (default: beside the checkpoint)"},
    KS_KEYS_END};

static const struct ks_program program = {
    .libraries = {{"HDF5", ks_h5_version}},
    .name = "kappascope-audit",
    .synopsis = "[OPTION...] CHECKPOINT...",
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
               "  kappascope audit --fail-if 'kappa_effective_bound>1e4' mine.h5\n",
    .keys = keys,
    .values = &command,
};

struct job {
    struct ks_audit_options options;
    size_t n_limits;
    struct ks_limit limit[LIMITS];
    const char *other;         /* the checkpoint of --against; NULL: studies           */
    struct ks_audit reference; /* the audit of `other`                                 */
    size_t n_studies;
    struct ks_audit_study study[STUDIES];
    size_t n;
    const char *const *checkpoint; /* [n]                                */
    struct ks_document *document;  /* [n], one per checkpoint; owned     */
};

/* --- options --- */

static ks_status read_options(const struct ks_arguments *arguments, struct job *job)
{
    const struct ks_key_texts *limits = &command.fail_if;

    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected a checkpoint, found none (see --help)");
    command.audit.quiet = arguments->quiet;
    job->options = command.audit;
    for (size_t i = 0; i < limits->n; i++) {
        if (job->n_limits == LIMITS)
            return ks_fail(KS_USAGE, "--fail-if: expected at most %d of them", LIMITS);
        KS_TRY(ks_limit_read(limits->text[i], &job->limit[job->n_limits++]));
    }
    job->n = arguments->n_rest;
    job->checkpoint = arguments->rest;
    return ks_alloc(job->n, sizeof *job->document, &job->document);
}

/* Takes a study if its folder has the table. Owns `folder`. */
static ks_status add_study(struct job *job, char *folder, const char *name)
{
    KS_OWNED char *table = NULL;
    ks_status status = ks_print_string(&table, "%s/checkpoints.csv", folder);

    if (status == KS_OK && ks_path_exists(table))
        job->study[job->n_studies++] = (struct ks_audit_study){folder, name};
    else
        free(folder);
    return status;
}

static ks_status find_shipped(struct job *job)
{
    static const char *const names[STUDIES][2] = {
        {"plots/gallery/small/tables", "the study small"},
        {"plots/gallery/trot/tables", "the study trot"},
        {"plots/gallery/trot-small/tables", "the study trot-small"},
        {"plots/gallery/reference/tables", "the study reference"}};

    for (size_t i = 0; i < STUDIES; i++) {
        char *folder = NULL;
        ks_status status = ks_installed_shared(names[i][0], &folder);

        if (status == KS_MISSING)
            continue;
        KS_TRY(status);
        KS_TRY(add_study(job, folder, names[i][1]));
    }
    return KS_OK;
}

static ks_status find_study(struct job *job)
{
    const char *against = command.against;
    char *folder = NULL;

    KS_TRY(ks_print_string(&folder, "%s/tables", against));
    KS_TRY(add_study(job, folder, against));
    if (job->n_studies == 0)
        return ks_fail(KS_IO,
                       "%s: expected tables/checkpoints.csv in the folder of a study: run "
                       "`kappascope plot` on it first",
                       against);
    return KS_OK;
}

static ks_status read_against(struct job *job)
{
    const char *against = command.against;
    struct stat info;

    if (!against || strcmp(against, "shipped") == 0)
        return find_shipped(job);
    if (stat(against, &info) == 0 && S_ISDIR(info.st_mode))
        return find_study(job);
    if (!ks_path_ends(against, ".h5"))
        return ks_fail(KS_USAGE,
                       "--against: expected a study's folder, a checkpoint (.h5) or shipped, "
                       "found '%s'",
                       against);
    job->other = against;
    return KS_OK;
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
    KS_TRY(ks_audit_describe(audit, d));
    if (job->other)
        ks_audit_compare(audit, &job->reference, d);
    for (size_t i = 0; i < job->n_studies; i++)
        KS_TRY(ks_audit_place(audit, &job->study[i], d));
    if (!job->other && job->n_studies == 0) {
        ks_document_add(d, KS_BLOCK_SECTION, "Among other architectures");
        ks_document_add(d, KS_BLOCK_TEXT,
                        "No tables of other architectures come with this version of the program. "
                        "--against STUDY compares with the folder of a study of your own.");
    }
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

static ks_status audit_one(struct job *job, const char *path, struct ks_document *d)
{
    KS_CLEARED_BY(ks_audit_clear) struct ks_audit audit = {.path = NULL};

    KS_TRY(ks_audit_run(path, &job->options, &audit));
    KS_TRY(describe(job, &audit, d));
    return ks_document_print(d, KS_DOCUMENT_WIDTH, stdout);
}

static ks_status run(const struct ks_arguments *arguments, struct job *job)
{
    KS_TRY(read_options(arguments, job));
    KS_TRY(read_against(job));
    KS_TRY(check_files(job));
    KS_TRY(ks_blas_reserve((size_t)omp_get_max_threads()));
    if (job->other)
        KS_TRY(ks_audit_run(job->other, &job->options, &job->reference));
    for (size_t i = 0; i < job->n; i++)
        KS_TRY(audit_one(job, job->checkpoint[i], &job->document[i]));
    return command.page ? ks_audit_page(command.page, job->n, job->document) : KS_OK;
}

static ks_status audit(const struct ks_arguments *arguments)
{
    struct job job = {.n = 0};
    const ks_status status = run(arguments, &job);

    for (size_t i = 0; job.document && i < job.n; i++)
        ks_document_clear(&job.document[i]);
    free(job.document);
    for (size_t i = 0; i < job.n_studies; i++)
        free(job.study[i].folder);
    ks_audit_clear(&job.reference);
    return status;
}

int main(int argc, char **argv)
{
    const int code = ks_program_run(&program, argc, argv, audit);

    return code == 0 && met ? MET : code;
}
