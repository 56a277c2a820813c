/* Reads a checkpoint's file: refuses weights of other programs, compares the reference results of
 * the program that wrote it, chooses the targets, and distributes the minibatches among the ranks.
 */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/checkpoint.h"
#include "io/reference.h"

/* --- weights of other programs --- */

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

#define IMPORT "by 'kappascope import' (see kappascope import --help)"
#define WEIGHTS                                                                                    \
    "expected a checkpoint, found weights of another program: make a checkpoint of them " IMPORT
#define PICKLE                                                                                     \
    "expected a checkpoint, found a Python pickle, which only Python can read: save its arrays "   \
    "as "                                                                                          \
    ".safetensors or .npz, and make a checkpoint of them " IMPORT

ks_status ks_foreign_check(const char *path)
{
    static const struct {
        const char *ending, *message;
    } foreign[] = {{".safetensors", WEIGHTS}, {".npz", WEIGHTS}, {".msgpack", WEIGHTS},
                   {".pt", PICKLE},           {".pth", PICKLE},  {".pkl", PICKLE},
                   {".ckpt", PICKLE}};
    const size_t length = strlen(path);

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const size_t n = strlen(foreign[i].ending);

        if (length > n && strcmp(path + length - n, foreign[i].ending) == 0 &&
            exists_otherwise(path))
            return ks_fail(KS_FORMAT, "%s: %s", path, foreign[i].message);
    }
    return KS_OK;
}

/* --- reference results --- */

/* An allocation that fails does not know for which file it is. */
static ks_status name_memory(const struct ks_pipeline *p, ks_status status)
{
    return status == KS_MEMORY ? ks_pipeline_name(p, status) : status;
}

/* Compares what the file, whose arrays take `bytes`, holds for the minibatches to be analyzed, and
 * frees it. */
