/* Records gradient updates of the twelve agents, or of systems; update_compare.py and systems.py
 * compute them with PyTorch.
 *
 * Usage: update FOLDER START UPDATES ARCHITECTURE|FILE.system... [KEY=VALUE...]
 *
 * Compiled twice, in float32 (the precision of training) and in float64. A training run on dog-trot
 * with the settings KEY=VALUE provides the minibatches, the last one of each agent step:
 * FOLDER/run.h5 holds its replay buffer, the minibatches and the noise of its updates. Then an
 * agent of each architecture makes these updates: FOLDER/ARCHITECTURE.h5 holds its state before and
 * after updates 1, 10 and 100 (counted from 1), and the results of every update. START is
 * "fresh" for an agent as at the start of a run, or "shaken" for one with everything moved away
 * from its initial value (biases of 0, targets equal to critics, ...), so that every term matters
 * from the first update. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shake.h"
#include "update_record.h"

#include "agent/stream.h"
#include "io/file.h"
#include "train/architecture.h"
#include "train/learner.h"
#include "train/run.h"

enum { SEED = 11, RESULTS = 6 };

struct record {
    const char *folder, *start;
    size_t updates;
    char **argument; /* architectures and settings, NULL-terminated */
    struct ks_train_options options;
    struct ks_run *run;
    struct ks_agent_config config;
    float *s, *a, *next_s, *mask; /* [updates, batch, ...]: minibatches; owned */
    double *reward, *results;     /* [updates, batch], [updates, RESULTS]; owned */
};

/* More than an episode's 500 agent steps: an episode ends during the random steps. */
static const char *const RANDOM_STEPS = "random_steps=620";

/* ---- Files ------------------------------------------------------------------------------- */

/* Writes the noise of all updates, drawn as in ks_noise_of_update of src/agent/actor.c. The agent
 * rounds it in float32. */
static void write_noise(const struct record *r, struct ks_h5 *h5, const char *object,
                        enum ks_purpose purpose)
{
    const size_t n = r->updates * r->config.batch * r->config.actions;
    struct ks_rng rng = ks_stream(SEED, purpose, 0);
    double *values = new_values(h5, n);

    for (size_t i = 0; i < n && values; i++)
        values[i] = (double)(real)ks_rng_normal(&rng);
    ks_h5_write(h5, object, KS_H5_F64,
                &(struct ks_h5_shape){.n_dims = 3,
                                      .dims = {r->updates, r->config.batch, r->config.actions}},
                values);
    free(values);
}

/* Copies one part of every transition, `width` floats, to `part` [count, width]. */
enum part { PART_S, PART_A, PART_NEXT_S, PART_REWARD, PART_MASK };

static void gather_part(const struct ks_replay *replay, enum part which, size_t width, float *part)
{
    for (size_t i = 0; i < replay->count; i++, part += width) {
        struct ks_transition t = ks_replay_get(replay, i);
        const float *const from[] = {t.s, t.a, t.next_s, &t.reward, &t.mask};

        memcpy(part, from[which], width * sizeof *part);
    }
}

static ks_status write_replay(const struct record *r, struct ks_h5 *h5)
{
    const struct ks_replay *replay = r->run->learner.replay;
    const struct {
        const char *object;
        size_t width; /* 0: one number per transition */
    } parts[] = {{"/replay/s", replay->observations},
                 {"/replay/a", replay->actions},
                 {"/replay/next_s", replay->observations},
                 {"/replay/reward", 0},
                 {"/replay/mask", 0}};
    float *part = NULL;

    KS_TRY(ks_alloc(replay->count * replay->observations, sizeof *part, &part));
    ks_h5_group(h5, "/replay");
    for (enum part k = PART_S; k <= PART_MASK; k++) {
        size_t width = parts[k].width;
        struct ks_h5_shape shape = {.n_dims = width > 0 ? 2 : 1, .dims = {replay->count, width}};

        gather_part(replay, k, width > 0 ? width : 1, part);
        write_floats(h5, parts[k].object, &shape, part);
    }
    free(part);
    return KS_OK;
}

