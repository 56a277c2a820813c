/* The state consists of sections, each with a name, a size and a value. One function, pack_run,
 * lists them; measuring, writing, checking and reading all walk through that list. Reading finds a
 * section by its name, so a program with additional sections can read older resume points. */
#include "train/state.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "io/text.h"

enum direction { MEASURE, WRITE, FIND, CHECK, READ };

enum { NAME = 40 };
struct section {
    char name[NAME];
    uint64_t size; /* of the value, which follows */
};

struct pack {
    enum direction direction;
    const char *group; /* prefix of the names                                         */
    bool optional;     /* values from here on are missing in older resume points      */
    unsigned char *to; /* WRITE                                                       */
    size_t at;         /* MEASURE, WRITE: bytes so far                                */
    const struct ks_saved_state *from; /* CHECK, READ                                         */
    const char *wanted;                /* FIND, in: a name                                    */
    uint64_t size;                     /*       out: its size; UINT64_MAX: no such value      */
    char missing[NAME];                /* CHECK, out: a required section; "": all were found  */
};

/* Reads the header of the section at an offset; false if no complete section starts there. */
static bool section_at(const struct ks_saved_state *from, size_t at, struct section *s)
{
    if (at > from->size || from->size - at < sizeof *s)
        return false;
    memcpy(s, from->bytes + at, sizeof *s);
    return memchr(s->name, '\0', NAME) && s->size <= from->size - at - sizeof *s;
}

/* The value of the section with that name, or NULL. */
static const unsigned char *find(const struct ks_saved_state *from, const char *name)
{
    struct section s;

    for (size_t at = 0; section_at(from, at, &s); at += sizeof s + s.size)
        if (strcmp(s.name, name) == 0)
            return from->bytes + at + sizeof s;
    return NULL;
}

static void write_section(struct pack *p, const struct section *s, const void *data)
{
    memcpy(p->to + p->at, s, sizeof *s);
    memcpy(p->to + p->at + sizeof *s, data, s->size);
}

/* Does with one value of the list what p->direction says. */
static void pack_value(struct pack *p, const char *name, void *data, size_t size)
{
    struct section s = {.size = size};
    const unsigned char *value = NULL;
    int length = snprintf(s.name, NAME, "%s%s", p->group, name);

    assert(length < NAME);
    (void)length;
    if (p->direction == CHECK || p->direction == READ)
        value = find(p->from, s.name);
    if (p->direction == READ && value)
        memcpy(data, value, size);
    if (p->direction == CHECK && !value && !p->optional && !*p->missing)
        memcpy(p->missing, s.name, NAME);
    if (p->direction == FIND && strcmp(s.name, p->wanted) == 0)
        p->size = size;
    if (p->direction == WRITE)
        write_section(p, &s, data);
    if (p->direction == MEASURE || p->direction == WRITE)
        p->at += sizeof s + size;
}

static void reals(struct pack *p, const char *name, size_t n, real *x)
{
    pack_value(p, name, x, n * sizeof *x);
}

static void pack_trained(struct pack *p, const struct KS(arch) *arch, struct KS(trained) *t)
{
    reals(p, "w", arch->parameters, t->w);
    reals(p, "m", arch->parameters, t->m);
    reals(p, "v", arch->parameters, t->v);
    reals(p, "g", arch->parameters, t->g);
    if (t->target)
        reals(p, "target", arch->parameters, t->target);
    reals(p, "state", arch->states, t->state);
}

/* Gradients and the last minibatch belong to the state because an interrupted evaluation leaves a
 * row of progress.csv to be written after the resume, which measures them. */
static void pack_agent(struct pack *p, struct KS(agent) *a)
{
    char group[NAME];

    for (size_t e = 0; e < a->config.ensemble; e++) {
        snprintf(group, sizeof group, "critic %zu ", e);
        p->group = group;
        pack_trained(p, a->critic_arch, &a->critic[e]);
    }
    p->group = "actor ";
    pack_trained(p, a->actor_arch, &a->actor);
    p->group = "";
    reals(p, "input", a->config.batch * KS(agent_width)(a), a->input);
    reals(p, "s", a->config.batch * a->actor_arch->in, a->s);
    pack_value(p, "log_temperature", &a->log_temperature, sizeof a->log_temperature);
    pack_value(p, "temperature_m", &a->temperature_m, sizeof a->temperature_m);
    pack_value(p, "temperature_v", &a->temperature_v, sizeof a->temperature_v);
    pack_value(p, "critic_steps", &a->critic_adam.step, sizeof a->critic_adam.step);
    pack_value(p, "actor_steps", &a->actor_adam.step, sizeof a->actor_adam.step);
    pack_value(p, "updates", &a->updates, sizeof a->updates);
}

static void pack_sums(struct pack *p, struct ks_update *sum)
{
    _Static_assert(sizeof *sum == 6 * sizeof(double) + 8, "a new sum needs a section of its own");

    pack_value(p, "critic_loss", &sum->critic_loss, sizeof sum->critic_loss);
    pack_value(p, "q_mean", &sum->q_mean, sizeof sum->q_mean);
    pack_value(p, "clipped_fraction", &sum->clipped_fraction, sizeof sum->clipped_fraction);
    pack_value(p, "actor_loss", &sum->actor_loss, sizeof sum->actor_loss);
    pack_value(p, "temperature_loss", &sum->temperature_loss, sizeof sum->temperature_loss);
    pack_value(p, "entropy", &sum->entropy, sizeof sum->entropy);
}

