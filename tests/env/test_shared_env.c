/* Tasks in shared objects: what configs/tasks/point.c says is what an episode does; ends and
 * divergences; objects that are refused; training, resuming. They are compiled here. */
#include "example.h"
#include "programs.h"
#include "suites.h"

#include <pthread.h>

/* An object with every size 1 whose functions do next to nothing: parts of it are replaced. */
#define DESCRIBE(version, observations, state)                                                     \
    "#include \"kappascope_env.h\"\n"                                                              \
    "const struct kappascope_env_description *kappascope_env_describe(void)\n{\n"                  \
    "static const struct kappascope_env_description d = {" version ", " observations               \
    ", 1, 9, " state "};\nreturn &d;\n}\n"
#define RESET                                                                                      \
    "void kappascope_env_reset(void *state, uint64_t seed)\n{\n*(double *)state = seed > 0;\n}\n"
#define STEP(body)                                                                                 \
    "int kappascope_env_step(void *state, const double *action, double *reward)\n{\n"              \
    "double *x = state;\n*reward = *x += action[0];\n" body "}\n"
#define OBSERVE                                                                                    \
    "void kappascope_env_observe(const void *state, double *observation)\n{\n"                     \
    "*observation = *(const double *)state;\n}\n"
#define ONE DESCRIBE("KAPPASCOPE_ENV_VERSION", "1", "sizeof(double)") RESET

/* Compiles a file into OBJECT of the tree. */
static void compile(const char *source, const char *object)
{
    assert_int_equal(
        system(text_of("%s -std=c11 -shared -fPIC -Iinclude -I. -o %s %s",
                       getenv("CC") && !strchr(getenv("CC"), ' ') ? getenv("CC") : "cc",
                       scratch(object), source)),
        0);
}

static void compile_text(const char *text, const char *object)
{
    write_text("some.c", text);
    compile(text_of("%s", scratch("some.c")), object);
}

/* In a file of its own, as an object stays loaded until its environment is freed. */
static struct ks_env *open_text(const char *text)
{
    static size_t n;
    const char *object = text_of("object%zu.so", n++);

    compile_text(text, object);
    return new_env(scratch(object));
}

static struct ks_env *open_point(void)
{
    compile("configs/tasks/point.c", "point.so");
    return new_env(scratch("point.so"));
}

/* --- an episode --- */

TEST_IN_FOLDER(test_example)
{
    struct ks_env *env = open_point();
    double seen[2], reward, x = -1, v = 0;
    enum ks_env_end end = KS_ENV_GOES_ON;

    assert_string_equal(ks_env_name(env), "point");
    assert_int_equal(ks_env_observations(env), 2);
    assert_int_equal(ks_env_actions(env), 1);
    assert_int_equal(ks_env_steps(env), 100);
    assert_contains(ks_env_identity(env), "SHA-256 of the shared object: ");
    assert_ok(ks_env_force(env, NULL, seen)); /* the seed 0 */
    assert_close(seen[0], -1, 0);
    for (size_t k = 0; end == KS_ENV_GOES_ON; k++) {
        const double action = k % 3 == 0 ? -1 : 1;

        v += 0.1 * (2 * action - v), x += 0.1 * v;
        assert_ok(ks_env_step(env, &action, seen, &reward, &end));
        assert_close(seen[0], x, 1e-12);
        assert_close(seen[1], v, 1e-12);
        assert_close(reward, 1 / (1 + 4 * x * x), 1e-12);
        assert_int_equal(end, x > 2 ? KS_ENV_TERMINATED : KS_ENV_GOES_ON);
        assert_true(k < 100);
    }
}

