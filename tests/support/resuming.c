#include "resuming.h"

#include "runs.h"

struct more more;

void build_run(struct unstarted_run *u, size_t threads)
{
    u->options = (struct ks_train_options){.env = more.env ? more.env : "walker-walk",
                                           .architecture = more.architecture ? more.architecture
                                                                             : "bn+wn+ce",
                                           .out = scratch_folder,
                                           .seed = 7,
                                           .steps = STEPS,
                                           .save_every = -1,
                                           .quiet = true};
    ks_settings_defaults(&u->options.settings);
    if (!more.architecture)
        assign_settings(&u->options.settings,
                        "hidden=6 depth=1 actor_hidden=5 actor_depth=1 atoms=5");
    assign_settings(&u->options.settings,
                    "batch=4 random_steps=8 replay=9 n_step=3 checkpoints=2 evaluations=2 utd=1 "
                    "eval_episodes=1 policy_delay=2 critic_lr=0.01 action_repeat=1 actor_lr=0.01 "
                    "analysis_minibatches=2");
    u->options.settings.threads = threads;
    assign_settings(&u->options.settings, more.settings ? more.settings : "");
    assert_ok(ks_run_new(&u->options, &u->run));
    u->run->learner.player.env->steps = u->run->evaluation.player.env->steps = EPISODE;
}

/* In the child: applies `launch` to the run. */
static void prepare(struct unstarted_run *u, const char *folder, const struct launch *launch)
{
    struct ks_plan *p = &u->run->plan;
    static char *path; /* as long as the run */

    assert_ok(ks_copy_string(scratch(folder), &path));
    p->folder = path;
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
static const char *process_output(const char *folder)
{
    return text_of("%s.said", folder);
}

pid_t start_run(struct unstarted_run *u, const char *folder, const struct launch *launch)
{
    pid_t child = fork();
    ks_status status;

    assert_true(child >= 0);
    if (child > 0)
        return child;
    if (!freopen(scratch(process_output(folder)), "w", stderr))
        _exit(99);
    prepare(u, folder, launch);
    status = ks_run_train(u->run);
    if (status != KS_OK)
        fprintf(stderr, "%s\n", ks_error_text());
    fflush(stderr);
    _exit(ks_exit_status(status));
}

int await_run(pid_t child)
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

int run_process(struct unstarted_run *u, const char *folder, struct launch launch)
{
    return await_run(start_run(u, folder, &launch));
}

const char *process_said(const char *folder)
{
    return file_text(process_output(folder));
}

void assert_process_said(const char *folder, const char *words)
{
    assert_contains(process_said(folder), words);
}

void assert_process_runs(struct unstarted_run *u, const char *folder, struct launch launch)
{
    int result = run_process(u, folder, launch);

    if (result != 0)
        fail_msg("%s: exit status %d: %s", folder, result, process_said(folder));
}

int shell(const char *command, const char *a, const char *b)
{
    return system(text_of("cd '%s' && %s '%s' '%s'", scratch_folder, command, a, b));
}

void remove_folder(const char *folder)
{
    assert_int_equal(shell("rm -rf --", folder, process_output(folder)), 0);
}

json_t *described(const char *folder)
{
    static const char *const free_keys[] = {"start", "resumed", "end", "command"};
    json_t *object;

    object = json_load_file(scratch(text_of("%s/run.json", folder)), 0, NULL);
    assert_non_null(object);
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++)
        json_object_del(object, free_keys[i]);
    return object;
}

void assert_state(const char *folder, const char *state)
{
    json_t *object = read_json(text_of("%s/run.json", folder));

    assert_string_equal(json_string_value(json_object_get(object, "state")), state);
}

void assert_same_file(const char *a, const char *b)
{
    assert_same_files(scratch(a), scratch(b));
}

size_t count_files(const char *folder)
{
    DIR *list = opendir(scratch(folder));
    size_t n = 0;

    assert_non_null(list);
    while (readdir(list))
        n++;
    closedir(list);
    return n - 2;
}

void assert_same_run(const char *folder, const char *reference)
{
    static const char *const files[] = {"progress.csv", "step_000000008.h5", "step_000000015.h5",
                                        "step_000000030.h5"};
    enum { FILES = sizeof files / sizeof *files };
    json_t *found = described(folder), *expected = described(reference);

    for (size_t i = 0; i < FILES; i++)
        assert_same_file(text_of("%s/%s", folder, files[i]), text_of("%s/%s", reference, files[i]));
    assert_int_equal(count_files(folder), FILES + 1);
    if (!json_equal(found, expected))
        fail_msg("%s/run.json: other than that of %s", folder, reference);
    json_decref(found);
    json_decref(expected);
}

