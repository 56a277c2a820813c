/* Records updates of MR.Q's agent in float64; mrq.py computes them with PyTorch.
 *
 * Usage: mrq FILE.h5 FILE.system UPDATES
 *
 * The agent has the networks and settings of the system for dog-trot, with small minibatches, and
 * starts shaken (shake.h). Minibatches and windows are random numbers, so that every term matters:
 * windows that end at a terminal state at every step, rewards of all sizes. FILE.h5 holds them, the
 * noise, the agent before and after updates 1, 10 and 100, the results of every update, and at the
 * end a frozen minibatch and an action. */
#include <string.h>

#include "shake.h"
#include "update_record.h"

#include "agent/stream.h"
#include "train/architecture.h"
#include "train/run.h"

enum { SEED = 11, BATCH = 32, PERIOD = 10, RESULTS = 4 };

struct record {
    size_t updates;
    struct ks_h5 *h5;
    struct KS(agent) *agent;
    struct ks_agent_config config;
    float *s, *a, *next_s, *mask;                     /* [updates, batch, ...]; owned         */
    double *reward;                                   /* as these                             */
    float *states, *actions, *rewards, *masks, *kept; /* [updates, steps (+ 1), batch, ...]   */
    double *noise, *scale, *results, *encoder_loss, *values; /* owned, as all above */
};

/* ---- Random minibatches ------------------------------------------------------------------- */

static void fill_normal(struct ks_rng *rng, size_t n, double size, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(size * ks_rng_normal(rng));
}

static void fill_uniform(struct ks_rng *rng, size_t n, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)ks_rng_uniform(rng, -1, 1);
}

/* Windows: every seventh row ends, each at another step. */
static void fill_windows(struct record *r, struct ks_rng *rng)
{
    const size_t steps = r->config.horizon, rows = r->updates * steps * BATCH;

    fill_normal(rng, (rows + r->updates * BATCH) * r->config.observations, 1, r->states);
    fill_uniform(rng, rows * r->config.actions, r->actions);
    for (size_t i = 0; i < rows; i++) {
        const size_t b = i % BATCH, step = i / BATCH % steps;
        const size_t end = b % 7 == 3 ? b / 7 % steps : steps;

        r->rewards[i] = (float)(ks_rng_normal(rng) * pow(10, (double)(b % 5) - 2));
        r->masks[i] = step != end;
        r->kept[i] = step <= end;
    }
}

static void fill_batches(struct record *r, struct ks_rng *rng)
{
    const size_t rows = r->updates * BATCH;

    fill_normal(rng, rows * r->config.observations, 1, r->s);
    fill_normal(rng, rows * r->config.observations, 1, r->next_s);
    fill_uniform(rng, rows * r->config.actions, r->a);
    for (size_t i = 0; i < rows; i++) {
        r->reward[i] = 3 * ks_rng_normal(rng);
        r->mask[i] = i % 7 == 3 ? 0 : 0.9801F;
    }
    for (size_t u = 0; u < r->updates; u++)
        r->scale[u] = 0.5 + 0.2 * (double)(u / PERIOD % 5);
}

static ks_status allocate(struct record *r)
{
    const size_t rows = r->updates * BATCH, windows = rows * r->config.horizon;

    KS_TRY(ks_alloc(rows * r->config.observations, sizeof(float), &r->s));
    KS_TRY(ks_alloc(rows * r->config.actions, sizeof(float), &r->a));
    KS_TRY(ks_alloc(rows * r->config.observations, sizeof(float), &r->next_s));
    KS_TRY(ks_alloc(rows, sizeof(float), &r->mask));
    KS_TRY(ks_alloc(rows, sizeof(double), &r->reward));
    KS_TRY(ks_alloc((windows + rows) * r->config.observations, sizeof(float), &r->states));
    KS_TRY(ks_alloc(windows * r->config.actions, sizeof(float), &r->actions));
    KS_TRY(ks_alloc(windows, sizeof(float), &r->rewards));
    KS_TRY(ks_alloc(windows, sizeof(float), &r->masks));
    KS_TRY(ks_alloc(windows, sizeof(float), &r->kept));
    KS_TRY(ks_alloc(rows * r->config.actions, sizeof(double), &r->noise));
    KS_TRY(ks_alloc(r->updates, sizeof(double), &r->scale));
    KS_TRY(ks_alloc(r->updates, sizeof(double), &r->encoder_loss));
    KS_TRY(ks_alloc(r->updates * RESULTS, sizeof(double), &r->results));
    return ks_alloc((windows + rows) * r->config.observations, sizeof(double), &r->values);
}