static ks_status check_reference(struct ks_pipeline *p, double bytes)
{
    struct ks_references *references = &p->checkpoint->references;
    const size_t before = ks_alloc_total();
    double more;

    if (!ks_references_exist(references)) {
        if (!p->quiet && !p->says_references)
            ks_say("%s: nothing was compared: the file has no /batch/output, /batch/loss or "
                   "/batch/gradient_norm of the program that made it",
                   p->path);
        return KS_OK;
    }
    KS_TRY(name_memory(p, ks_references_bytes(p->checkpoint, references, &more)));
    KS_TRY(ks_budget_check(p, bytes + more, "checkpoint and the comparison of its outputs take"));
    KS_TRY(name_memory(p, ks_references_compare(p->checkpoint, p->path, p->minibatches)));
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

/* An array of a checkpoint; `of_minibatches`: one for each of them, of `size` numbers. */
struct array {
    double **at;
    size_t size;
    bool of_minibatches;
};
enum { ARRAYS = 7 };

static void list_arrays(struct ks_checkpoint *c, struct array list[ARRAYS])
{
    struct ks_networks *critic = &c->critic;
    const struct array arrays[ARRAYS] = {
        {&critic->w, ks_networks_parameters(critic), false},
        {&critic->frozen, critic->ensemble * critic->arch->frozen, false},
        {&critic->state, critic->ensemble * critic->arch->states, false},
        {&c->adam_v, ks_networks_parameters(critic), false},
        {&c->input, c->rows * critic->arch->in, true},
        {&c->target, ks_checkpoint_target_size(c), true},
        {&c->weight, c->loss_rows, true}};

    memcpy(list, arrays, sizeof arrays);
}

/* Exchanges a minibatch with the first one. */
static void bring_to_front(struct ks_checkpoint *c, size_t minibatch)
{
    struct array list[ARRAYS];

    list_arrays(c, list);
    for (const struct array *a = list; a < list + ARRAYS; a++)
        for (size_t i = 0; *a->at && a->of_minibatches && i < a->size; i++) {
            double *one = *a->at + minibatch * a->size + i, first = (*a->at)[i];

            (*a->at)[i] = *one;
            *one = first;
        }
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
    const size_t batches = p->options->batches, batch = p->options->batch;
    double bytes;

    KS_TRY(scout(p));
    KS_TRY(ks_checkpoint_bytes(p->path, &bytes));
    KS_TRY(ks_budget_check(p, bytes, "the checkpoint's arrays alone take"));
    KS_TRY(name_memory(p, ks_checkpoint_read_loss(p->path, &p->checkpoint)));
    p->minibatches = batches > 0 ? batches : p->checkpoint->minibatches;
    if (p->minibatches > p->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", p->path,
                       p->checkpoint->minibatches, batches);
    if (batch > p->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batch: expected 0 to %zu, found %zu", p->path,
                       p->checkpoint->minibatches - 1, batch - 1);
    KS_TRY(check_reference(p, bytes));
    KS_TRY(choose_targets(p));
    if (batch > 0) {
        bring_to_front(p->checkpoint, batch - 1);
        p->minibatches = 1;
    }
    return ks_sha256_file(p->path, p->digest);
}

/* --- the ranks --- */

/* What the other ranks need before they can allocate: the numbers of the checkpoint, without what
 * it owns, and which arrays it has. */
struct header {
    struct ks_checkpoint numbers;
    size_t in, targets;
    bool exists[ARRAYS];
};

static void fill_header(struct ks_checkpoint *c, struct header *h)
{
    struct array list[ARRAYS];

    *h = (struct header){{.critic.ensemble = c->critic.ensemble,
                          .rows = c->rows,
                          .loss_rows = c->loss_rows,
                          .targets_differ = c->targets_differ,
                          .adam_step = c->adam_step,
                          .adam = c->adam},
                         .in = c->critic.arch->in,
                         .targets = c->critic.arch->loss.targets};
    list_arrays(c, list);
    for (size_t k = 0; k < ARRAYS; k++)
        h->exists[k] = *list[k].at != NULL;
}

/* Allocates all but the description's text, which the rank has. The arrays of minibatches are one
 * longer than `own`: other ranks' minibatches are received there. */
static ks_status allocate(const struct header *h, size_t own, struct ks_checkpoint *c)
{
    struct array list[ARRAYS];

    KS_TRY(ks_arch_parse_f64(c->critic.text, "/critic", h->in, &c->critic.arch));
    c->critic.arch->loss.targets = h->targets;
    list_arrays(c, list);
    for (size_t k = 0; k < ARRAYS; k++)
        if (h->exists[k])
            KS_TRY(ks_alloc((list[k].of_minibatches ? own + 1 : 1) * list[k].size, sizeof(double),
                            list[k].at));
    return KS_OK;
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

    ks_team_broadcast(team, 0, size * sizeof *minibatch, minibatch);
    if (team->rank == 0 && mine)
        memmove(array + slot * size, minibatch, size * sizeof *array);
}

static ks_status receive(const struct ks_team *team, size_t own, struct ks_checkpoint **checkpoint)
{
    struct header header = {.in = 0};
    struct ks_checkpoint *c = *checkpoint;
    ks_status status = KS_OK;
    char *text = NULL;

    if (team->rank == 0)
        fill_header(c, &header);
    else
        status = ks_alloc(1, sizeof *c, checkpoint);
    KS_TRY(ks_team_agree(team, status));
    ks_team_broadcast(team, 0, sizeof header, &header);
    c = *checkpoint;
    text = c->critic.text;
    if (team->rank > 0)
        *c = header.numbers;
    KS_TRY(ks_team_broadcast_string(team, &text));
    c->critic.text = text;
    return ks_team_agree(team, team->rank == 0 ? KS_OK : allocate(&header, own, c));
}

/* Distributes the checkpoint that rank 0 has read; the other ranks have none yet. Every rank gets
 * the critics, Adam's second moment and its share of the minibatches. */
static ks_status distribute(const struct ks_team *team, size_t minibatches,
                            struct ks_checkpoint **checkpoint)
{
    struct share share = {.rank = (size_t)ks_team_rank(team), .ranks = (size_t)ks_team_size(team)};
    struct array list[ARRAYS];

    share.own = share.rank < minibatches ? (minibatches - share.rank - 1) / share.ranks + 1 : 0;
    KS_TRY(receive(team, share.own, checkpoint));
    list_arrays(*checkpoint, list);
    for (const struct array *a = list; a < list + ARRAYS; a++)
        if (*a->at && !a->of_minibatches)
            ks_team_broadcast(team, 0, a->size * sizeof(double), *a->at);
        else if (*a->at)
            for (size_t i = 0; i < minibatches; i++)
                send_minibatch(team, &share, i, a->size, *a->at);
    (*checkpoint)->minibatches = share.own;
    return KS_OK;
}

ks_status ks_pipeline_open(struct ks_pipeline *p)
{
    const struct ks_team *team = p->team;

    p->allocated_before = ks_alloc_total();
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