/* metrics NULL: progress.csv is not open yet, and only sizes and names are needed. */
static void pack_metrics(struct pack *p, struct ks_metrics *metrics)
{
    struct ks_metrics none = {.path = NULL}, *m = metrics ? metrics : &none;

    p->group = "metrics ";
    pack_sums(p, &m->sum);
    pack_value(p, "updates", &m->updates, sizeof m->updates);
    pack_value(p, "actor_steps", &m->actor_steps, sizeof m->actor_steps);
    pack_value(p, "env_step", &m->env_step, sizeof m->env_step);
    pack_value(p, "step_seconds", &m->step_seconds, sizeof m->step_seconds);
    pack_value(p, "update_seconds", &m->update_seconds, sizeof m->update_seconds);
    p->group = "";
}

/* `resets` is the only random stream with a state: the positions in all others follow from the
 * counters of steps and updates. */
static void pack_progress(struct pack *p, struct ks_run *r)
{
    struct ks_learner *l = &r->learner;
    struct ks_evaluation *v = &r->evaluation;
    struct ks_player *player = &l->player;
    size_t observations = ks_env_observations(player->env), size = ks_env_state_size(player->env);

    pack_value(p, "returns", &l->returns, offsetof(struct ks_returns, largest));
    pack_value(p, "agent_steps", &l->agent_steps, sizeof l->agent_steps);
    pack_value(p, "env_step", &l->env_step, sizeof l->env_step);
    pack_value(p, "recorded", &r->recorded, sizeof r->recorded);
    pack_value(p, "resets", &l->resets, sizeof l->resets);
    pack_value(p, "return_mean", &v->return_mean, sizeof v->return_mean);
    pack_value(p, "episode_returns", v->episode_returns,
               r->plan.options->settings.eval_episodes * sizeof *v->episode_returns);
    pack_value(p, "started", r->started, sizeof r->started);
    pack_value(p, "evaluation_divergences", &v->player.divergences, sizeof v->player.divergences);
    pack_value(p, "observation", player->observation, observations * sizeof *player->observation);
    pack_value(p, "environment", r->env_state, size * sizeof *r->env_state);
}

static void pack_normalizer(struct pack *p, struct ks_normalizer *n)
{
    p->group = "normalizer ";
    pack_value(p, "count", &n->count, sizeof n->count);
    pack_value(p, "mean", n->mean, n->n * sizeof *n->mean);
    pack_value(p, "var", n->var, n->n * sizeof *n->var);
    p->group = "";
}

/* The step of its optimizer is the actor's. */
static void pack_optimist(struct pack *p, struct KS(optimist) *o)
{
    p->group = "optimist ";
    pack_trained(p, o->arch, &o->shift);
    pack_value(p, "optimism", &o->optimism, sizeof o->optimism);
    pack_value(p, "price", &o->price, sizeof o->price);
    p->group = "";
}

static void pack_encoder(struct pack *p, struct KS(encoder) *e)
{
    static const char *const groups[KS_PARTS] = {"encoder state ", "encoder action ",
                                                 "encoder pair ", "encoder model "};

    for (size_t k = 0; k < KS_PARTS; k++) {
        p->group = groups[k];
        pack_trained(p, e->arch[k], &e->part[k]);
    }
    p->group = "encoder ";
    pack_value(p, "steps", &e->adam.step, sizeof e->adam.step);
    p->group = "";
}

/* The tree is built from replay and priorities. */
static void pack_priorities(struct pack *p, struct ks_learner *l)
{
    struct ks_priorities *q = l->priorities;

    p->group = "replay ";
    pack_value(p, "priorities", q->priority, q->replay->capacity * sizeof *q->priority);
    pack_value(p, "largest", &q->largest, sizeof q->largest);
    pack_value(p, "terminates", &q->terminates, sizeof q->terminates);
    pack_value(p, "slots", l->slots, l->rows.n * sizeof *l->slots);
    if (p->direction == READ)
        q->built = false;
    p->group = "";
}

/* Add new values at the end, after `optional`: if a resume point lacks them, the run keeps the
 * values with which it starts. */
static void pack_run(struct pack *p, struct ks_run *r)
{
    struct ks_returns *returns = &r->learner.returns;

    p->group = "";
    pack_agent(p, r->learner.agent);
    pack_metrics(p, r->metrics);
    pack_progress(p, r);
    p->optional = true;
    pack_value(p, "largest_return", &returns->largest, sizeof returns->largest);
    pack_value(p, "largest_return_to_come", &returns->largest_return_to_go,
               sizeof returns->largest_return_to_go);
    if (r->learner.normalizer)
        pack_normalizer(p, r->learner.normalizer);
    if (r->learner.agent->optimist)
        pack_optimist(p, r->learner.agent->optimist);
    if (r->learner.agent->config.target_period > 0) {
        pack_value(p, "magnitude", &returns->magnitude, sizeof returns->magnitude);
        pack_value(p, "value_scale", &r->learner.agent->value_scale, sizeof(double));
    }
    if (r->learner.agent->encoder) {
        pack_encoder(p, r->learner.agent->encoder);
        pack_priorities(p, &r->learner);
    }
}