/* ---- The file ----------------------------------------------------------------------------- */

static void write_rows(struct record *r, const char *object, size_t rows, size_t columns,
                       const float *x)
{
    write_floats(r->h5, object, &(struct ks_h5_shape){.n_dims = 2, .dims = {rows, columns}}, x);
}

static void write_minibatches(struct record *r)
{
    const size_t u = r->updates, n = BATCH, obs = r->config.observations, act = r->config.actions;
    const size_t steps = r->config.horizon;

    ks_h5_group(r->h5, "/batch");
    ks_h5_group(r->h5, "/windows");
    write_rows(r, "/batch/s", u, n * obs, r->s);
    write_rows(r, "/batch/a", u, n * act, r->a);
    write_rows(r, "/batch/next_s", u, n * obs, r->next_s);
    write_rows(r, "/batch/mask", u, n, r->mask);
    write_doubles(r->h5, "/batch/reward", u, n, r->reward);
    write_doubles(r->h5, "/batch/noise", u, n * act, r->noise);
    write_doubles(r->h5, "/batch/scale", u, 1, r->scale);
    write_rows(r, "/windows/s", u, (steps + 1) * n * obs, r->states);
    write_rows(r, "/windows/a", u, steps * n * act, r->actions);
    write_rows(r, "/windows/reward", u, steps * n, r->rewards);
    write_rows(r, "/windows/mask", u, steps * n, r->masks);
}

static void write_network(struct record *r, const char *object, const struct KS(arch) *arch,
                          const struct KS(trained) *t)
{
    write_trained(r->h5, object, 1, arch->parameters, t);
    if (t->target)
        write_targets(r->h5, text_of("%s_target", object), 1, arch->parameters, t);
}

static void write_agent(struct record *r)
{
    static const char *const modules[KS_MODULES] = {"state", "action", "pair", "model"};
    const struct KS(agent) *a = r->agent;
    const char *group = new_group(r->h5, a);

    ks_h5_write_integer(r->h5, group, "encoder_steps", a->encoder->adam.step);
    write_network(r, text_of("%s/critic0", group), a->critic_arch, &a->critic[0]);
    write_network(r, text_of("%s/critic1", group), a->critic_arch, &a->critic[1]);
    write_network(r, text_of("%s/actor", group), a->actor_arch, &a->actor);
    for (size_t k = 0; k < KS_MODULES; k++)
        write_network(r, text_of("%s/%s", group, modules[k]), a->encoder->arch[k],
                      &a->encoder->module[k]);
}

/* ---- The updates -------------------------------------------------------------------------- */

static void shake_encoder(struct KS(agent) *a)
{
    struct ks_rng rng = ks_rng_start(SHAKES, 4);

    shake(a->actor_arch, &rng, a->actor.target);
    for (size_t k = 0; k < KS_MODULES; k++) {
        struct KS(trained) *t = &a->encoder->module[k];

        shake(a->encoder->arch[k], &rng, t->w);
        shake_moments(a->encoder->arch[k]->parameters, &rng, t->m, t->v);
    }
    a->encoder->adam.step = 21;
}

/* The encoder is trained before updates 0, PERIOD, ..., for PERIOD steps; a terminal state is known
 * from the second time on. */
static ks_status refresh(struct record *r, size_t update)
{
    const size_t steps = r->config.horizon, n = steps * BATCH;

    KS(agent_refresh)(r->agent, r->scale[update]);
    for (size_t k = update; k < update + PERIOD && k < r->updates; k++) {
        const struct ks_windows windows = {steps,
                                           BATCH,
                                           r->states + k * (n + BATCH) * r->config.observations,
                                           r->actions + k * n * r->config.actions,
                                           r->rewards + k * n,
                                           r->masks + k * n,
                                           r->kept + k * n,
                                           .terminates = update > 0};

        r->encoder_loss[k] = KS(encoder_gradient)(r->agent, &windows);
        KS_TRY(KS(encoder_step)(r->agent, &windows));
    }
    return KS_OK;
}

static ks_status update(struct record *r, size_t u)
{
    const size_t at = u * BATCH, n = BATCH * r->config.actions;
    const struct ks_batch batch = {
        r->s + at * r->config.observations, r->a + at * r->config.actions,
        r->next_s + at * r->config.observations, r->reward + at, r->mask + at};
    struct ks_update found = {.critic_loss = 0};
    double *row = r->results + u * RESULTS;

    if (u % PERIOD == 0)
        KS_TRY(refresh(r, u));
    KS_TRY(KS(agent_update)(r->agent, &batch, &found));
    for (size_t i = 0; i < n; i++)
        r->noise[u * n + i] = r->agent->next.noise[i];
    row[0] = found.critic_loss;
    row[1] = found.q_mean;
    row[2] = found.actor_loss;
    row[3] = 0;
    for (size_t i = 0; i < BATCH; i++)
        row[3] += r->agent->deviation[i] / BATCH;
    return KS_OK;
}

