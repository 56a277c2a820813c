#include "import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "import/batch.h"
#include "import/match.h"

/* Everything that is open during an import; all owned. */
struct job {
    const struct ks_import *import;
    struct ks_map map;
    struct ks_objects objects;
    struct ks_weights *batch, **weights; /* [n_weights] */
    struct ks_match *match;              /* [n_weights] */
    size_t *critics;                     /* [n_weights] */
    struct ks_checkpoint *checkpoint;
    bool wide; /* a source is of float64 */
};

static void job_clear(struct job *job)
{
    for (size_t i = 0; i < job->import->n_weights; i++) {
        if (job->match)
            ks_match_clear(&job->match[i]);
        if (job->weights)
            ks_weights_close(job->weights[i]);
    }
    free(job->match);
    free(job->weights);
    free(job->critics);
    ks_weights_close(job->batch);
    free(job->objects.list);
    ks_map_clear(&job->map);
    ks_checkpoint_free(job->checkpoint);
}

/* The checkpoint must not replace one of the files that it is made from. */
static ks_status refuse_input(const struct ks_import *import, const char *input)
{
    struct stat in, out;

    if (!import->output || stat(import->output, &out) != 0 || stat(input, &in) != 0 ||
        in.st_dev != out.st_dev || in.st_ino != out.st_ino)
        return KS_OK;
    return ks_fail(KS_USAGE, "%s: the checkpoint would replace this input", input);
}

static ks_status refuse_inputs(const struct ks_import *import)
{
    KS_TRY(refuse_input(import, import->arch));
    KS_TRY(refuse_input(import, import->map));
    KS_TRY(refuse_input(import, import->batch));
    for (size_t i = 0; i < import->n_weights; i++)
        KS_TRY(refuse_input(import, import->weights[i]));
    return KS_OK;
}

/* Reads the map and the description. The width of the critic's input is that of the minibatches. */
static ks_status read_description(struct job *job)
{
    const struct ks_import *import = job->import;
    struct ks_networks *critic = &job->checkpoint->critic;
    size_t in;

    KS_TRY(ks_map_read(import->map, &job->map));
    KS_TRY(KS(arch_read)(import->arch, &critic->text));
    KS_TRY(ks_weights_open(import->batch, &job->batch));
    KS_TRY(ks_batch_check(job->batch, &in));
    KS_TRY(KS(arch_parse)(critic->text, import->arch, in, &critic->arch));
    if (!critic->arch->loss.kind)
        return ks_fail(KS_FORMAT, "%s: expected a critic, which ends in a loss, found %s",
                       import->arch,
                       critic->arch->policy.actions > 0 ? "an actor" : "a part of an encoder");
    return ks_objects_of(critic->arch, &job->objects);
}

/* Opens the files of weights and applies the map to them. All of them are listed before it fails
 * because of a problem in one of them. */
static ks_status match_all(struct job *job)
{
    const struct ks_import *import = job->import;
    struct ks_problems problems = {.unused = 0};

    KS_TRY(ks_alloc(import->n_weights, sizeof(struct ks_weights *), &job->weights));
    KS_TRY(ks_alloc(import->n_weights, sizeof *job->match, &job->match));
    for (size_t i = 0; i < import->n_weights; i++) {
        KS_TRY(ks_weights_open(import->weights[i], &job->weights[i]));
        KS_TRY(ks_match_make(&job->map, job->weights[i], &job->objects, &job->match[i]));
    }
    for (size_t i = 0; i < import->n_weights; i++)
        ks_match_list(&job->match[i], import->quiet ? NULL : stdout, &problems);
    if (problems.unused + problems.missing + problems.ambiguous == 0)
        return KS_OK;
    return ks_fail(KS_FORMAT, "%s: %zu arrays unused, %zu missing, %zu ambiguous; the first: %s",
                   import->map, problems.unused, problems.missing, problems.ambiguous,
                   problems.first);
}

/* Counts the critics of all files. */
static ks_status count_critics(struct job *job)
{
    struct ks_networks *critic = &job->checkpoint->critic;

    KS_TRY(ks_alloc(job->import->n_weights, sizeof *job->critics, &job->critics));
    for (size_t i = 0; i < job->import->n_weights; i++) {
        KS_TRY(ks_critic_count(&job->match[i], &job->import->axes, &job->critics[i]));
        critic->ensemble += job->critics[i];
    }
    return KS_OK;
}

static ks_status make_room(const struct job *job)
{
    struct ks_networks *critic = &job->checkpoint->critic;
    const struct KS(arch) *arch = critic->arch;
    const size_t n = critic->ensemble, states = job->match[0].states ? arch->states : 0;
    const double numbers = (double)n * (double)(ks_arch_extended(arch) + states);

    KS_TRY(ks_weights_expect_memory(job->weights[0], "the critics", numbers * sizeof(double)));
    KS_TRY(ks_alloc(n * arch->parameters, sizeof *critic->w, &critic->w));
    if (arch->frozen > 0)
        KS_TRY(ks_alloc(n * arch->frozen, sizeof *critic->frozen, &critic->frozen));
    if (states > 0)
        KS_TRY(ks_alloc(n * states, sizeof *critic->state, &critic->state));
    return KS_OK;
}

static ks_status take_critics(struct job *job)
{
    size_t first = 0;

    KS_TRY(count_critics(job));
    KS_TRY(make_room(job));
    for (size_t i = 0; i < job->import->n_weights; i++) {
        KS_TRY(ks_critic_take(&job->match[i], &job->import->axes, first, &job->checkpoint->critic,
                              &job->wide));
        first += job->critics[i];
    }
    return KS_OK;
}

/* Prints which reference results were compared, and which the file does not have. */
static void list_references(const struct ks_import *import, const struct ks_references *p)
{
    const char *const names[] = {"output", "loss", "gradient_norm"};
    const bool given[] = {p->output.value, p->loss.value, p->gradient_norm.value};

    if (import->quiet)
        return;
    if (!ks_references_exist(p)) {
        printf("%s: nothing was compared: it has no output, loss or gradient_norm of the program "
               "that trained the critic\n",
               import->batch);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s: %s: %s\n", import->batch, names[i],
               given[i] ? "equal to what is computed here, up to rounding"
                        : "not compared, because the file does not have it");
}

static ks_status write_checkpoint(const struct job *job)
{
    const struct ks_checkpoint *c = job->checkpoint;
    const struct ks_import *import = job->import;

    if (!import->output)
        return KS_OK;
    KS_TRY(ks_checkpoint_write(import->output, c, !job->wide));
    if (!import->quiet)
        printf("%s: %zu critics of %zu parameters, %zu minibatches of %zu rows, in %s\n",
               import->output, c->critic.ensemble, c->critic.arch->parameters, c->minibatches,
               c->rows, job->wide ? "float64" : "float32");
    return KS_OK;
}

ks_status ks_import_run(const struct ks_import *import)
{
    struct job job = {.import = import};
    ks_status status = KS_OK;

    KS_TRY(refuse_inputs(import));
    KS_GO(ks_alloc(1, sizeof *job.checkpoint, &job.checkpoint));
    KS_GO(read_description(&job));
    KS_GO(match_all(&job));
    KS_GO(take_critics(&job));
    KS_GO(ks_batch_take(job.batch, job.checkpoint, &job.wide));
    list_references(import, &job.checkpoint->references);
    KS_GO(write_checkpoint(&job));
done:
    job_clear(&job);
    return status;
}