static void write_batches(const struct record *r, struct ks_h5 *h5)
{
    const size_t u = r->updates, n = r->config.batch;
    const struct ks_h5_shape rows = {.n_dims = 2, .dims = {u, n}},
                             observations = {.n_dims = 3, .dims = {u, n, r->config.observations}},
                             actions = {.n_dims = 3, .dims = {u, n, r->config.actions}};

    ks_h5_group(h5, "/batch");
    write_floats(h5, "/batch/s", &observations, r->s);
    write_floats(h5, "/batch/a", &actions, r->a);
    write_floats(h5, "/batch/next_s", &observations, r->next_s);
    write_floats(h5, "/batch/mask", &rows, r->mask);
    ks_h5_write(h5, "/batch/reward", KS_H5_F64, &rows, r->reward);
    write_noise(r, h5, "/batch/next_noise", KS_NEXT_ACTION);
    write_noise(r, h5, "/batch/optimist_noise", KS_OPTIMIST_ACTION);
    write_noise(r, h5, "/batch/noise", KS_POLICY_ACTION);
}

static void write_sizes(const struct record *r, struct ks_h5 *h5)
{
    const struct ks_settings *s = &r->options.settings;
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {{"observations", r->config.observations},
                 {"actions", r->config.actions},
                 {"hidden", s->hidden},
                 {"depth", s->depth},
                 {"actor_hidden", s->actor_hidden},
                 {"actor_depth", s->actor_depth},
                 {"atoms", s->atoms},
                 {"env_steps", r->options.steps},
                 {"random_steps", s->random_steps},
                 {"utd", s->utd},
                 {"run_updates", r->run->metrics->updates},
                 {"single", sizeof(real) == sizeof(float)}};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ks_h5_write_integer(h5, "/", sizes[i].name, (int64_t)sizes[i].value);
    ks_h5_write_string(h5, "/", "start", r->start);
}

static ks_status create(const struct record *r, const char *name, struct ks_h5 **h5)
{
    return ks_h5_create(text_of("%s/%s.h5", r->folder, name), "kappascope-updates", KS_H5_VERSION,
                        h5);
}

static ks_status write_run(const struct record *r)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;

    KS_TRY(create(r, "run", &h5));
    write_sizes(r, h5);
    KS_GO(write_replay(r, h5));
    write_batches(r, h5);
    KS_GO(ks_h5_commit(h5));
done:
    ks_h5_close(h5);
    return status;
}

/* ---- The run ----------------------------------------------------------------------------- */

static ks_status set_up(struct record *r)
{
    size_t rows;
    ks_status status;
    char *path;

    KS_TRY(ks_run_new(&r->options, &r->run));
    KS_TRY(ks_plan_path(&r->run->plan, "progress.csv", &path));
    status = ks_metrics_new(path, 0, r->run->learner.agent, &r->run->metrics);
    free(path);
    KS_TRY(status);
    /* The run's agent is float32 in both programs, so only its first member may be read here. */
    r->config = *(const struct ks_agent_config *)(const void *)r->run->learner.agent;
    rows = r->updates * r->config.batch;
    KS_TRY(ks_alloc(rows * r->config.observations, sizeof *r->s, &r->s));
    KS_TRY(ks_alloc(rows * r->config.actions, sizeof *r->a, &r->a));
    KS_TRY(ks_alloc(rows * r->config.observations, sizeof *r->next_s, &r->next_s));
    KS_TRY(ks_alloc(rows, sizeof *r->mask, &r->mask));
    KS_TRY(ks_alloc(rows, sizeof *r->reward, &r->reward));
    return ks_alloc(r->updates * RESULTS, sizeof *r->results, &r->results);
}

/* Keeps the run's last minibatch. No task has terminal states, so some rows are marked as such. */
static void keep_batch(struct record *r, size_t update)
{
    const struct ks_rows *rows = &r->run->learner.rows;
    size_t n = rows->n, at = update * n;

    memcpy(r->s + at * r->config.observations, rows->s,
           n * r->config.observations * sizeof *rows->s);
    memcpy(r->next_s + at * r->config.observations, rows->next_s,
           n * r->config.observations * sizeof *rows->s);
    memcpy(r->a + at * r->config.actions, rows->a, n * r->config.actions * sizeof *rows->a);
    memcpy(r->reward + at, rows->reward, n * sizeof *rows->reward);
    for (size_t i = 0; i < n; i++)
        r->mask[at + i] = i % 7 == 3 ? 0 : rows->mask[i];
}

