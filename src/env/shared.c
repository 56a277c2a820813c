/* Tasks of the user's own in C: loading, and episodes. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/process.h"
#include "env/domain.h"
#include "io/file.h"
#include "kappascope_env.h"

static const char ENDING[] = ".so";

struct ks_env_shared {
    struct ks_env_task task; /* what env->task points to */
    struct ks_env_domain domain;
    char *path, *name; /* the file's and the task's. Owned */
    void *library;     /* of dlopen */
    struct kappascope_env_description about;
    void (*reset)(void *state, uint64_t seed);
    int (*step)(void *state, const double *action, double *reward);
    void (*observe)(const void *state, double *observation);
    unsigned char *state; /* [about.state]; owned */
    double reward;        /* of the last step, and how the episode goes on after it */
    enum ks_env_end end;
};

/* The file of the task whose code runs now. If that code calls exit(), the program would end with
 * an exit status that is not its own. */
static const char *running;

static void refuse_exit(void)
{
    if (!running)
        return;
    fprintf(stderr, "%s: %s: the task's code has called exit()\n", program_invocation_short_name,
            running);
    _exit(1);
}

/* path: of the task whose code runs from now on; NULL: none does. */
static void run(const char *path)
{
    running = path;
    ks_stop_foreign(path != NULL);
}

/* --- an episode --- */

static ks_status open_shared(struct ks_env *env, const struct ks_env_options *options)
{
    (void)options; /* flags of MuJoCo */
    env->actions = env->shared->about.actions;
    env->steps = env->shared->about.steps;
    return KS_OK;
}

static void start(void *argument)
{
    struct ks_env_call *call = argument;
    struct ks_env_shared *s = call->env->shared;

    memset(s->state, 0, s->about.state);
    s->end = KS_ENV_GOES_ON;
    run(s->path);
    s->reset(s->state, call->rng ? ks_rng_bits(call->rng) : 0);
    run(NULL);
}

static void step(void *argument)
{
    struct ks_env_call *call = argument;
    struct ks_env_shared *s = call->env->shared;
    int end;

    run(s->path);
    end = s->step(s->state, call->action, &s->reward);
    run(NULL);
    switch (end) {
    case KAPPASCOPE_ENV_GOES_ON:
        s->end = KS_ENV_GOES_ON;
        break;
    case KAPPASCOPE_ENV_TRUNCATED:
        s->end = KS_ENV_TRUNCATED;
        break;
    case KAPPASCOPE_ENV_TERMINATED:
        s->end = KS_ENV_TERMINATED;
        break;
    default:
        call->status = ks_fail(
            KS_RUN, "%s: kappascope_env_step: expected 0, 1 or 2 to be returned, found %d", s->path,
            end);
    }
}

static double *observe(const struct ks_env *env, double *out)
{
    run(env->shared->path);
    env->shared->observe(env->shared->state, out);
    run(NULL);
    return out + env->task->observations;
}

static double reward(const struct ks_env *env)
{
    return env->shared->reward;
}

static bool terminal(const struct ks_env *env)
{
    return env->shared->end == KS_ENV_TERMINATED;
}

static bool truncated(const struct ks_env *env)
{
    return env->shared->end == KS_ENV_TRUNCATED;
}

/* --- the saved state: a number for each four bytes, as any eight bytes may be a NaN --- */

static double version(void)
{
    return KAPPASCOPE_ENV_VERSION;
}

static size_t state_size(const struct ks_env *env)
{
    return (env->shared->about.state + 3) / 4;
}

static void state_get(const struct ks_env *env, double *state)
{
    const struct ks_env_shared *s = env->shared;

    for (size_t i = 0; i < state_size(env); i++) {
        size_t left = s->about.state - 4 * i;
        uint32_t word = 0;
        memcpy(&word, s->state + 4 * i, left < 4 ? left : 4);
        state[i] = word;
    }
}

static void restore(void *argument)
{
    const struct ks_env_call *call = argument;
    struct ks_env_shared *s = call->env->shared;

    for (size_t i = 0; i < state_size(call->env); i++) {
        size_t left = s->about.state - 4 * i;
        uint32_t word = (uint32_t)call->state[i];
        memcpy(s->state + 4 * i, &word, left < 4 ? left : 4);
    }
}

