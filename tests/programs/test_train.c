/* kappascope-train as a user runs it: short runs of small networks. */
#include <signal.h>
#include <time.h>

#include "example.h"
#include "programs.h"

#include "io/csv.h"
#include "train/settings.h"

static const struct ks_attribute *attribute(const struct ks_checkpoint *c, const char *name)
{
    const struct ks_attribute *a = ks_attribute_find(&c->attributes, name);

    if (!a)
        fail_msg("no attribute '%s'", name);
    return a;
}

/* A string in run.json. */
static const char *describe(const char *file, const char *key)
{
    return json_string_value(json_object_get(read_json(file), key));
}

static void assert_state(const char *file, const char *state)
{
    assert_string_equal(describe(file, "state"), state);
}

/* A checkpoint has every setting but `threads`, with its value. */
static void check_settings(const struct ks_checkpoint *c)
{
    size_t n = 0;

    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (strcmp(key->name, "threads") != 0) {
            assert_non_null(ks_attribute_find(&c->settings, key->name));
            n++;
        }
    assert_int_equal(c->settings.n, n);
    assert_int_equal(ks_attribute_find(&c->settings, "batch")->integer, 8);
    assert_int_equal(ks_attribute_find(&c->settings, "skip")->integer, 0);
    assert_close(ks_attribute_find(&c->settings, "lr_end")->number, 3e-5, 0);
    assert_string_equal(ks_attribute_find(&c->settings, "gamma")->string, "auto");
    assert_string_equal(ks_attribute_find(&c->settings, "decay")->string, "none");
}

/* Sizes and attributes of a run's last checkpoint. */
static void check_last_checkpoint(const struct ks_csv *progress)
{
    struct ks_checkpoint *c = read_checkpoint(scratch("one/step_000000120.h5"));
    size_t last = progress->rows - 1;

    assert_int_equal(c->critic.ensemble, 2);
    assert_int_equal(c->minibatches, 3);
    assert_int_equal(c->rows, 16);
    assert_int_equal(c->loss_rows, 8);
    assert_int_equal(c->critic.arch->in, 6);
    assert_non_null(c->critic.state);
    assert_non_null(c->target_critic.w);
    assert_int_equal(c->actor.arch->in, 5);
    assert_int_equal(c->adam_step, 60); /* 30 agent steps, 2 updates each */
    assert_non_null(c->adam_v);
    assert_string_equal(attribute(c, "env")->string, "cartpole-balance");
    assert_string_equal(attribute(c, "architecture")->string, "bn+wn+ce");
    assert_int_equal(attribute(c, "seed")->integer, 3);
    assert_int_equal(attribute(c, "env_step")->integer, 120);
    assert_int_equal(attribute(c, "update")->integer, 60);
    assert_close(attribute(c, "gamma")->number, 0.99, 1e-15);
    assert_close(attribute(c, "learning_rate")->number, 3e-4 - 2.7e-4 / 2, 1e-12);
    assert_true(attribute(c, "reward_scale")->number > 1e-3);
    assert_true(attribute(c, "temperature")->number > 0);
    assert_int_equal(attribute(c, "returns")->n, 1);
    assert_contains(attribute(c, "library_versions")->string, "MuJoCo");
    check_settings(c);
    assert_true(c->references.output.value && c->references.loss.value &&
                c->references.gradient_norm.value);
    assert_ok(ks_references_compare(c, "a run", c->minibatches));
    /* the evaluation comes before the checkpoint */
    assert_close(attribute(c, "return_mean")->number, cell_number(progress, last, "return_mean"),
                 1e-6);
    assert_close(ks_attribute_find(&c->metrics, "critic_loss")->number,
                 cell_number(progress, last, "critic_loss"), 1e-6);
}

static void check_first_checkpoint(void)
{
    struct ks_checkpoint *c = read_checkpoint(scratch("one/step_000000060.h5"));

    assert_int_equal(attribute(c, "update")->integer, 0);
    assert_int_equal(c->adam_step, 0);
    for (size_t i = 0; i < 2 * c->critic.arch->parameters; i++)
        assert_true(c->critic.w[i] == c->target_critic.w[i] && c->adam_m[i] == 0);
}

