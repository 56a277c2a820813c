/* The state consists of sections, each with a name, a size and a value. One function, list_run,
 * lists the values of a run; measuring, writing, checking and reading all walk through that list.
 * Reading finds a section by its name, so a program with additional sections can read older resume
 * points. */
#include "train/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 40, MOST = 512 /* values of a run with 64 critics */ };
struct section {
    char name[NAME];
    uint64_t size; /* of the value, which follows */
};

struct value {
    struct section section;
    void *data;
    bool optional; /* missing in older resume points */
};

struct values {
    size_t n;
    struct value value[MOST];
    const char *group; /* prefix of the names of further values */
    bool optional;     /* whether they are optional             */
};

static void add(struct values *v, const char *name, void *data, size_t size)
{
    struct value *new = &v->value[v->n++];
    int length = snprintf(new->section.name, NAME, "%s%s", v->group, name);

    assert(v->n <= MOST && length < NAME);
    (void)length;
    new->section.size = size;
    new->data = data;
    new->optional = v->optional;
}

#define ADD(values, name, field) add(values, name, &(field), sizeof(field))

static void add_trained(struct values *v, const char *group, const struct KS(arch) *arch,
                        struct KS(trained) *t)
{
    const size_t size = arch->parameters * sizeof *t->w;

    v->group = group;
    add(v, "w", t->w, size);
    add(v, "m", t->m, size);
    add(v, "v", t->v, size);
    add(v, "g", t->g, size);
    if (t->target)
        add(v, "target", t->target, size);
    add(v, "state", t->state, arch->states * sizeof *t->state);
}

/* Gradients and the last minibatch belong to the state because an interrupted evaluation leaves a
 * row of progress.csv to be written after the resume, which measures them. */
static void list_agent(struct values *v, struct KS(agent) *a)
{
    char group[NAME];

    for (size_t e = 0; e < a->config.ensemble; e++) {
        snprintf(group, sizeof group, "critic %zu ", e);
        add_trained(v, group, a->critic_arch, &a->critic[e]);
    }
    add_trained(v, "actor ", a->actor_arch, &a->actor);
    v->group = "";
    add(v, "input", a->input, a->config.batch * KS(agent_width)(a) * sizeof *a->input);
    add(v, "s", a->s, a->config.batch * a->actor_arch->in * sizeof *a->s);
    ADD(v, "log_temperature", a->log_temperature);
    ADD(v, "temperature_m", a->temperature_m);
    ADD(v, "temperature_v", a->temperature_v);
    ADD(v, "critic_steps", a->critic_adam.step);
    ADD(v, "actor_steps", a->actor_adam.step);
    ADD(v, "updates", a->updates);
}

static void list_metrics(struct values *v, struct ks_metrics *m)
{
    _Static_assert(sizeof m->sum == 6 * sizeof(double) + 8, "a new sum needs a section of its own");

    v->group = "metrics ";
    ADD(v, "critic_loss", m->sum.critic_loss);
    ADD(v, "q_mean", m->sum.q_mean);
    ADD(v, "clipped_fraction", m->sum.clipped_fraction);
    ADD(v, "actor_loss", m->sum.actor_loss);
    ADD(v, "temperature_loss", m->sum.temperature_loss);
    ADD(v, "entropy", m->sum.entropy);
    ADD(v, "updates", m->updates);
    ADD(v, "actor_steps", m->actor_steps);
    ADD(v, "env_step", m->env_step);
    ADD(v, "step_seconds", m->step_seconds);
    ADD(v, "update_seconds", m->update_seconds);
}

/* `resets` is the only random stream with a state: the positions in all others follow from the
 * counters of steps and updates. */
static void list_progress(struct values *v, struct ks_run *r)
{
    struct ks_learner *l = &r->learner;
    struct ks_evaluation *e = &r->evaluation;
    struct ks_player *player = &l->player;

    v->group = "";
    add(v, "returns", &l->returns, offsetof(struct ks_returns, largest));
    ADD(v, "agent_steps", l->agent_steps);
    ADD(v, "env_step", l->env_step);
    ADD(v, "recorded", r->recorded);
    ADD(v, "resets", l->resets);
    ADD(v, "return_mean", e->return_mean);
    add(v, "episode_returns", e->episode_returns,
        r->plan.options->settings.eval_episodes * sizeof *e->episode_returns);
    ADD(v, "started", r->started);
    ADD(v, "evaluation_divergences", e->player.divergences);
    add(v, "observation", player->observation,
        ks_env_observations(player->env) * sizeof *player->observation);
    add(v, "environment", r->env_state, ks_env_state_size(player->env) * sizeof *r->env_state);
}

static void list_normalizer(struct values *v, struct ks_normalizer *n)
{
    v->group = "normalizer ";
    ADD(v, "count", n->count);
    add(v, "mean", n->mean, n->n * sizeof *n->mean);
    add(v, "var", n->var, n->n * sizeof *n->var);
}

