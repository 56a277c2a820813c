/* Reads a checkpoint's file: refuses weights of other programs, compares the reference results of
 * the program that wrote it, chooses the targets, and distributes the minibatches among the ranks.
 */
#include "pipeline/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/say.h"
#include "io/reference.h"
#include "io/scout.h"

/* --- weights of other programs --- */

static const char *const importable[] = {".safetensors", ".npz", ".msgpack", NULL};
static const char *const pickled[] = {".pt", ".pth", ".pkl", ".ckpt", NULL};

static bool ends_in(const char *path, const char *const *endings)
{
    const size_t length = strlen(path);

    for (; *endings; endings++)
        if (length > strlen(*endings) && strcmp(path + length - strlen(*endings), *endings) == 0)
            return true;
    return false;
}

/* Whether it can be opened and does not start as HDF5 files do. */
static bool exists_otherwise(const char *path)
{
    static const char SIGNATURE[] = "\x89HDF";
    FILE *file = fopen(path, "rb");
    char start[sizeof SIGNATURE - 1] = "";
    bool other;

    if (!file)
        return false;
    other = fread(start, 1, sizeof start, file) < sizeof start ||
            memcmp(start, SIGNATURE, sizeof start) != 0;
    fclose(file);
    return other;
}

ks_status ks_foreign_check(const char *path)
{
    if (ends_in(path, importable) && exists_otherwise(path))
        return ks_fail(KS_FORMAT,
                       "%s: expected a checkpoint, found weights of another program: make a "
                       "checkpoint of them by 'kappascope import' (see kappascope import --help)",
                       path);
    if (ends_in(path, pickled) && exists_otherwise(path))
        return ks_fail(KS_FORMAT,
                       "%s: expected a checkpoint, found a Python pickle, which only Python can "
                       "read: save its arrays as .safetensors or .npz, and make a checkpoint of "
                       "them by 'kappascope import' (see kappascope import --help)",
                       path);
    return KS_OK;
}

/* --- reference results --- */

/* Refuses before it allocates. */
static ks_status check_reference_memory(const struct ks_pipeline *p, double bytes)
{
    const double limit = ks_budget_limit(p, 0);
    double more;

    KS_TRY(ks_references_bytes(p->checkpoint, &p->checkpoint->references, &more));
    if (bytes + more <= limit)
        return KS_OK;
    return ks_fail(KS_MEMORY,
                   "--memory: expected at least %.0fK, found %.0fK: checkpoint and the comparison "
                   "of its outputs take %.0fK",
                   ceil((bytes + more) / 1024), floor(limit / 1024), ceil((bytes + more) / 1024));
}

/* Compares what the file, whose arrays take `bytes`, holds for the minibatches to be analyzed, and
 * frees it. */
static ks_status check_reference(struct ks_pipeline *p, double bytes)
{
    struct ks_references *references = &p->checkpoint->references;
    const size_t before = ks_alloc_total();

    if (!ks_references_exist(references)) {
        if (!p->quiet && !p->says_references)
            ks_say("%s: nothing was compared: the file has no /batch/output, /batch/loss or "
                   "/batch/gradient_norm of the program that made it",
                   p->path);
        return KS_OK;
    }
    KS_TRY(check_reference_memory(p, bytes));
    KS_TRY(ks_references_compare(p->checkpoint, p->path, p->minibatches));
    ks_alloc_freed_since(before);
    ks_references_clear(references);
    return KS_OK;
}

/* --- the file --- */

/* Moves the targets that the options ask for to `target`, and frees the others. */
static ks_status choose_targets(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_checkpoint *c = p->checkpoint;

    if (o->rewards == KS_REWARDS_RAW && !c->target_raw)
        return ks_fail(KS_FORMAT,
                       "%s: --rewards raw: expected the dataset /batch/target_raw, found none",
                       p->path);
    p->raw = o->rewards != KS_REWARDS_NORMALIZED && c->target_raw;
    if (p->raw) {
        free(c->target);
        c->target = c->target_raw;
    } else {
        free(c->target_raw);
    }
    c->target_raw = NULL;
    if (o->published && !p->raw && !p->quiet)
        ks_say("%s: --compat xqc: the checkpoint has no targets from raw rewards "
               "(/batch/target_raw): those from normalized rewards (/batch/target) are used",
               p->path);
    return KS_OK;
}