TEST(test_run)
{
    const struct ks_csv *progress;
    json_t *json;

    assert_trains(SMALL "--set evaluations=1 --arch bn+wn+ce --seed 3 --out one");
    assert_string_equal(complained, "");
    assert_state("one/run.json", "finished");
    assert_contains(describe("one/run.json", "critic"), "dense 16");
    json = read_json("one/run.json");
    assert_int_equal(json_integer_value(json_object_get(json, "update")), 60);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "settings"), "batch")), 8);
    progress = read_csv("one/progress.csv");
    assert_int_equal(progress->rows, 3); /* the start; before the first update; the end */
    assert_close(cell_number(progress, 1, "env_step"), 60, 0);
    assert_true(isnan(cell_number(progress, 1, "critic_loss")) &&
                isnan(cell_number(progress, 1, "return_mean")));
    assert_close(cell_number(progress, 2, "update"), 60, 0);
    assert_true(cell_number(progress, 2, "critic_dormant") >= 0);
    assert_close(cell_number(progress, 2, "divergences"), 0, 0);
    assert_false(exists("one/step_000000000.h5"));
    check_last_checkpoint(progress);
    check_first_checkpoint();
}

/* All contents are equal except for the two metrics that depend on the clock. */
static void assert_same_checkpoint(const char *first, const char *second)
{
    struct ks_checkpoint *c[] = {read_checkpoint(scratch(first)), read_checkpoint(scratch(second))};

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < c[k]->metrics.n; i++)
            if (strstr(c[k]->metrics.list[i].name, "_per_second"))
                c[k]->metrics.list[i].number = 0;
    same_checkpoint(c[0], c[1], false);
}

/* The same seed gives the same checkpoints, also with one thread instead of two. */
TEST(test_same_again)
{
    assert_trains(SMALL "--set evaluations=1 --arch bn+wn+ce --seed 3 --out two --set threads=1");
    assert_same_checkpoint("one/step_000000060.h5", "two/step_000000060.h5");
    assert_same_checkpoint("one/step_000000120.h5", "two/step_000000120.h5");
}

/* Layers that multiply in bfloat16 parts: other numbers than OpenBLAS's, the same ones with every
 * number of threads and after a stop; what was asked for and what was computed are recorded. */
TEST(test_products)
{
    static const char *const products[] = {"blas", "split3"};
    struct ks_checkpoint *c[2];

    for (size_t i = 0; i < 2; i++) {
        const char *wide = text_of(SMALL "--set hidden=40 --set batch=24 --arch bn+wn+ce "
                                         "--set evaluations=1 --set products=%s ",
                                   products[i]);
        const char *folder = products[i];

        assert_trains("%s --out %s --set threads=2", wide, folder);
        assert_string_equal(describe(text_of("%s/run.json", folder), "products"), products[i]);
        c[i] = read_checkpoint(scratch(text_of("%s/step_000000120.h5", folder)));
        assert_string_equal(ks_attribute_find(&c[i]->settings, "products")->string, products[i]);
        assert_contains(attribute(c[i], "library_versions")->string,
                        text_of(", products %s;", products[i]));
        assert_trains("%s --out stopped-%s --set threads=1 --stop-at 61", wide, folder);
        assert_state(text_of("stopped-%s/run.json", folder), "stopped");
        assert_trains("%s --out stopped-%s --set threads=1 --resume", wide, folder);
        assert_state(text_of("stopped-%s/run.json", folder), "finished");
        assert_false(exists(text_of("stopped-%s/resume", folder)));
        assert_same_checkpoint(text_of("%s/step_000000120.h5", folder),
                               text_of("stopped-%s/step_000000120.h5", folder));
    }
    assert_memory_not_equal(c[0]->critic.w, c[1]->critic.w,
                            ks_networks_parameters(&c[0]->critic) * sizeof *c[0]->critic.w);
}

/* The time of a file's last change, in nanoseconds. */
static struct timespec changed(const char *name)
{
    struct stat there;

