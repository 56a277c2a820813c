/* Records updates of an agent that sees images, in float64; pixels.py computes them with PyTorch,
 * and with the program of DrQ-v2's authors.
 *
 * Usage: pixels FILE.h5 FILE.system UPDATES
 *
 * The agent has the networks and settings of the system for cheetah-run-pixels, with small
 * minibatches, and starts shaken (shake.h). Replay holds episodes of random frames, from which
 * minibatches are drawn as in a run. FILE.h5 has replay, what was drawn, the noise, the agent
 * before and after updates 1, 10 and 100, the results of every update, and at the end a frozen
 * minibatch and two actions. */
#include <string.h>

#include "shake.h"
#include "update_record.h"

#include "agent/stream.h"
#include "train/architecture.h"
#include "train/learner.h"

enum { SEED = 12, BATCH = 16, ROWS = 48, CAPACITY = 40, RESULTS = 3 };

struct record {
    size_t updates;
    struct ks_h5 *h5;
    struct KS(agent) *agent;
    struct ks_agent_config config;
    size_t n_step;
    struct ks_replay *replay;
    struct ks_drawn drawn;
    struct ks_rows rows;
    /* [updates, batch, ...]: rows since the start of the run, shifts, noise. Owned, as all of this
     * structure */
    double *row, *shift, *next_noise, *noise, *std, *results;
};

static ks_status allocate(struct record *r)
{
    const size_t rows = r->updates * BATCH, seen = r->config.observations, n = r->config.actions;

    r->rows.n = BATCH;
    KS_TRY(ks_replay_new(CAPACITY, 0, n, &r->replay));
    KS_TRY(ks_alloc(BATCH, sizeof *r->drawn.slot, &r->drawn.slot));
    KS_TRY(ks_alloc(BATCH, sizeof *r->drawn.shift, &r->drawn.shift));
    KS_TRY(ks_alloc(BATCH * seen, sizeof(float), &r->rows.s));
    KS_TRY(ks_alloc(BATCH * seen, sizeof(float), &r->rows.next_s));
    KS_TRY(ks_alloc(BATCH * n, sizeof(float), &r->rows.a));
    KS_TRY(ks_alloc(BATCH, sizeof(float), &r->rows.mask));
    KS_TRY(ks_alloc(BATCH, sizeof(double), &r->rows.reward));
    KS_TRY(ks_alloc(rows, sizeof(double), &r->row));
    KS_TRY(ks_alloc(rows * KS_SHIFTS, sizeof(double), &r->shift));
    KS_TRY(ks_alloc(rows * n, sizeof(double), &r->next_noise));
    KS_TRY(ks_alloc(rows * n, sizeof(double), &r->noise));
    KS_TRY(ks_alloc(r->updates, sizeof(double), &r->std));
    return ks_alloc(r->updates * RESULTS, sizeof(double), &r->results);
}

/* Episodes of 4 to 11 transitions, of which every third one ends in a terminal state; replay
 * forgets the first rows. Writes all rows. */
static ks_status fill_replay(struct record *r)
{
    static const size_t length[] = {4, 9, 5, 11, 7};
    struct ks_rng rng = ks_rng_start(SEED, 6);
    double *frames = new_values(r->h5, ROWS * KS_FRAME),
           *a = new_values(r->h5, ROWS * r->config.actions);
    double *rest = new_values(r->h5, ROWS * 3);
    size_t step = 0, episode = 0;

    for (size_t i = 0; i < ROWS && rest; i++) {
        static uint8_t frame[KS_FRAME];
        float action[64];
        const bool ends = step == length[episode % 5];
        struct ks_transition t = {.a = action, .frame = frame, .mask = 1, .only_frame = ends};

        for (size_t k = 0; k < KS_FRAME; k++)
            frames[i * KS_FRAME + k] = frame[k] = (uint8_t)ks_rng_index(&rng, 256);
        for (size_t j = 0; j < r->config.actions; j++)
            a[i * r->config.actions + j] = action[j] = (float)ks_rng_uniform(&rng, -1, 1);
        t.last = !ends && step + 1 == length[episode % 5];
        t.mask = t.last && episode % 3 == 2 ? 0 : 1;
        t.reward = ends ? 0 : (float)ks_rng_uniform(&rng, 0, 2);
        rest[3 * i] = (double)t.reward, rest[3 * i + 1] = (double)t.mask, rest[3 * i + 2] = ends;
        KS_TRY(ks_replay_add(r->replay, &t));
        step = ends ? 0 : step + 1;
        episode += ends;
    }
    ks_h5_group(r->h5, "/replay");
    write_doubles(r->h5, "/replay/frame", ROWS, KS_FRAME, frames);
    write_doubles(r->h5, "/replay/a", ROWS, r->config.actions, a);
    write_doubles(r->h5, "/replay/rest", ROWS, 3, rest);
    free(frames), free(a), free(rest);
    return r->h5->status;
}