/* Has the files that the user gave read by a scout. */
static ks_status scout(const struct ks_pipeline *p)
{
    const double memory = ks_budget_limit(p, 0);

    KS_TRY(ks_foreign_check(p->path));
    if (p->trusts_files)
        return KS_OK;
    KS_TRY(ks_scout(p->path, memory));
    return p->factors ? ks_scout(p->factors, memory) : KS_OK;
}

static ks_status read_file(struct ks_pipeline *p)
{
    const size_t batches = p->options->batches;
    ks_status status;
    double bytes;

    KS_TRY(scout(p));
    KS_TRY(ks_checkpoint_bytes(p->path, &bytes));
    KS_TRY(ks_budget_check(p, bytes));
    status = ks_checkpoint_read_loss(p->path, &p->checkpoint);
    if (status == KS_MEMORY) /* an allocation does not know for which file it is */
        return ks_pipeline_name(p, status);
    KS_TRY(status);
    p->minibatches = batches > 0 ? batches : p->checkpoint->minibatches;
    if (p->minibatches > p->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", p->path,
                       p->checkpoint->minibatches, batches);
    status = check_reference(p, bytes);
    if (status == KS_MEMORY)
        return ks_pipeline_name(p, status);
    KS_TRY(status);
    KS_TRY(choose_targets(p));
    return ks_sha256_file(p->path, p->digest);
}

/* --- the ranks --- */

/* What the other ranks need before they can allocate. */
struct sizes {
    size_t in, ensemble, rows, loss_rows, targets;
    int64_t adam_step;
    struct ks_adam_constants adam_constants;
    bool state, adam, weight, targets_differ;
};

static struct sizes sizes_of(const struct ks_checkpoint *c)
{
    return (struct sizes){.in = c->critic.arch->in,
                          .ensemble = c->critic.ensemble,
                          .rows = c->rows,
                          .loss_rows = c->loss_rows,
                          .targets = c->critic.arch->loss.targets,
                          .targets_differ = c->targets_differ,
                          .adam_step = c->adam_step,
                          .adam_constants = c->adam,
                          .state = c->critic.state != NULL,
                          .adam = c->adam_v != NULL,
                          .weight = c->weight != NULL};
}

static size_t parameters(const struct ks_checkpoint *c)
{
    return ks_networks_parameters(&c->critic);
}

static size_t input_size(const struct ks_checkpoint *c)
{
    return c->rows * c->critic.arch->in;
}

/* Allocates all but the description's text, which the rank has. The arrays of minibatches are one
 * longer than `own`: other ranks' minibatches are received there. */
static ks_status allocate(const struct sizes *s, size_t own, struct ks_checkpoint *c)
{
    struct ks_networks *critic = &c->critic;

    KS_TRY(ks_arch_parse_f64(critic->text, "/critic", s->in, &critic->arch));
    critic->ensemble = s->ensemble;
    critic->arch->loss.targets = s->targets;
    c->targets_differ = s->targets_differ;
    c->rows = s->rows;
    c->loss_rows = s->loss_rows;
    c->adam_step = s->adam_step;
    c->adam = s->adam_constants;
    KS_TRY(ks_alloc(parameters(c), sizeof *critic->w, &critic->w));
    if (critic->arch->frozen > 0)
        KS_TRY(
            ks_alloc(s->ensemble * critic->arch->frozen, sizeof *critic->frozen, &critic->frozen));
    if (s->state)
        KS_TRY(ks_alloc(s->ensemble * critic->arch->states, sizeof *critic->state, &critic->state));
    if (s->adam)
        KS_TRY(ks_alloc(parameters(c), sizeof *c->adam_v, &c->adam_v));
    if (s->weight)
        KS_TRY(ks_alloc((own + 1) * c->loss_rows, sizeof *c->weight, &c->weight));
    KS_TRY(ks_alloc((own + 1) * input_size(c), sizeof *c->input, &c->input));
    return ks_alloc((own + 1) * ks_checkpoint_target_size(c), sizeof *c->target, &c->target);
}