/* The step of its optimizer is the actor's. */
static void list_optimist(struct values *v, struct KS(optimist) *o)
{
    add_trained(v, "optimist ", o->arch, &o->shift);
    ADD(v, "optimism", o->optimism);
    ADD(v, "price", o->price);
}

/* The tree of the priorities is built from replay and priorities. */
static void list_encoder(struct values *v, struct ks_learner *l)
{
    static const char *const groups[KS_MODULES] = {"encoder state ", "encoder action ",
                                                   "encoder pair ", "encoder model "};
    struct KS(encoder) *e = l->agent->encoder;
    struct ks_priorities *q = l->priorities;

    for (size_t k = 0; k < KS_MODULES; k++)
        add_trained(v, groups[k], e->arch[k], &e->module[k]);
    v->group = "encoder ";
    ADD(v, "steps", e->adam.step);
    v->group = "replay ";
    add(v, "priorities", q->priority, q->replay->capacity * sizeof *q->priority);
    ADD(v, "largest", q->largest);
    ADD(v, "terminates", q->terminates);
    add(v, "slots", l->drawn.slot, l->rows.n * sizeof *l->drawn.slot);
}

static void list_pixels(struct values *v, struct ks_learner *l)
{
    struct KS(pixels) *p = l->agent->pixels;

    add_trained(v, "image ", p->arch[KS_IMAGE], &p->part[KS_IMAGE]);
    add_trained(v, "trunk ", p->arch[KS_TRUNK], &p->part[KS_TRUNK]);
    v->group = "pixels ";
    ADD(v, "steps", p->adam.step);
    ADD(v, "noise", l->agent->noise);
    add(v, "frames", l->player.frames, KS_FRAMES * KS_FRAME);
    add(v, "slots", l->drawn.slot, l->rows.n * sizeof *l->drawn.slot);
    add(v, "shifts", l->drawn.shift, l->rows.n * sizeof *l->drawn.shift);
}

/* Add new values at the end, after `optional`: if a resume point lacks them, the run keeps the
 * values with which it starts. Before progress.csv is open, only sizes and names are needed. */
static void list_run(struct ks_run *r, struct values *v)
{
    static struct ks_metrics not_open;
    struct ks_returns *returns = &r->learner.returns;
    struct KS(agent) *a = r->learner.agent;

    v->n = 0;
    v->optional = false;
    list_agent(v, a);
    list_metrics(v, r->metrics ? r->metrics : &not_open);
    list_progress(v, r);
    v->optional = true;
    ADD(v, "largest_return", returns->largest);
    ADD(v, "largest_return_to_come", returns->largest_return_to_go);
    if (r->learner.normalizer)
        list_normalizer(v, r->learner.normalizer);
    if (a->optimist)
        list_optimist(v, a->optimist);
    v->group = "";
    if (a->config.target_period > 0) {
        ADD(v, "magnitude", returns->magnitude);
        ADD(v, "value_scale", a->value_scale);
    }
    if (a->encoder)
        list_encoder(v, &r->learner);
    if (a->pixels)
        list_pixels(v, &r->learner);
}

size_t ks_state_size(struct ks_run *r)
{
    struct values v;
    size_t size = 0;

    list_run(r, &v);
    for (size_t i = 0; i < v.n; i++)
        size += sizeof(struct section) + v.value[i].section.size;
    return size;
}

void ks_state_get(struct ks_run *r, unsigned char *to)
{
    struct values v;

    ks_env_state_get(r->learner.player.env, r->env_state);
    list_run(r, &v);
    for (size_t i = 0; i < v.n; i++) {
        const struct section *s = &v.value[i].section;

        memcpy(to, s, sizeof *s);
        memcpy(to + sizeof *s, v.value[i].data, s->size);
        to += sizeof *s + s->size;
    }
}

static const char *state_of(const struct ks_resume_file *f)
{
    return f->bytes + ks_resume_file_state_offset(f->header.description_size);
}

/* Reads the header of the section at an offset; false if no complete section starts there. */
static bool section_at(const struct ks_resume_file *f, size_t at, struct section *s)
{
    const size_t size = f->header.state_size;

    if (at > size || size - at < sizeof *s)
        return false;
    memcpy(s, state_of(f) + at, sizeof *s);
    return memchr(s->name, '\0', NAME) && s->size <= size - at - sizeof *s;
}

/* The value of the section with that name, or NULL. */
static const char *find(const struct ks_resume_file *f, const char *name)
{
    struct section s;

    for (size_t at = 0; section_at(f, at, &s); at += sizeof s + s.size)
        if (strcmp(s.name, name) == 0)
            return state_of(f) + at + sizeof s;
    return NULL;
}

/* Every section must be in the list, with the size that the list gives it; and every value that is
 * not optional must have a section. */