    assert_int_equal(stat(scratch(name), &there), 0);
    return there.st_mtim;
}

static bool is_untouched(const char *name, struct timespec since)
{
    struct timespec now = changed(name);

    return now.tv_sec == since.tv_sec && now.tv_nsec == since.tv_nsec;
}

/* A finished run is not changed by a second start, for any number of threads. A run that has lost a
 * checkpoint is run again. Checkpoints of an earlier start of the run are removed. */
TEST(test_finished)
{
    static const char command[] = SMALL
        "--set evaluations=1 --arch bn+wn+ce --seed 3 --out two --set threads=1";
    static const char *const files[] = {"two/run.json", "two/progress.csv", "two/step_000000060.h5",
                                        "two/step_000000120.h5"};
    struct timespec before[4];

    for (size_t i = 0; i < 4; i++)
        before[i] = changed(files[i]);
    assert_trains("%s", command);
    assert_string_equal(complained, ""); /* --quiet */
    assert_trains("%s --set threads=2", strchr(command, ' '));
    assert_complains("two: this run is finished");
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
    for (size_t i = 0; i < 4; i++)
        assert_true(is_untouched(files[i], before[i]));
    assert_int_equal(remove(scratch("two/step_000000060.h5")), 0);
    assert_trains("%s --stop-at 60", command);
    assert_state("two/run.json", "stopped");
    assert_true(exists("two/step_000000060.h5"));
    assert_false(exists("two/step_000000120.h5"));
}

/* A start from the beginning says that it removes resume points, if there are any. */
TEST(test_starting_over)
{
    static const char command[] = SMALL "--set evaluations=0 --arch bn+ce --out again --stop-at 2";

    assert_trains("%s", strchr(command, ' '));
    assert_null(strstr(complained, "starting over"));
    assert_true(exists("again/resume/point.0"));
    assert_trains("%s", strchr(command, ' '));
    assert_complains("bn+ce: starting over: the resume points in again/resume ");
    assert_trains("%s", command);
    assert_string_equal(complained, "");
    assert_trains("%s --resume", strchr(command, ' '));
    assert_null(strstr(complained, "starting over"));
}

/* A folder named progress.csv: refused before run.json says "running". A folder with the name of a
 * checkpoint, which cannot be removed: the run fails. */
TEST(test_names_taken_by_folders)
{
    mkdir(scratch("taken"), 0777);
    mkdir(scratch("taken/progress.csv"), 0777);
    train_refuses(SMALL "--set evaluations=0 --arch bn+ce --out taken", "progress.csv");
    assert_false(exists("taken/run.json"));
    assert_int_equal(rmdir(scratch("taken/progress.csv")), 0);
    assert_trains(SMALL "--set evaluations=0 --arch bn+ce --out taken --stop-at 2");
    mkdir(scratch("taken/step_000000060.h5"), 0777);
    train_refuses(SMALL "--set evaluations=0 --arch bn+ce --out taken", "step_000000060.h5");
    assert_state("taken/run.json", "failed");
}

/* A run that would end before its first update is refused, with the steps that it needs. */
TEST(test_no_update)
{
    train_refuses(SMALL "--arch bn+ce --out idle --set evaluations=0 --set random_steps=60",
                  "--steps: expected more than 120 environment steps, as there is no update in the "
                  "first 60 agent steps (random_steps), found 120");
    assert_false(exists("idle"));
    assert_trains(SMALL "--arch bn+ce --out idle --set evaluations=0 --set random_steps=59");
}

/* More checkpoints than agent steps (of two environment steps each): it says how many there will
 * be. */
TEST(test_too_many_checkpoints)
{
    assert_trains("%s --arch bn+ce --out many --set evaluations=0 --set checkpoints=61",
                  strchr(SMALL, ' '));
    assert_complains("checkpoints: 60, not 61: that is how many agent steps");
    assert_null(strstr(complained, "evaluations: "));
}

/* The critic of a description file, without batchnorm: a minibatch has only the rows that carry
 * loss. */