static uint64_t header_number(const struct image *p, size_t at)
{
    uint64_t number;

    memcpy(&number, p->header + at, sizeof number);
    return number;
}

void set_header_number(struct image *p, size_t at, uint64_t number)
{
    memcpy(p->header + at, &number, sizeof number);
}

struct image read_point(const char *path)
{
    struct image p;
    size_t size, description_size;
    unsigned char *bytes = read_bytes(path, &size);

    memcpy(p.header, bytes, HEADER);
    description_size = header_number(&p, AT_DESCRIPTION_SIZE);
    p.state_size = header_number(&p, AT_STATE_SIZE);
    assert_int_equal(size, HEADER + description_size + p.state_size + KS_SHA256_BYTES);
    p.description = json_loadb((char *)bytes + HEADER, description_size, 0, NULL);
    assert_non_null(p.description);
    p.state = malloc(p.state_size);
    assert_non_null(p.state);
    memcpy(p.state, bytes + HEADER + description_size, p.state_size);
    return p;
}

/* Frees what the image holds. */
void write_point(const char *path, struct image *p)
{
    char *description = json_dumps(p->description, JSON_REAL_PRECISION(15));
    size_t description_size = strlen(description),
           content = HEADER + description_size + p->state_size;
    unsigned char *bytes = malloc(content + KS_SHA256_BYTES);

    assert_non_null(bytes);
    set_header_number(p, AT_DESCRIPTION_SIZE, description_size);
    set_header_number(p, AT_STATE_SIZE, p->state_size);
    memcpy(bytes, p->header, HEADER);
    memcpy(bytes + HEADER, description, description_size);
    memcpy(bytes + HEADER + description_size, p->state, p->state_size);
    assert_ok(ks_sha256(1, &(struct ks_piece){bytes, content}, bytes + content));
    write_bytes(path, bytes, content + KS_SHA256_BYTES);
    json_decref(p->description);
    free(p->state);
    free(description);
    free(bytes);
}

uint64_t section_size(const struct image *p, size_t at)
{
    uint64_t size;

    memcpy(&size, p->state + at + SECTION_NAME, sizeof size);
    return size;
}

size_t section(const struct image *p, const char *name)
{
    size_t at = 0;

    while (at < p->state_size && strcmp((char *)p->state + at, name) != 0)
        at += SECTION + section_size(p, at);
    if (at >= p->state_size)
        fail_msg("no section '%s'", name);
    return at;
}

struct unstarted_run unstarted[2]; /* one thread, two */

int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    ks_blas_start(NULL);
    build_run(&unstarted[0], 1);
    build_run(&unstarted[1], 2);
    assert_process_runs(&unstarted[0], REFERENCE, (struct launch){.resume = KS_RESUME_NOT});
    assert_process_runs(&unstarted[0], STOPPED_RUN,
                        (struct launch){.save_every = 1e9, .stop_at = STOPPED});
    return 0;
}

int tear_down(void **state)
{
    ks_run_free(unstarted[0].run);
    ks_run_free(unstarted[1].run);
    return scratch_remove(state);
}

const char *in_run(const char *file)
{
    return scratch(text_of("%s/%s", RUN, file));
}

void copy_stopped_run(void)
{
    remove_folder(RUN);
    assert_int_equal(shell("cp -a", STOPPED_RUN, RUN), 0);
}

struct image open_stopped_run(void)
{
    copy_stopped_run();
    return read_point(in_run("resume/point.0"));
}

void write_stopped_run(struct image *p)
{
    write_point(in_run("resume/point.0"), p);
}

int resume(enum ks_resume how)
{
    return run_process(&unstarted[0], RUN, (struct launch){.resume = how});
}

void assert_resumes(enum ks_resume how)
{
    if (resume(how) != 0)
        fail_msg("%s", process_said(RUN));
}

void assert_refused(enum ks_resume how, const char *words)
{
    assert_int_equal(resume(how), 2);
    assert_process_said(RUN, words);
    assert_int_equal(count(process_said(RUN), "\n"), 1);
    assert_state(RUN, "stopped");
    assert_int_equal(access(in_run("resume/point.0"), F_OK), 0);
}