static ks_status draw(struct record *r, size_t u, struct ks_batch *batch)
{
    const struct ks_window window = {r->n_step, r->config.gamma, .drops_last = false};
    const size_t seen = r->config.observations, oldest = ROWS - CAPACITY;
    struct ks_rng rng = ks_stream(SEED, KS_REPLAY, u);

    KS_TRY(ks_replay_draw_frames(r->replay, &rng, r->n_step, KS_FRAMES - 1, BATCH, &r->drawn));
    for (size_t i = 0; i < BATCH; i++) {
        const size_t slot = r->drawn.slot[i];
        const uint8_t *shift = r->drawn.shift[i];
        const size_t last = ks_replay_take(r->replay, &window, slot, &r->rows, i);

        ks_replay_see(r->replay, slot, shift[0], shift[1], r->rows.s + i * seen);
        ks_replay_see(r->replay, (last + 1) % CAPACITY, shift[2], shift[3],
                      r->rows.next_s + i * seen);
        r->row[u * BATCH + i] = (double)((slot + CAPACITY - oldest % CAPACITY) % CAPACITY + oldest);
        for (size_t k = 0; k < KS_SHIFTS; k++)
            r->shift[(u * BATCH + i) * KS_SHIFTS + k] = shift[k];
    }
    *batch = (struct ks_batch){r->rows.s, r->rows.a, r->rows.next_s, r->rows.reward, r->rows.mask};
    return KS_OK;
}

static void write_agent(struct record *r)
{
    static const char *const names[KS_PIXELS_PARTS] = {"image", "trunk"};
    const struct KS(agent) *a = r->agent;
    const struct KS(pixels) *p = a->pixels;
    const char *group = new_group(r->h5, a);

    ks_h5_write_integer(r->h5, group, "image_steps", p->adam.step);
    write_trained(r->h5, text_of("%s/critic", group), a->config.ensemble,
                  a->critic_arch->parameters, a->critic);
    write_state(r->h5, text_of("%s/critic_state", group), a->config.ensemble,
                a->critic_arch->states, a->critic);
    write_targets(r->h5, text_of("%s/target", group), a->config.ensemble,
                  a->critic_arch->parameters, a->critic);
    write_trained(r->h5, text_of("%s/actor", group), 1, a->actor_arch->parameters, &a->actor);
    write_state(r->h5, text_of("%s/actor_state", group), 1, a->actor_arch->states, &a->actor);
    for (size_t k = 0; k < KS_PIXELS_PARTS; k++)
        write_trained(r->h5, text_of("%s/%s", group, names[k]), 1, p->arch[k]->parameters,
                      &p->part[k]);
    write_targets(r->h5, text_of("%s/trunk_target", group), 1, p->arch[KS_TRUNK]->parameters,
                  &p->part[KS_TRUNK]);
}

static ks_status update(struct record *r, size_t u)
{
    const size_t n = BATCH * r->config.actions;
    struct ks_update found = {.critic_loss = 0};
    double *row = r->results + u * RESULTS;
    struct ks_batch batch;

    KS_TRY(draw(r, u, &batch));
    r->agent->noise = r->std[u] = 1 - 0.9 * (double)u / (double)r->updates;
    KS_TRY(KS(agent_update)(r->agent, &batch, &found));
    for (size_t i = 0; i < n; i++) {
        r->next_noise[u * n + i] = r->agent->next.noise[i];
        r->noise[u * n + i] = r->agent->policy.noise[i];
    }
    row[0] = found.critic_loss, row[1] = found.q_mean, row[2] = found.actor_loss;
    return KS_OK;
}

/* The first minibatch again, as in a checkpoint, and an action with and one without noise. */
static ks_status write_frozen(struct record *r)
{
    struct KS(agent) *a = r->agent;
    const size_t rows = KS(agent_rows)(a), width = KS(agent_width)(a),
                 targets = a->critic_arch->loss.targets;
    double *values = new_values(r->h5, rows * width + BATCH * targets), noise[64] = {0.5, -1, 7};
    struct ks_rng rng = ks_rng_start(SEED, 5);
    struct ks_batch batch;
    float action[2 * 64];

    KS_TRY(draw(r, 0, &batch));
    KS_TRY(r->h5->status);
    ks_h5_group(r->h5, "/frozen");
    KS(agent_fill_checkpoint_batch)(a, &batch, &rng, values);
    write_doubles(r->h5, "/frozen/input", rows, width, values);
    KS(agent_fill_checkpoint_target)(a, &batch, values);
    write_doubles(r->h5, "/frozen/target", BATCH, targets, values);
    write_doubles(r->h5, "/frozen/noise", BATCH, r->config.actions, a->next.noise);
    KS(agent_act)(a, batch.s, noise, action);
    KS(agent_act)(a, batch.s, NULL, action + r->config.actions);
    write_doubles(r->h5, "/frozen/act_noise", 1, r->config.actions, noise);
    write_floats(r->h5, "/frozen/action",
                 &(struct ks_h5_shape){.n_dims = 2, .dims = {2, r->config.actions}}, action);
    free(values);
    return r->h5->status;
}