static const struct ks_env_engine engine = {
    .open = open_shared,
    .start = start,
    .step = step,
    .restore = restore,
    .version = version,
    .state_size = state_size,
    .state_get = state_get,
};

static const struct ks_env_suite suite = {.engine = &engine, .action_repeat = 2};

static const struct ks_env_domain domain = {
    .suite = &suite,
    .observe = observe,
    .reward = reward,
    .terminal = terminal,
    .truncated = truncated,
};

/* --- the file --- */

/* Sets *function, whose type is any pointer to a function: POSIX lets dlsym return those. */
static ks_status find(const struct ks_env_shared *s, const char *name, void *function)
{
    void *symbol = dlsym(s->library, name);

    if (!symbol)
        return ks_fail(KS_FORMAT, "%s: no function '%s' (kappascope_env.h describes it)", s->path,
                       name);
    memcpy(function, &symbol, sizeof symbol);
    return KS_OK;
}

static ks_status check(const struct ks_env_shared *s, const char *what, size_t value, size_t most)
{
    return value >= 1 && value <= most
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: kappascope_env_describe: %s: expected 1 to %zu, found %zu",
                         s->path, what, most, value);
}

static ks_status describe(struct ks_env_shared *s)
{
    const struct kappascope_env_description *(*function)(void) = NULL;
    const struct kappascope_env_description *about;

    KS_TRY(find(s, "kappascope_env_describe", &function));
    run(s->path);
    about = function();
    run(NULL);
    if (!about)
        return ks_fail(KS_FORMAT, "%s: kappascope_env_describe: returned NULL", s->path);
    s->about = *about;
    if (s->about.version != KAPPASCOPE_ENV_VERSION)
        return ks_fail(KS_FORMAT,
                       "%s: expected version %d of the interface (kappascope_env.h), found %u",
                       s->path, KAPPASCOPE_ENV_VERSION, (unsigned)s->about.version);
    KS_TRY(check(s, "observations", s->about.observations, 1000000));
    KS_TRY(check(s, "actions", s->about.actions, 10000));
    KS_TRY(check(s, "steps", s->about.steps, 1000000000));
    return check(s, "state", s->about.state, (size_t)1 << 30);
}

static ks_status load(struct ks_env_shared *s, char **identity)
{
    char digest[KS_SHA256_TEXT];

    KS_TRY(ks_sha256_file(s->path, digest));
    KS_TRY(ks_print_string(identity, "SHA-256 of the shared object: %s\n", digest));
    if (atexit(refuse_exit) != 0)
        return ks_fail(KS_RUN, "%s: no function can be called at the program's end", s->path);
    run(s->path); /* its constructors */
    s->library = dlopen(s->path, RTLD_NOW | RTLD_LOCAL);
    run(NULL);
    if (!s->library)
        return ks_fail(KS_FORMAT, "%s: expected a shared object: %s", s->path, dlerror());
    KS_TRY(describe(s));
    KS_TRY(find(s, "kappascope_env_reset", &s->reset));
    KS_TRY(find(s, "kappascope_env_step", &s->step));
    KS_TRY(find(s, "kappascope_env_observe", &s->observe));
    return ks_alloc(s->about.state, 1, &s->state);
}

ks_status ks_env_shared_read(const char *path, struct ks_env *env)
{
    struct ks_env_shared *s = NULL;
    struct ks_env_about about;
    const char *base = ks_path_base(path);

    KS_TRY(ks_alloc(1, sizeof *s, &s));
    env->shared = s;
    /* Without a folder, dlopen would search the system's libraries. */
    KS_TRY(ks_print_string(&s->path, "%s%s", strchr(path, '/') ? "" : "./", path));
    KS_TRY(ks_print_string(&s->name, "%.*s", (int)ks_path_stem(base, ENDING), base));
    if (ks_env_about_task(s->name, &about))
        return ks_fail(KS_FORMAT, "%s: there is a task of this name already", path);
    KS_TRY(load(s, &env->identity));
    s->domain = domain;
    s->domain.model.file = s->path;
    s->task = (struct ks_env_task){
        .name = s->name, .domain = &s->domain, .observations = s->about.observations};
    env->task = &s->task;
    return KS_OK;
}

void ks_env_shared_free(struct ks_env_shared *s)
{
    if (!s)
        return;
    if (s->library)
        dlclose(s->library);
    free(s->path);
    free(s->name);
    free(s->state);
    free(s);
}