/* Starts are drawn from the run's random numbers: uniform on [-1, 1), another one each time. */
TEST_IN_FOLDER(test_start)
{
    enum { TIMES = 2000 };
    struct ks_rng rng = ks_rng_start(4, 1), same = rng;
    struct ks_env *env = open_point();
    double seen[2], again[2], sum = 0, squares = 0;

    for (size_t i = 0; i < TIMES; i++) {
        assert_ok(ks_env_reset(env, &rng, seen));
        sum += seen[0] / TIMES;
        squares += seen[0] * seen[0] / TIMES;
        if (i == 0) {
            assert_ok(ks_env_reset(env, &same, again));
            assert_memory_equal(seen, again, sizeof seen);
        }
    }
    assert_close(sum, 0, 5 / sqrt(3 * TIMES));
    assert_close(squares, 1.0 / 3, 5 * sqrt(4.0 / 45 / TIMES));
}

/* The numbers of kappascope_env.h; the time limit of 9 steps; a terminal state in the last step. */
TEST_IN_FOLDER(test_ends)
{
    static const struct {
        const char *step;
        size_t steps;
        enum ks_env_end end;
    } cases[] = {{STEP("return 0;\n"), 9, KS_ENV_TRUNCATED},
                 {STEP("return *x >= 2.5;\n"), 5, KS_ENV_TRUNCATED},
                 {STEP("return *x >= 2.5 ? 2 : 0;\n"), 5, KS_ENV_TERMINATED},
                 {STEP("return *x >= 4.5 ? 2 : 0;\n"), 9, KS_ENV_TERMINATED}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_env *env = open_text(text_of("%s%s%s", ONE, cases[i].step, OBSERVE));
        enum ks_env_end end = KS_ENV_GOES_ON;
        double seen, reward, action = 0.5;

        assert_ok(ks_env_force(env, NULL, &seen));
        for (size_t k = 1; k <= cases[i].steps; k++) {
            assert_int_equal(end, KS_ENV_GOES_ON);
            assert_ok(ks_env_step(env, &action, &seen, &reward, &end));
            assert_close(reward, 0.5 * (double)k, 0);
            assert_close(seen, reward, 0);
        }
        assert_int_equal(end, cases[i].end);
    }
}

/* An episode begins with zeros, whatever the one before has left. */
TEST_IN_FOLDER(test_zeros)
{
    struct ks_env *env = open_text(DESCRIBE(
        "1", "1", "8") "void kappascope_env_reset(void *state, uint64_t seed)\n{\n*(double *)state "
                       "+= 1 + seed;\n}\n" STEP("return 0;\n") OBSERVE);
    double seen, reward, action = 0.5;
    enum ks_env_end end;

    for (size_t k = 0; k < 3; k++) {
        assert_ok(ks_env_force(env, NULL, &seen));
        assert_close(seen, 1, 0);
        assert_ok(ks_env_step(env, &action, &seen, &reward, &end));
    }
}

/* A reward that is infinite in float32 truncates the episode and counts. */
TEST_IN_FOLDER(test_divergence)
{
    struct ks_env *env = open_text(ONE STEP("if (*x > 1.2)\n*reward = 1e39;\nreturn 0;\n") OBSERVE);
    double seen, reward, action = 0.5;
    enum ks_env_end end;

    assert_ok(ks_env_force(env, NULL, &seen));
    for (size_t k = 1; k <= 3; k++)
        assert_ok(ks_env_step(env, &action, &seen, &reward, &end));
    assert_int_equal(end, KS_ENV_TRUNCATED);
    assert_close(reward, 0, 0);
    assert_close(seen, 1, 0); /* the last one before */
    assert_int_equal(ks_env_divergences(env), 1);
}

/* A saved state continues with the same bits, in another environment too. */
TEST_IN_FOLDER(test_restored)
{
    struct ks_env *one = open_point(), *two = new_env(scratch("point.so"));
    struct ks_rng rng = ks_rng_start(4, 1);
    double seen[2], expected[2], reward, action = 0.3, *saved;
    enum ks_env_end end;

    assert_ok(ks_env_reset(one, &rng, seen));
    for (size_t k = 0; k < 7; k++)
        assert_ok(ks_env_step(one, &action, seen, &reward, &end));
    saved = hold(calloc(ks_env_state_size(one), sizeof *saved));
    ks_env_state_get(one, saved);
    assert_ok(ks_env_step(one, &action, expected, &reward, &end));
    assert_ok(ks_env_state_set(two, ks_env_state_size(two), saved, false));
    assert_ok(ks_env_step(two, &action, seen, &reward, &end));
    assert_memory_equal(seen, expected, sizeof seen);
    assert_fails(ks_env_state_set(two, ks_env_state_size(two) - 1, saved, false), KS_FORMAT,
                 "not a state of point in its version 1");
}