static void shake_pixels(struct KS(agent) *a)
{
    struct ks_rng rng = ks_rng_start(SHAKES, 4);

    for (size_t k = 0; k < KS_PIXELS_PARTS; k++) {
        const struct KS(arch) *arch = a->pixels->arch[k];
        struct KS(trained) *t = &a->pixels->part[k];

        shake(arch, &rng, t->w);
        shake_moments(arch->parameters, &rng, t->m, t->v);
        if (t->target)
            shake(arch, &rng, t->target);
    }
    a->pixels->adam.step = 21;
}

static ks_status make_agent(struct record *r, const char *path)
{
    struct ks_train_options options = {.env = "cheetah-run-pixels",
                                       .architecture = path,
                                       .out = ".",
                                       .seed = SEED,
                                       .steps = 20000};
    KS_OWNED_BY(ks_env_free) struct ks_env *env = NULL;
    struct ks_plan plan = {.folder = NULL};
    ks_status status = KS_OK;

    ks_settings_defaults(&options.settings);
    KS_GO(ks_system_settings(path, &options.settings));
    options.settings.batch = BATCH;
    r->n_step = options.settings.n_step;
    KS_GO(ks_env_new(options.env, NULL, &env));
    KS_GO(ks_plan_init(&options, env, &plan));
    r->config = ks_learner_config(&plan, env);
    KS_GO(KS(agent_new)(&r->config, &r->agent));
    shake_agent(r->agent);
    shake_pixels(r->agent);
done:
    ks_plan_free(&plan);
    return status;
}

static ks_status record(struct record *r, char **argv)
{
    const size_t n = BATCH * KS_SHIFTS;

    KS_TRY(make_agent(r, argv[2]));
    KS_TRY(allocate(r));
    KS_TRY(ks_h5_create(argv[1], "kappascope-updates", KS_H5_VERSION, &r->h5));
    ks_h5_write_integer(r->h5, "/", "actions", (int64_t)r->config.actions);
    ks_h5_write_integer(r->h5, "/", "batch", BATCH);
    KS_TRY(fill_replay(r));
    write_agent(r);
    for (size_t u = 1; u <= r->updates; u++) {
        KS_TRY(update(r, u - 1));
        if (u == 1 || u == 10 || u == 100)
            write_agent(r);
    }
    ks_h5_group(r->h5, "/batch");
    write_doubles(r->h5, "/batch/row", r->updates, BATCH, r->row);
    write_doubles(r->h5, "/batch/shift", r->updates, n, r->shift);
    write_doubles(r->h5, "/batch/next_noise", r->updates, BATCH * r->config.actions, r->next_noise);
    write_doubles(r->h5, "/batch/noise", r->updates, BATCH * r->config.actions, r->noise);
    write_doubles(r->h5, "/batch/std", r->updates, 1, r->std);
    write_doubles(r->h5, "/results", r->updates, RESULTS, r->results);
    KS_TRY(write_frozen(r));
    return ks_h5_commit(r->h5);
}

static void clear(struct record *r)
{
    void *block[] = {r->drawn.slot, r->drawn.shift, r->rows.s, r->rows.next_s, r->rows.a,
                     r->rows.mask,  r->rows.reward, r->row,    r->shift,       r->noise,
                     r->next_noise, r->std,         r->results};

    ks_h5_close(r->h5);
    KS(agent_free)(r->agent);
    ks_replay_free(r->replay);
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
}

int main(int argc, char **argv)
{
    struct record r = {.updates = argc == 4 ? strtoul(argv[3], NULL, 10) : 0};
    ks_status status;

    if (r.updates < 1 || r.updates > 999) {
        fprintf(stderr, "usage: pixels FILE.h5 FILE.system UPDATES (1 to 999)\n");
        return ks_exit_status(KS_USAGE);
    }
    status = record(&r, argv);
    if (status != KS_OK)
        fprintf(stderr, "pixels: %s\n", ks_error_text());
    clear(&r);
    return ks_exit_status(status);
}
