/* Short runs in processes of their own, each forked from a run that was built once and never
 * stepped: starting one is cheap, and killing one leaves only its files. */
#ifndef KS_RESUMING_H
#define KS_RESUMING_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include <jansson.h>

#include "disk.h"
#include "scratch.h"

#include "core/blas.h"
#include "core/memory.h"
#include "env/domain.h"
#include "train/loop.h"

/* 30 steps, 8 of them random, in episodes of 7. Replay holds the last 9 transitions; the replay log
 * has 3 per segment; targets span up to 3. Checkpoints at 8, 15 and 30, evaluations at 0, 15 and
 * 30. */
enum { STEPS = 30, EPISODE = 7, KILLED = -1, TERMINATED = -2 };

/* A run that is built and never stepped: each process forks from it. */
struct unstarted_run {
    struct ks_train_options options;
    struct ks_run *run;
};

/* What runs have besides: another task and architecture, or NULL; settings, ended by NULL. */
static struct more {
    const char *env, *architecture;
    const char *const *settings;
} more;

static inline void build_run(struct unstarted_run *u, size_t threads)
{
    static const char *const sizes[] = {"hidden=6", "depth=1", "actor_hidden=5", "actor_depth=1",
                                        "atoms=5"};
    static const char *const settings[] = {"batch=4",
                                           "random_steps=8",
                                           "replay=9",
                                           "n_step=3",
                                           "checkpoints=2",
                                           "evaluations=2",
                                           "utd=1",
                                           "eval_episodes=1",
                                           "policy_delay=2",
                                           "critic_lr=0.01",
                                           "action_repeat=1",
                                           "actor_lr=0.01",
                                           "analysis_minibatches=2"};

    u->options = (struct ks_train_options){.env = more.env ? more.env : "dog-trot",
                                           .architecture = more.architecture ? more.architecture
                                                                             : "bn+wn+ce",
                                           .out = scratch_folder,
                                           .seed = 7,
                                           .steps = STEPS,
                                           .save_every = -1,
                                           .quiet = true};
    ks_settings_start(&u->options.settings);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !more.architecture; i++)
        assert_ok(ks_settings_assign(&u->options.settings, sizes[i]));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(ks_settings_assign(&u->options.settings, settings[i]));
    u->options.settings.threads = threads;
    for (size_t i = 0; more.settings && more.settings[i]; i++)
        assert_ok(ks_settings_assign(&u->options.settings, more.settings[i]));
    assert_ok(ks_run_new(&u->options, &u->run));
    u->run->learner.player.env->steps = u->run->evaluation.player.env->steps = EPISODE;
}

/* How a process is started. */
struct launch {
    enum ks_resume resume;
    double save_every; /* 0: the default */
    size_t stop_at;    /* 0: nowhere     */
    int fault;
    size_t fault_at;
};

/* In the child: applies `launch` to the run. */
static inline void prepare(struct unstarted_run *u, const char *folder, const struct launch *launch)
{
    struct ks_plan *p = &u->run->plan;

    free(p->folder);
    assert_ok(ks_copy_string(scratch(folder), &p->folder));
    u->options.resume = launch->resume;
    u->options.save_every = launch->save_every > 0 ? launch->save_every : -1;
    if (launch->stop_at > 0) {
        p->end = launch->stop_at;
        p->stops_early = true;
    }
    fault = launch->fault;
    fault_at = launch->fault_at;
    operations = 0;
}

/* The file with the messages of a folder's process. */
static inline const char *said_file(const char *folder)
{
    static char name[100];

    snprintf(name, sizeof name, "%s.said", folder);
    return scratch(name);
}

/* Starts a process that trains in `folder`. */
static inline pid_t start_run(struct unstarted_run *u, const char *folder,
                              const struct launch *launch)
{
    pid_t child = fork();
    ks_status status;

    assert_true(child >= 0);
    if (child > 0)
        return child;
    if (!freopen(said_file(folder), "w", stderr))
        _exit(99);
    prepare(u, folder, launch);
    status = ks_run_train(u->run);
    if (status != KS_OK)
        fprintf(stderr, "%s\n", ks_error_text());
    fflush(stderr);
    _exit(ks_exit_status(status));
}

/* Waits for the process: its exit status, or KILLED or TERMINATED. */
static inline int await_run(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return KILLED;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
        return TERMINATED;
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline int run(struct unstarted_run *u, const char *folder, struct launch launch)
{
    return await_run(start_run(u, folder, &launch));
}

static inline const char *said(const char *folder)
{
    static char text[4096];
    FILE *file = fopen(said_file(folder), "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static inline void assert_said(const char *folder, const char *words)
{
    if (!strstr(said(folder), words))
        fail_msg("'%s' does not contain '%s'", said(folder), words);
}

static inline void assert_runs(struct unstarted_run *u, const char *folder, struct launch launch)
{
    int result = run(u, folder, launch);

    if (result != 0)
        fail_msg("%s: exit status %d: %s", folder, result, said(folder));
}

static inline int shell(const char *command, const char *a, const char *b)
{
    char line[1024];

    snprintf(line, sizeof line, "cd '%s' && %s '%s' '%s'", scratch_folder, command, a, b);
    return system(line);
}

static inline void remove_folder(const char *folder)
{
    assert_int_equal(shell("rm -rf --", folder, said_file(folder)), 0);
}

/* run.json without the clock's times and the command line. */
static inline json_t *described(const char *folder)
{
    static const char *const free_keys[] = {"start", "resumed", "end", "command"};
    char name[100];
    json_t *object;

    snprintf(name, sizeof name, "%s/run.json", folder);
    object = json_load_file(scratch(name), 0, NULL);
    assert_non_null(object);
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++)
        json_object_del(object, free_keys[i]);
    return object;
}

static inline void assert_state(const char *folder, const char *state)
{
    json_t *object = described(folder);

    assert_string_equal(json_string_value(json_object_get(object, "state")), state);
    json_decref(object);
}

static inline void assert_same_file(const char *a, const char *b)
{
    size_t sizes[2];
    unsigned char *bytes[2] = {read_bytes(scratch(a), &sizes[0]),
                               read_bytes(scratch(b), &sizes[1])};

    if (sizes[0] != sizes[1] || memcmp(bytes[0], bytes[1], sizes[0]) != 0)
        fail_msg("%s and %s differ", a, b);
    free(bytes[0]);
    free(bytes[1]);
}

/* The number of files in the folder, hidden ones included. */
static inline size_t count_files(const char *folder)
{
    DIR *list = opendir(scratch(folder));
    size_t n = 0;

    assert_non_null(list);
    while (readdir(list))
        n++;
    closedir(list);
    return n - 2;
}

/* Two finished runs have the same files; checkpoints and progress.csv are equal byte for byte. */
static inline void assert_same_run(const char *folder, const char *reference)
{
    static const char *const files[] = {"progress.csv", "step_000000008.h5", "step_000000015.h5",
                                        "step_000000030.h5"};
    enum { FILES = sizeof files / sizeof *files };
    json_t *found = described(folder), *expected = described(reference);

    for (size_t i = 0; i < FILES; i++) {
        char a[100], b[100];

        snprintf(a, sizeof a, "%s/%s", folder, files[i]);
        snprintf(b, sizeof b, "%s/%s", reference, files[i]);
        assert_same_file(a, b);
    }
    assert_int_equal(count_files(folder), FILES + 1);
    if (!json_equal(found, expected))
        fail_msg("%s/run.json: other than that of %s", folder, reference);
    json_decref(found);
    json_decref(expected);
}

#endif