/* Two threads step environments of the same object: what one does does not reach the other. */
static void *step_often(void *argument)
{
    struct ks_env *env = argument;
    double seen[2], reward, action = 0.1;
    enum ks_env_end end = KS_ENV_TRUNCATED;

    for (size_t k = 0; k < 20000; k++) {
        if (end != KS_ENV_GOES_ON && ks_env_force(env, NULL, seen) != KS_OK)
            return env;
        if (ks_env_step(env, &action, seen, &reward, &end) != KS_OK)
            return env;
    }
    return fabs(seen[0]) < 2 ? NULL : env;
}

TEST_IN_FOLDER(test_threads)
{
    struct ks_env *env[2] = {open_point(), new_env(scratch("point.so"))};
    pthread_t thread[2];

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, step_often, env[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        void *failed;

        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
}

TEST_IN_FOLDER(test_refused)
{
    static const struct {
        const char *text, *words;
    } objects[] = {
        {"int nothing;\n", "some.so: no function 'kappascope_env_describe'"},
        {ONE OBSERVE, "some.so: no function 'kappascope_env_step'"},
        {DESCRIBE("7", "1", "8") RESET STEP("return 0;\n") OBSERVE,
         "some.so: expected version 1 of the interface (kappascope_env.h), found 7"},
        {DESCRIBE("1", "0", "8") RESET STEP("return 0;\n") OBSERVE,
         "kappascope_env_describe: observations: expected 1 to 1000000, found 0"},
        {DESCRIBE("1", "1", "0") RESET STEP("return 0;\n") OBSERVE,
         "kappascope_env_describe: state: expected 1 to 1073741824, found 0"},
        {"#include <stddef.h>\nvoid *kappascope_env_describe(void)\n{\nreturn NULL;\n}\n",
         "kappascope_env_describe: returned NULL"},
    };
    struct ks_env *env = NULL;
    double seen, reward, action = 0;
    enum ks_env_end end;

    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        compile_text(objects[i].text, "some.so");
        assert_fails(ks_env_new(scratch("some.so"), NULL, &env), KS_FORMAT, objects[i].words);
        assert_null(env);
    }
    write_text("text.so", "nothing");
    assert_fails(ks_env_new(scratch("text.so"), NULL, &env), KS_FORMAT,
                 "text.so: expected a shared object: ");
    assert_fails(ks_env_new(scratch("none.so"), NULL, &env), KS_IO, "none.so");
    assert_fails(ks_env_new("some.task", NULL, &env), KS_USAGE,
                 "some.task: expected the name of a task, or a shared object FILE.so");
    write_text("dog-trot.so", "nothing");
    assert_fails(ks_env_new(scratch("dog-trot.so"), NULL, &env), KS_FORMAT,
                 "there is a task of this name already");
    env = open_text(ONE STEP("return 3;\n") OBSERVE);
    assert_ok(ks_env_force(env, NULL, &seen));
    assert_fails(ks_env_step(env, &action, &seen, &reward, &end), KS_RUN,
                 "kappascope_env_step: expected 0, 1 or 2 to be returned, found 3");
}

/* Every allocation fails once; AddressSanitizer checks for leaks. */
TEST_IN_FOLDER(test_memory_runs_out)
{
    struct ks_env *env = NULL;
    struct starved s = {.least = 5};

    compile("configs/tasks/point.c", "point.so");
    while (starving(&s))
        s.status = ks_env_new(scratch("point.so"), NULL, &env);
    ks_env_free(env);
}

/* --- training --- */

#define SMALL_RUN                                                                                  \
    " --arch ln+mse --steps 400 --quiet --set hidden=8 --set actor_hidden=8 --set batch=8 "        \
    "--set random_steps=150 --set eval_episodes=1 --set evaluations=1 --set checkpoints=1 "        \
    "--set analysis_minibatches=2 --set threads=1 "