size_t ks_state_size(struct ks_run *r)
{
    struct pack p = {.direction = MEASURE};

    pack_run(&p, r);
    return p.at;
}

void ks_state_get(struct ks_run *r, unsigned char *bytes)
{
    struct pack p = {.direction = WRITE, .to = bytes};

    ks_env_state_get(r->learner.player.env, r->env_state);
    pack_run(&p, r);
}

/* Every section must be in the list, with the size that the list gives it. */
static ks_status check_sections(struct ks_run *r, const char *path,
                                const struct ks_saved_state *from)
{
    struct section s;
    size_t at = 0;

    for (; section_at(from, at, &s); at += sizeof s + s.size) {
        struct pack p = {.direction = FIND, .wanted = s.name, .size = UINT64_MAX};

        pack_run(&p, r);
        if (p.size == UINT64_MAX)
            return ks_fail(KS_USAGE,
                           "%s: unknown section '%s': written by another version of the program",
                           path, s.name);
        if (p.size != s.size)
            return ks_fail(KS_USAGE, "%s: %s: expected %zu bytes, found %zu", path, s.name,
                           (size_t)p.size, (size_t)s.size);
    }
    return at == from->size
               ? KS_OK
               : ks_fail(KS_USAGE, "%s: byte %zu of the state: expected a section, found none",
                         path, at);
}

ks_status ks_state_check(struct ks_run *r, const char *path, const struct ks_saved_state *from)
{
    struct pack p = {.direction = CHECK, .from = from};

    KS_TRY(check_sections(r, path, from));
    pack_run(&p, r);
    if (*p.missing)
        return ks_fail(KS_USAGE, "%s: the section '%s' is missing", path, p.missing);
    return KS_OK;
}

ks_status ks_state_set(struct ks_run *r, const struct ks_saved_state *from)
{
    struct pack p = {.direction = READ, .from = from};
    struct ks_player *player = &r->learner.player, *evaluator = &r->evaluation.player;
    size_t size = ks_env_state_size(player->env);

    pack_run(&p, r);
    ks_player_observe(player);
    KS_TRY(ks_env_state_set(player->env, size, r->env_state,
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

static ks_status check(struct ks_resume_file *f, size_t size)
{
    unsigned char digest[KS_SHA256_BYTES];
    struct ks_resume_header *h = &f->header;
    size_t content = size - KS_SHA256_BYTES;

    if (size < sizeof *h + KS_SHA256_BYTES)
        return ks_fail(KS_FORMAT, "%s: damaged: only %zu bytes", f->path, size);
    memcpy(h, f->bytes, sizeof *h);
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return ks_fail(KS_FORMAT, "%s: not a resume point", f->path);
    if (h->version != VERSION)
        return ks_fail(KS_FORMAT, "%s: expected version %d, found %llu", f->path, (int)VERSION,
                       (unsigned long long)h->version);
    KS_TRY(ks_sha256(1, &(struct ks_piece){f->bytes, content}, digest));
    if (memcmp(digest, f->bytes + content, sizeof digest) != 0 || h->description_size > content ||
        h->state_size > content || sizeof *h + h->description_size + h->state_size != content)
        return ks_fail(KS_FORMAT, "%s: damaged: checksum mismatch", f->path);
    return KS_OK;
}

ks_status ks_resume_file_read(struct ks_resume_file *f)
{
    ks_status status;
    size_t size;

    if (!ks_path_exists(f->path))
        return KS_OK;
    KS_TRY(ks_text_read(f->path, &f->bytes, &size));
    status = check(f, size);
    if (status == KS_OK)
        return KS_OK;
    free(f->bytes);
    f->bytes = NULL;
    return status;
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

struct ks_saved_state ks_resume_file_state(const struct ks_resume_file *f)
{
    const struct ks_resume_header *h = &f->header;
    size_t offset = ks_resume_file_state_offset(h->description_size);

    return (struct ks_saved_state){(unsigned char *)f->bytes + offset, h->state_size};
}

bool ks_resume_file_is_pending(const char *path)
{
    struct ks_resume_file file = {.path = (char *)path};
    bool recorded = true;

    if (ks_resume_file_read(&file) == KS_OK && file.bytes) {
        struct ks_saved_state state = ks_resume_file_state(&file);
        const unsigned char *value = find(&state, "recorded");

        if (value)
            memcpy(&recorded, value, sizeof recorded);
    }
    free(file.bytes);
    return !recorded;
}

json_t *ks_resume_file_description(const struct ks_resume_file *f)
{
    return json_loadb(f->bytes + sizeof f->header, f->header.description_size, 0, NULL);
}

void ks_resume_file_free(struct ks_resume_file *f)
{
    free(f->path);
    free(f->bytes);
}