static void send_array(const struct ks_team *team, size_t n, double *array)
{
    if (array)
        ks_team_broadcast(team, 0, n * sizeof *array, array);
}

/* The minibatches of this rank: numbers rank, rank + ranks, ..., `own` in all. */
struct share {
    size_t rank, ranks, own;
};

/* Sends minibatch `number` of an array, of `size` numbers, from rank 0 to all ranks. A rank stores
 * its own ones in order, and the others in one slot behind them, where each replaces the one
 * before. Rank 0 has all minibatches and moves its own to the front. */
static void send_minibatch(const struct ks_team *team, const struct share *share, size_t number,
                           size_t size, double *array)
{
    bool mine = number % share->ranks == share->rank;
    size_t slot = mine ? number / share->ranks : share->own;
    double *minibatch = array + (team->rank == 0 ? number : slot) * size;

    send_array(team, size, minibatch);
    if (team->rank == 0 && mine)
        memmove(array + slot * size, minibatch, size * sizeof *array);
}

static ks_status receive(const struct ks_team *team, size_t own, struct ks_checkpoint **checkpoint)
{
    struct sizes sizes = {.in = 0};
    struct ks_checkpoint *c = *checkpoint;
    ks_status status = KS_OK;

    if (team->rank == 0)
        sizes = sizes_of(c);
    else
        status = ks_alloc(1, sizeof *c, checkpoint);
    KS_TRY(ks_team_agree(team, status));
    c = *checkpoint;
    ks_team_broadcast(team, 0, sizeof sizes, &sizes);
    KS_TRY(ks_team_broadcast_string(team, &c->critic.text));
    return ks_team_agree(team, team->rank == 0 ? KS_OK : allocate(&sizes, own, c));
}

/* Distributes the checkpoint that rank 0 has read; the other ranks have none yet. Every rank gets
 * the critics, Adam's second moment and its part of the minibatches. */
static ks_status distribute(const struct ks_team *team, size_t minibatches,
                            struct ks_checkpoint **checkpoint)
{
    struct share share = {.rank = (size_t)ks_team_rank(team), .ranks = (size_t)ks_team_size(team)};
    struct ks_checkpoint *c;

    share.own = share.rank < minibatches ? (minibatches - share.rank - 1) / share.ranks + 1 : 0;
    KS_TRY(receive(team, share.own, checkpoint));
    c = *checkpoint;
    send_array(team, parameters(c), c->critic.w);
    send_array(team, c->critic.ensemble * c->critic.arch->frozen, c->critic.frozen);
    send_array(team, c->critic.ensemble * c->critic.arch->states, c->critic.state);
    send_array(team, parameters(c), c->adam_v);
    for (size_t i = 0; i < minibatches; i++) {
        send_minibatch(team, &share, i, input_size(c), c->input);
        send_minibatch(team, &share, i, ks_checkpoint_target_size(c), c->target);
        if (c->weight)
            send_minibatch(team, &share, i, c->loss_rows, c->weight);
    }
    c->minibatches = share.own;
    return KS_OK;
}

ks_status ks_pipeline_read(struct ks_pipeline *p)
{
    const struct ks_team *team = p->team;

    KS_TRY(ks_team_agree(team, ks_pipeline_leads(p) ? read_file(p) : KS_OK));
    p->problem.minibatches = p->minibatches;
    if (ks_team_size(team) == 1)
        return KS_OK;
    ks_team_broadcast(team, 0, sizeof p->minibatches, &p->minibatches);
    ks_team_broadcast(team, 0, sizeof p->digest, p->digest);
    ks_team_broadcast(team, 0, sizeof p->raw, &p->raw);
    KS_TRY(ks_pipeline_name(p, distribute(team, p->minibatches, &p->checkpoint)));
    p->problem.minibatches = p->checkpoint->minibatches;
    p->problem.other_minibatches = p->minibatches - p->problem.minibatches;
    return KS_OK;
}