static int train_run(const char *out, const char *more)
{
    return run_here("kappascope-train", text_of(SMALL_RUN "--env %s --out %s %s",
                                                scratch("point.so"), scratch(out), more));
}

/* A run that was stopped goes on with the same bits; with another object it is refused. */
TEST_IN_FOLDER(test_training)
{
    compile("configs/tasks/point.c", "point.so");
    assert_int_equal(train_run("whole", ""), 0);
    assert_int_equal(train_run("parts", "--stop-at 230"), 0);
    compile_text("#include \"configs/tasks/point.c\"\nint more;\n", "point.so");
    assert_int_equal(train_run("parts", "--resume=any"), 2);
    assert_said("the folder holds another run: expected task \"SHA-256 of the shared object: ", 1);
    compile("configs/tasks/point.c", "point.so");
    assert_int_equal(train_run("parts", "--resume"), 0);
    assert_same("whole/step_000000400.h5", "parts/step_000000400.h5");
}

/* The file is named relative to the study's; runs are named after it. */
TEST_IN_FOLDER(test_study)
{
    const char *arguments = text_of("--dry-run --out %s %s", scratch("out"), scratch("mine.study"));

    assert_int_equal(mkdir(scratch("tasks"), 0777), 0);
    compile("configs/tasks/point.c", "tasks/point.so");
    write_text("mine.study", "[study]\nenv = tasks/point.so\narchitectures = bn+ce\nseeds = 0\n"
                             "steps = 400\n[train]\nhidden = 8\nactor_hidden = 8\n"
                             "random_steps = 50\ncheckpoints = 1\nanalysis_minibatches = 2\n");
    run_says("kappascope-study", arguments, 0, "mkdir -p runs/point/bn+ce/seed0", 0);
    assert_said("/tasks/point.so --arch=bn+ce", 0);
    write_text("mine.study", "[study]\nenv = none.so\narchitectures = bn+ce\nseeds = 0\n"
                             "steps = 400\n");
    run_says("kappascope-study", arguments, 2, "mine.study:2: env: none.so: does not exist", 1);
}

/* A task whose code ends the program, and one whose step never returns: the first signal waits for
 * the step's end, the second ends the program, and so does a time of grace. */
TEST_IN_FOLDER(test_misbehaviour)
{
    static const char run[] = "--quiet --env ./some.so --arch dense+mse --steps 100 --set hidden=4 "
                              "--set actor_hidden=4 --set random_steps=9 --out run";

    compile_text(ONE OBSERVE "#include <stdlib.h>\n" STEP("exit(0);\nreturn 0;\n"), "some.so");
    assert_int_equal(train(run), 1);
    assert_complains("kappascope-train: ./some.so: the task's code has called exit()\n");
    compile_text(
        ONE OBSERVE "#include <stdlib.h>\n" STEP(
            "return 0;\n") "__attribute__((constructor)) static void leave(void) { exit(0); }\n",
        "some.so");
    assert_int_equal(train(run), 1);
    assert_complains("kappascope-train: ./some.so: the task's code has called exit()\n");
    compile_text(ONE OBSERVE "#include <unistd.h>\n" STEP("for (;;)\nsleep(1);\n"), "some.so");
    /* one gets a second signal, the other has its time of grace and ends later */
    snprintf(
        launcher, sizeof launcher,
        "sh -c '\"$@\"2 & two=$!; \"$@\"3 & three=$!; sleep 2; kill $two $two $three; sleep 3; "
        "kill $two; wait $two; s=$?; kill -0 $three || exit 1; wait $three; "
        "[ $? = $s ] && exit $s' sh");
    assert_int_equal(train(run), 143);
    launcher[0] = '\0';
}

TEST_IN_FOLDER(test_no_frames)
{
    struct ks_render *render;

    assert_fails(ks_render_new(open_point(), 1, 1, &render), KS_USAGE,
                 "expected a task NAME-pixels");
}