/* A frozen minibatch, the first one again, and an action with noise. */
static void write_frozen(struct record *r)
{
    const struct ks_batch batch = {r->s, r->a, r->next_s, r->reward, r->mask};
    struct KS(agent) *a = r->agent;
    struct ks_rng rng = ks_rng_start(SEED, 5);
    double noise[64] = {0.5, -1, 7};
    float action[64];

    ks_h5_group(r->h5, "/frozen");
    KS(agent_fill_checkpoint_batch)(a, &batch, &rng, r->values);
    write_doubles(r->h5, "/frozen/input", BATCH, KS(agent_width)(a), r->values);
    KS(agent_fill_checkpoint_target)(a, &batch, r->values);
    write_doubles(r->h5, "/frozen/target", BATCH, 1, r->values);
    write_doubles(r->h5, "/frozen/noise", BATCH, r->config.actions, a->next.noise);
    KS(agent_act)(a, r->s, noise, action);
    write_doubles(r->h5, "/frozen/act_noise", 1, r->config.actions, noise);
    write_rows(r, "/frozen/action", 1, r->config.actions, action);
}

static ks_status make_agent(struct record *r, const char *path)
{
    struct ks_train_options options = {
        .env = "dog-trot", .architecture = path, .out = ".", .seed = SEED, .steps = 2000};
    struct ks_player player = {.task = NULL};
    struct ks_plan plan = {.folder = NULL};
    ks_status status = KS_OK;

    ks_settings_defaults(&options.settings);
    KS_GO(ks_system_settings(path, &options.settings));
    options.settings.batch = BATCH;
    KS_GO(ks_player_init(&options, "", &player));
    KS_GO(ks_plan_init(&options, player.env, &plan));
    r->config = ks_learner_config(&plan, player.env);
    KS_GO(KS(agent_new)(&r->config, &r->agent));
    shake_agent(r->agent);
    shake_encoder(r->agent);
done:
    ks_plan_free(&plan);
    ks_player_free(&player);
    return status;
}

static ks_status record(struct record *r, char **argv)
{
    struct ks_rng rng = ks_rng_start(SEED, 6);

    KS_TRY(make_agent(r, argv[2]));
    KS_TRY(allocate(r));
    fill_batches(r, &rng);
    fill_windows(r, &rng);
    KS_TRY(ks_h5_create(argv[1], "kappascope-updates", KS_H5_VERSION, &r->h5));
    ks_h5_write_integer(r->h5, "/", "observations", (int64_t)r->config.observations);
    ks_h5_write_integer(r->h5, "/", "actions", (int64_t)r->config.actions);
    ks_h5_write_integer(r->h5, "/", "batch", BATCH);
    ks_h5_write_integer(r->h5, "/", "period", PERIOD);
    write_agent(r);
    for (size_t u = 1; u <= r->updates; u++) {
        KS_TRY(update(r, u - 1));
        if (u == 1 || u == 10 || u == 100)
            write_agent(r);
    }
    write_minibatches(r);
    write_frozen(r);
    write_doubles(r->h5, "/results", r->updates, RESULTS, r->results);
    write_doubles(r->h5, "/encoder_loss", r->updates, 1, r->encoder_loss);
    return ks_h5_commit(r->h5);
}

static void clear(struct record *r)
{
    void *block[] = {r->s,      r->a,       r->next_s,  r->mask,         r->reward,
                     r->states, r->actions, r->rewards, r->masks,        r->kept,
                     r->noise,  r->scale,   r->results, r->encoder_loss, r->values};

    ks_h5_close(r->h5);
    KS(agent_free)(r->agent);
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
}

int main(int argc, char **argv)
{
    struct record r = {.updates = argc == 4 ? strtoul(argv[3], NULL, 10) : 0};
    ks_status status;

    if (r.updates < 1 || r.updates > 999) {
        fprintf(stderr, "usage: mrq FILE.h5 FILE.system UPDATES (1 to 999)\n");
        return ks_exit_status(KS_USAGE);
    }
    status = record(&r, argv);
    if (status != KS_OK)
        fprintf(stderr, "mrq: %s\n", ks_error_text());
    clear(&r);
    return ks_exit_status(status);
}