static ks_status play(struct record *r)
{
    size_t random_steps = r->options.settings.random_steps;

    KS_TRY(ks_learner_start_episode(&r->run->learner));
    for (size_t k = 0; k < random_steps + r->updates; k++) {
        KS_TRY(ks_learner_step(&r->run->learner, r->run->metrics));
        if (k >= random_steps)
            keep_batch(r, k - random_steps);
    }
    return write_run(r);
}

/* ---- The agents -------------------------------------------------------------------------- */

/* The results of the actor are NaN if the update did not step it. */
static void keep_results(const struct ks_update *u, double *row)
{
    bool stepped = u->actor_stepped;

    row[0] = u->critic_loss;
    row[1] = u->q_mean;
    row[2] = u->clipped_fraction;
    row[3] = stepped ? u->actor_loss : NAN;
    row[4] = stepped ? u->temperature_loss : NAN;
    row[5] = stepped ? u->entropy : NAN;
}

/* The state is written before and after updates 1, 10 and 100. */
static bool is_written(size_t updates)
{
    return updates == 1 || updates == 9 || updates == 10 || updates == 99 || updates == 100;
}

/* A number and Adam's moments of it: NAME, NAME_m, NAME_v. */
static void write_scalar(struct ks_h5 *h5, const char *group, const char *name, const double x[3])
{
    static const char *const suffixes[] = {"", "_m", "_v"};

    for (size_t k = 0; k < 3; k++)
        ks_h5_write(h5, text_of("%s/%s%s", group, name, suffixes[k]), KS_H5_F64,
                    &(struct ks_h5_shape){.n_dims = 2, .dims = {1, 1}}, &x[k]);
}

static void write_critics(struct ks_h5 *h5, const char *group, const struct KS(agent) *a)
{
    const size_t ensemble = a->config.ensemble;
    const real *target[MOST_CRITICS], *state[MOST_CRITICS];

    for (size_t e = 0; e < ensemble; e++)
        target[e] = a->critic[e].target, state[e] = a->critic[e].state;
    write_trained(h5, text_of("%s/critic", group), ensemble, a->critic_arch->parameters, a->critic);
    write_arrays(h5, text_of("%s/target", group), ensemble, a->critic_arch->parameters, target);
    write_arrays(h5, text_of("%s/critic_state", group), ensemble, a->critic_arch->states, state);
}

/* Writes the agent's current state to the group /update_NNN. */
static ks_status write_agent(struct ks_h5 *h5, const struct KS(agent) *a)
{
    const char *group = new_group(h5, a);
    const struct KS(optimist) *o = a->optimist;

    if (a->config.ensemble > MOST_CRITICS)
        return ks_fail(KS_USAGE, "expected at most %d critics, found %zu", MOST_CRITICS,
                       a->config.ensemble);
    write_critics(h5, group, a);
    write_trained(h5, text_of("%s/actor", group), 1, a->actor_arch->parameters, &a->actor);
    write_arrays(h5, text_of("%s/actor_state", group), 1, a->actor_arch->states,
                 (const real *[]){a->actor.state});
    if (o) {
        write_trained(h5, text_of("%s/optimist", group), 1, o->arch->parameters, &o->shift);
        write_scalar(h5, group, "optimism",
                     (double[]){o->optimism.x, o->optimism.m, o->optimism.v});
        write_scalar(h5, group, "price", (double[]){o->price.x, o->price.m, o->price.v});
    }
    write_scalar(h5, group, "log_temperature",
                 (double[]){a->log_temperature, a->temperature_m, a->temperature_v});
    return h5->status;
}

static ks_status update_and_write(const struct record *r, struct KS(agent) *a, struct ks_h5 *h5)
{
    size_t n = r->config.batch;

    KS_TRY(write_agent(h5, a));
    for (size_t u = 0; u < r->updates; u++) {
        size_t at = u * n;
        struct ks_batch batch = {r->s + at * r->config.observations, r->a + at * r->config.actions,
                                 r->next_s + at * r->config.observations, r->reward + at,
                                 r->mask + at};
        struct ks_update results = {.critic_loss = 0};

        KS_TRY(KS(agent_update)(a, &batch, &results));
        keep_results(&results, r->results + u * RESULTS);
        if (is_written(u + 1))
            KS_TRY(write_agent(h5, a));
    }
    ks_h5_write(h5, "/results", KS_H5_F64,
                &(struct ks_h5_shape){.n_dims = 2, .dims = {r->updates, RESULTS}}, r->results);
    return h5->status;
}