ks_status ks_state_check(struct ks_run *r, const struct ks_resume_file *f)
{
    struct values v;
    struct section s;
    size_t at = 0;

    list_run(r, &v);
    for (; section_at(f, at, &s); at += sizeof s + s.size) {
        size_t i = 0;

        while (i < v.n && strcmp(v.value[i].section.name, s.name) != 0)
            i++;
        if (i == v.n)
            return ks_fail(KS_USAGE,
                           "%s: unknown section '%s': written by another version of the program",
                           f->path, s.name);
        if (v.value[i].section.size != s.size)
            return ks_fail(KS_USAGE, "%s: %s: expected %zu bytes, found %zu", f->path, s.name,
                           (size_t)v.value[i].section.size, (size_t)s.size);
    }
    if (at != f->header.state_size)
        return ks_fail(KS_USAGE, "%s: byte %zu of the state: expected a section, found none",
                       f->path, at);
    for (size_t i = 0; i < v.n; i++)
        if (!v.value[i].optional && !find(f, v.value[i].section.name))
            return ks_fail(KS_USAGE, "%s: the section '%s' is missing", f->path,
                           v.value[i].section.name);
    return KS_OK;
}

ks_status ks_state_set(struct ks_run *r, const struct ks_resume_file *f)
{
    struct ks_player *player = &r->learner.player, *evaluator = &r->evaluation.player;
    struct values v;

    list_run(r, &v);
    for (size_t i = 0; i < v.n; i++) {
        const char *found = find(f, v.value[i].section.name);

        if (found)
            memcpy(v.value[i].data, found, v.value[i].section.size);
    }
    if (r->learner.priorities)
        r->learner.priorities->built = false;
    ks_player_see(player);
    KS_TRY(ks_env_state_set(player->env, ks_env_state_size(player->env), r->env_state,
                            r->plan.options->resume == KS_RESUME_ANY));
    player->divergences = ks_env_divergences(player->env);
    ks_env_divergences_set(evaluator->env, evaluator->divergences);
    return KS_OK;
}

static const char MAGIC[24] = "kappascope-point";

static const uint64_t VERSION = 3;

size_t ks_resume_file_state_offset(size_t description_size)
{
    return sizeof(struct ks_resume_header) + description_size;
}

size_t ks_resume_file_size(size_t description_size, size_t state_size)
{
    return ks_resume_file_state_offset(description_size) + state_size + KS_SHA256_BYTES;
}

ks_status ks_resume_file_fill(struct ks_resume_header *h, const char *description,
                              unsigned char *bytes)
{
    size_t content = ks_resume_file_size(h->description_size, h->state_size) - KS_SHA256_BYTES;

    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->version = VERSION;
    memcpy(bytes, h, sizeof *h);
    memcpy(bytes + sizeof *h, description, h->description_size);
    return ks_sha256(1, &(struct ks_piece){bytes, content}, bytes + content);
}

static ks_status check(struct ks_resume_file *f, const char *bytes, size_t size)
{
    unsigned char digest[KS_SHA256_BYTES];
    struct ks_resume_header *h = &f->header;
    size_t content = size - KS_SHA256_BYTES;

    if (size < sizeof *h + KS_SHA256_BYTES)
        return ks_fail(KS_FORMAT, "%s: damaged: only %zu bytes", f->path, size);
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return ks_fail(KS_FORMAT, "%s: not a resume point", f->path);
    if (h->version != VERSION)
        return ks_fail(KS_FORMAT, "%s: expected version %d, found %llu", f->path, (int)VERSION,
                       (unsigned long long)h->version);
    KS_TRY(ks_sha256(1, &(struct ks_piece){bytes, content}, digest));
    if (memcmp(digest, bytes + content, sizeof digest) != 0 || h->description_size > content ||
        h->state_size > content || sizeof *h + h->description_size + h->state_size != content)
        return ks_fail(KS_FORMAT, "%s: damaged: checksum mismatch", f->path);
    return KS_OK;
}

ks_status ks_resume_file_read(struct ks_resume_file *f)
{
    KS_OWNED char *bytes = NULL;
    size_t size;

    if (!ks_path_exists(f->path))
        return KS_OK;
    KS_TRY(ks_text_read(f->path, &bytes, &size));
    KS_TRY(check(f, bytes, size));
    f->bytes = bytes, bytes = NULL;
    return KS_OK;
}

bool ks_resume_file_header(const char *path, struct ks_resume_header *h)
{
    FILE *file = fopen(path, "rb");
    bool found = file && fread(h, sizeof *h, 1, file) == 1 &&
                 memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->version == VERSION;

    if (file)
        fclose(file);
    return found;
}

bool ks_resume_file_is_pending(const char *path)
{
    struct ks_resume_file file = {.path = path};
    const char *value = NULL;
    bool recorded = true;

    if (ks_resume_file_read(&file) == KS_OK && file.bytes)
        value = find(&file, "recorded");
    if (value)
        memcpy(&recorded, value, sizeof recorded);
    free(file.bytes);
    return !recorded;
}