TEST(test_file)
{
    static const char text[] = "layernorm\ndense 9 project=unit\nrelu\ndense 1\nloss mse\n";
    struct ks_checkpoint *c;

    write_text("mine.arch.arch", text);
    assert_trains("--quiet --env dog-stand --arch ./mine.arch.arch --out file --steps 23 --set "
                  "action_repeat=1 --set random_steps=5 --set evaluations=0 --set eval_episodes=1 "
                  "--set checkpoints=1 --set analysis_minibatches=2 --set batch=4 --set critics=3 "
                  "--set actor_hidden=8 --set raw_rewards=1 --set utd=1");
    c = read_checkpoint(scratch("file/step_000000023.h5"));
    assert_int_equal(c->critic.ensemble, 3);
    assert_int_equal(c->rows, 4);
    assert_int_equal(c->critic.arch->loss.targets, 1);
    assert_null(c->critic.state);
    assert_string_equal(c->critic.text, text);
    assert_contains(c->actor.text, "layernorm\nrepeat 4 {\n  dense 8 project=unit\n");
    assert_string_equal(attribute(c, "architecture")->string, "mine.arch.arch");
    assert_close(attribute(c, "gamma")->number, 0.995, 1e-15);
}

/* A task of Gymnasium, without a value for action_repeat. */
TEST(test_gymnasium)
{
    assert_trains("--quiet --env Hopper-v4 --arch ln+mse --out hopper --steps 9 --set hidden=8 "
                  "--set actor_hidden=8 --set batch=4 --set random_steps=5 --set evaluations=0 "
                  "--set eval_episodes=1 --set checkpoints=1 --set analysis_minibatches=1");
    assert_true(exists("hopper/step_000000009.h5")); /* 5 agent steps of 2 would end at 10 */
    assert_contains(file_text("hopper/run.json"), "\"action_repeat\": 1,");
}

/* With a learning rate of 1 and 32 layers without normalization, values overflow float. Earlier
 * files stay; --resume refuses to try again. */
TEST(test_overflow)
{
    static const char command[] =
        "--quiet --env walker-run --steps 120 --set hidden=16 --set actor_hidden=16 --set batch=8 "
        "--set random_steps=30 --set checkpoints=2 --set analysis_minibatches=3 "
        "--set evaluations=0 --arch dense+mse --out burst --set depth=32 --set critic_lr=1 "
        "--set lr_end=1 --set actor_lr=1 --save-every 0 --resume";
    const struct ks_csv *progress;

    assert_int_equal(train("%s", command), 1);
    assert_complains("environment step ");
    assert_complains("update ");
    assert_complains("finite");
    assert_state("burst/run.json", "failed");
    assert_contains(describe("burst/run.json", "reason"), "finite");
    assert_false(json_is_true(json_object_get(read_json("burst/run.json"), "resumable")));
    assert_true(exists("burst/step_000000060.h5"));
    assert_false(exists("burst/step_000000120.h5"));
    assert_false(exists("burst/resume"));
    progress = read_csv("burst/progress.csv");
    assert_int_equal(progress->rows, 2); /* the start; before the first update */
    assert_int_equal(train("%s", command), 1);
    assert_complains("burst: this run has failed: environment step ");
    assert_true(exists("burst/step_000000060.h5"));
}

/* Waits for a file to appear, for at most a minute. */
static bool appears(const char *name)
{
    const struct timespec tenth = {.tv_nsec = 100000000};

    for (int i = 0; i < 600 && !exists(name); i++)
        nanosleep(&tenth, NULL);
    return exists(name);
}

TEST(test_signal)
{
    pid_t child = fork();
    bool started;
    int status;

    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(9);
        execl(program_path("kappascope-train"), "kappascope-train", "--quiet", "--env", "dog-trot",
              "--arch", "bn+wn+ce", "--set", "hidden=16", "--out", scratch("killed"), (char *)NULL);
        _exit(9);
    }
    started = appears("killed/run.json");
    kill(child, started ? SIGTERM : SIGKILL); /* before anything can fail: no child is left */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(started);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_state("killed/run.json", "stopped");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