static ks_status new_agent(const struct record *r, const char *name, struct KS(agent) **agent)
{
    const struct ks_env *env = r->run->learner.player.env;
    struct ks_train_options options = r->options;
    struct ks_plan plan = {.folder = NULL};
    struct ks_agent_config config;
    ks_status status = KS_OK;
    char *system = NULL;

    options.architecture = name;
    if (!ks_architecture_find(name))
        KS_GO(ks_system_find(name, &system));
    if (system)
        KS_GO(ks_system_settings(system, &options.settings));
    options.settings.batch = r->config.batch; /* whatever the system says */
    KS_GO(ks_plan_init(&options, env, &plan));
    config = ks_learner_config(&plan, env);
    KS_GO(KS(agent_new)(&config, agent));
done:
    ks_plan_free(&plan);
    free(system);
    return status;
}

static ks_status record_agent(struct record *r, const char *name)
{
    ks_status status = KS_OK;
    struct KS(agent) *agent = NULL;
    struct ks_h5 *h5 = NULL;

    KS_GO(new_agent(r, name, &agent));
    if (strcmp(r->start, "shaken") == 0)
        shake_agent(agent);
    KS_GO(create(r, ks_path_base(name), &h5));
    KS_GO(update_and_write(r, agent, h5));
    KS_GO(ks_h5_commit(h5));
done:
    ks_h5_close(h5);
    KS(agent_free)(agent);
    return status;
}

/* ---- The command line -------------------------------------------------------------------- */

static bool is_setting(const char *argument)
{
    return strchr(argument, '=') != NULL;
}

static ks_status read_arguments(int argc, char **argv, struct record *r)
{
    struct ks_settings *settings = &r->options.settings;

    if (argc < 5)
        return ks_fail(KS_USAGE, "usage: update FOLDER START UPDATES ARCHITECTURE... "
                                 "[KEY=VALUE...]");
    r->folder = argv[1];
    r->start = argv[2];
    r->updates = strtoul(argv[3], NULL, 10);
    r->argument = argv + 4;
    if ((strcmp(r->start, "fresh") != 0 && strcmp(r->start, "shaken") != 0) || r->updates < 1 ||
        r->updates > 999)
        return ks_fail(KS_USAGE,
                       "expected 'fresh' or 'shaken' and 1 to 999 updates, found '%s' "
                       "and '%s'",
                       r->start, argv[3]);
    ks_settings_defaults(settings);
    KS_TRY(ks_settings_assign(settings, RANDOM_STEPS));
    for (char **a = r->argument; *a; a++)
        if (is_setting(*a))
            KS_TRY(ks_settings_assign(settings, *a));
    return ks_settings_check(settings);
}

static ks_status record(struct record *r)
{
    if (mkdir(r->folder, 0777) != 0 && errno != EEXIST)
        return ks_fail(KS_IO, "%s: %s", r->folder, strerror(errno));
    r->options.env = "dog-trot";
    r->options.architecture = "bn+wn+ce";
    r->options.out = r->folder;
    r->options.seed = SEED;
    r->options.steps = 2 * (r->options.settings.random_steps + r->updates);
    r->options.quiet = true;
    KS_TRY(set_up(r));
    KS_TRY(play(r));
    for (char **a = r->argument; *a; a++)
        if (!is_setting(*a))
            KS_TRY(record_agent(r, *a));
    return KS_OK;
}

int main(int argc, char **argv)
{
    struct record r = {.updates = 0};
    ks_status status = read_arguments(argc, argv, &r);

    if (status == KS_OK)
        status = record(&r);
    if (status != KS_OK)
        fprintf(stderr, "update: %s\n", ks_error_text());
    ks_run_free(r.run);
    free(r.s);
    free(r.a);
    free(r.next_s);
    free(r.mask);
    free(r.reward);
    free(r.results);
    return ks_exit_status(status);
}
