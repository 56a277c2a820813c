/* Submission to Slurm and the tasks' script, without Slurm: shell scripts take the place of sbatch,
 * squeue, scancel and scontrol. tests/peer/slurm.sh runs a real one. */
#include "staged_study.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "study/slurm.h"

/* Records its arguments, and answers with the number of its call above 100; prints a line that is
 * no number first, as clusters' greetings are. Refuses the call whose number is in "refused". */
static const char FAKE_SBATCH[] = "#!/bin/sh\n"
                                  "echo \"sbatch $*\" >>slurm.calls\n"
                                  "n=$(grep -c sbatch slurm.calls)\n"
                                  "if [ \"$n\" = \"$(cat refused)\" ]; then\n"
                                  "    echo 'sbatch: error: invalid partition' >&2\n"
                                  "    exit 1\n"
                                  "fi\n"
                                  "echo 'welcome 7'\n"
                                  "echo \"$((100 + n));cluster\"\n";
static const char FAKE_SCANCEL[] = "#!/bin/sh\necho \"scancel $*\" >>slurm.calls\n";
static const char FAKE_SCONTROL[] = "#!/bin/sh\necho \"scontrol $*\" >>slurm.calls\nexit 1\n";
/* In the study's folder, where `queue` is, as its caller is. */
static const char FAKE_SQUEUE[] = "#!/bin/sh\n"
                                  "[ ! -e squeue.fails ] || { echo no controller >&2; exit 1; }\n"
                                  "cat queue\n";

static struct stage stage_with_slurm(const char *behaviour)
{
    char path[4096];

    write_script("bin/sbatch", FAKE_SBATCH);
    write_script("bin/scancel", FAKE_SCANCEL);
    write_script("bin/scontrol", FAKE_SCONTROL);
    write_script("bin/squeue", FAKE_SQUEUE);
    tree_write("slurm.calls", "");
    tree_write("refused", "0");
    tree_write("queue", "");
    if (!strstr(getenv("PATH"), tree)) {
        snprintf(path, sizeof path, "%s:%s", tree_path("bin"), getenv("PATH"));
        setenv("PATH", path, 1);
    }
    return stage_new(behaviour);
}

static struct ks_slurm quietly(void)
{
    return (struct ks_slurm){.plot = "/bin/plot", .quiet = true};
}

#define ARRAY "--cpus-per-task=2 --signal=B:USR1@120 "
#define KILL  "--kill-on-invalid-dep=yes "
#define MODE  "--requeue --open-mode=append --output=slurm/"

static void test_submission(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = quietly();

    (void)state;
    assert_ok(ks_slurm_submit(stage.graph, tree, &s));
    assert_string_equal(
        tree_text("slurm.calls"),
        "sbatch --parsable --job-name=some:train --array=0-1 " ARRAY MODE
        "train-%A_%a.log slurm/task.sh train\n"
        "sbatch --parsable --job-name=some:analyze --array=0-1 " ARRAY
        "--dependency=aftercorr:101 " KILL MODE "analyze-%A_%a.log slurm/task.sh analyze\n"
        "sbatch --parsable --job-name=some:plot --dependency=afterok:101:102 " KILL MODE
        "plot-%j.log slurm/task.sh plot\n");
    stage_free(&stage);
}

/* --sbatch, --jobs and --keep-going; the given options come last, so that they count. */
static void test_options(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = quietly();

    (void)state;
    s.jobs = 7;
    s.keep_going = true;
    assert_ok(ks_slurm_add_options(&s, "--time=1:00:00  -p 'long'"));
    assert_ok(ks_slurm_add_options(&s, "--mem=4G"));
    assert_int_equal(s.n_options, 4);
    assert_ok(ks_slurm_submit(stage.graph, tree, &s));
    assert_int_equal(count(tree_text("slurm.calls"), "--array=0-1%7 "), 2);
    assert_int_equal(count(tree_text("slurm.calls"), "--dependency=afterany:101:102 "), 1);
    assert_int_equal(
        count(tree_text("slurm.calls"), ".log --time=1:00:00 -p long --mem=4G slurm/task.sh "), 3);
    assert_fails(ks_slurm_add_options(&s, "-p long\\"), KS_USAGE, "found '-p long");
    assert_fails(ks_slurm_add_options(&s, "a\nb"), KS_USAGE, "--sbatch: expected no control");
    ks_slurm_clear(&s);
    stage_free(&stage);
}

static void write_targets(const struct ks_graph_job *job)
{
    for (size_t i = 0; i < job->n_targets; i++)
        tree_write(job->target[i], "");
}

/* A task is only submitted for what is missing, and only waits for a training that is. */
static void test_only_what_is_missing(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = quietly();

    (void)state;
    write_targets(&stage.graph->job[1]);
    assert_ok(ks_slurm_submit(stage.graph, tree, &s));
    assert_int_equal(count(tree_text("slurm.calls"), "some:train --array=0 "), 1);
    assert_int_equal(count(tree_text("slurm.calls"), "some:analyze --array=0 " ARRAY "--dependency="
                                                     "aftercorr:101 "),
                     1);
    assert_int_equal(count(tree_text("slurm.calls"), "some:analyze --array=1 " ARRAY MODE), 1);
    assert_int_equal(count(tree_text("slurm.calls"), "--dependency=afterok:101:102:103 "), 1);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        write_targets(&stage.graph->job[i]);
    tree_write("slurm.calls", "");
    assert_ok(ks_slurm_submit(stage.graph, tree, &s));
    assert_int_equal(count(tree_text("slurm.calls"), "sbatch "), 1);
    assert_int_equal(count(tree_text("slurm.calls"), "some:plot --requeue "), 1);
    stage_free(&stage);
}

/* Either all jobs are submitted or none. */
static void test_refused_submission(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = quietly();

    (void)state;
    tree_write("refused", "3");
    assert_fails(ks_slurm_submit(stage.graph, tree, &s), KS_RUN,
                 "sbatch failed (exit status 1): sbatch: error: invalid partition");
    assert_non_null(strstr(tree_text("slurm.calls"), "\nscancel 101 102\n"));
    tree_write("slurm.calls", "");
    tree_write("refused", "1");
    assert_fails(ks_slurm_submit(stage.graph, tree, &s), KS_RUN, "invalid partition");
    assert_null(strstr(tree_text("slurm.calls"), "scancel"));
    stage_free(&stage);
}

/* The printed commands, run by a shell, submit the same. */
static void test_printed_submission(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = quietly();
    static char submitted[1 << 16];
    char command[600];
    FILE *out = fopen(tree_path("commands"), "w");

    (void)state;
    assert_ok(ks_slurm_add_options(&s, "--comment='a b'"));
    assert_non_null(out);
    assert_ok(ks_slurm_print(stage.graph, tree, &s, out));
    assert_int_equal(fclose(out), 0);
    assert_string_equal(tree_text("slurm.calls"), "");
    assert_ok(ks_slurm_submit(stage.graph, tree, &s));
    snprintf(submitted, sizeof submitted, "%s", tree_text("slurm.calls"));
    tree_write("slurm.calls", "");
    write_script("bin/sbatch", "#!/bin/sh\necho \"sbatch $*\" >>slurm.calls\n"
                               "echo $((100 + $(grep -c sbatch slurm.calls)))\n");
    snprintf(command, sizeof command, "sh -e %s", tree_path("commands"));
    assert_int_equal(system(command), 0);
    assert_string_equal(tree_text("slurm.calls"), submitted);
    ks_slurm_clear(&s);
    stage_free(&stage);
}

/* --- the queue --- */

static void write_queue(const char *folder)
{
    char text[2048];

    snprintf(text, sizeof text,
             "12|0|RUNNING|node7|some:train|%s\n"
             "12|1|PENDING||some:train|%s\n"
             "13|N/A|PENDING||some:plot|%s\n"
             "14|0|RUNNING|node8|other:train|/elsewhere\n",
             folder, folder, folder);
    tree_write("queue", text);
}

static void test_queue(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm_task *task;
    size_t n;

    (void)state;
    write_queue(tree);
    assert_ok(ks_slurm_queue(tree, &n, &task)); /* nothing was submitted from here */
    assert_int_equal(n, 0);
    tree_write("slurm/task.sh", "");
    assert_ok(ks_slurm_queue(tree, &n, &task));
    assert_int_equal(n, 3);
    assert_int_equal(task[0].job, 12);
    assert_int_equal(task[1].run, 1);
    assert_string_equal(task[0].kind, "train");
    assert_string_equal(task[0].state, "RUNNING");
    assert_string_equal(task[0].node, "node7");
    assert_string_equal(task[1].node, "");
    assert_true(task[2].run == SIZE_MAX);
    free(task);
    assert_fails(ks_slurm_refuse(tree), KS_USAGE, "has 3 tasks of this study");
    assert_non_null(strstr(ks_error_text(), "scancel 12 13"));
    write_queue("/elsewhere");
    assert_ok(ks_slurm_refuse(tree));
    tree_write("squeue.fails", "");
    assert_fails(ks_slurm_refuse(tree), KS_RUN, "squeue failed: no controller");
    stage_free(&stage);
}

/* --- the tasks' script --- */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static pid_t start_task(const char *kind, const char *run)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        int log = open(tree_path("task.log"), O_WRONLY | O_CREAT | O_APPEND, 0666);

        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        setenv("SLURM_ARRAY_JOB_ID", "7", 1);
        setenv("SLURM_ARRAY_TASK_ID", run, 1);
        unsetenv("MAKELEVEL");
        unsetenv("MAKEFLAGS");
        if (chdir(tree) == 0)
            execl("/bin/sh", "sh", "slurm/task.sh", kind, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int end_task(pid_t child)
{
    int result = 0;

    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void test_tasks(void **state)
{
    struct stage stage = stage_with_slurm("[ $arch != bn+ce ] || exit 5");
    struct ks_slurm s = quietly();

    (void)state;
    s.plot = "/bin/echo";
    assert_ok(ks_slurm_write(stage.graph, tree, &s));
    assert_int_equal(end_task(start_task("train", "1")), 0);
    assert_string_equal(tree_text("task.log"), "train toy/ln+ce/seed0\n");
    assert_false(tree_has("runs/toy/bn+ce"));
    assert_int_equal(end_task(start_task("analyze", "1")), 0);
    assert_int_equal(count(tree_text("calls"), "analyze runs/toy/ln+ce/seed0/"), 3);
    assert_int_equal(count(tree_text("calls"), "\n"), 4);
    assert_int_equal(end_task(start_task("train", "0")), 2); /* make's status of a failure */
    assert_int_equal(end_task(start_task("plot", "")), 0);
    assert_non_null(strstr(tree_text("task.log"), "\n.\n"));
    assert_string_equal(tree_text("slurm.calls"), "");
    stage_free(&stage);
}

/* Waits until the file exists, at most ten seconds; then removes it. */
static void wait_for(const char *name)
{
    for (int i = 0; i < 500 && !tree_has(name); i++)
        nap();
    assert_int_equal(unlink(tree_path(name)), 0);
}

/* Near its time limit the task stops its program and is requeued, but not if nothing has changed
 * since it was started. */
static void test_time_limit(void **state)
{
    struct stage stage = stage_with_slurm("trap 'echo TERM >>calls; exit 1' TERM; : >asleep\n"
                                          "while :; do sleep 0.05; done");
    struct ks_slurm s = quietly();
    pid_t child;

    (void)state;
    assert_ok(ks_slurm_write(stage.graph, tree, &s));
    for (int i = 0; i < 2; i++) {
        child = start_task("train", "0");
        wait_for("asleep");
        assert_int_equal(kill(child, SIGUSR1), 0);
        assert_int_not_equal(end_task(child), 0);
        assert_int_equal(count(tree_text("calls"), "TERM"), (size_t)i + 1);
        assert_string_equal(tree_text("slurm.calls"), "scontrol requeue 7_0\n");
    }
    assert_non_null(strstr(tree_text("task.log"), "no progress within the time limit"));
    tree_write("behave", ":");
    assert_int_equal(end_task(start_task("train", "0")), 0);
    stage_free(&stage);
}

/* A task that is cancelled waits until its program has stopped, and is not requeued. */
static void test_cancelled_task(void **state)
{
    struct stage stage = stage_with_slurm("trap 'sleep 0.2; echo end >>calls; exit 1' TERM\n"
                                          ": >asleep; while :; do sleep 0.05; done");
    struct ks_slurm s = quietly();
    pid_t child;

    (void)state;
    assert_ok(ks_slurm_write(stage.graph, tree, &s));
    child = start_task("train", "0");
    wait_for("asleep");
    assert_int_equal(kill(child, SIGTERM), 0); /* the first of all processes of the task */
    nap();
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
    {
        const char *line = strstr(tree_text("calls"), "train bn+ce ");
        int trainer = 0;

        assert_non_null(line);
        assert_int_equal(sscanf(line, "train bn+ce %d", &trainer), 1);
        assert_int_equal(kill(trainer, SIGTERM), 0);
    }
    assert_int_not_equal(end_task(child), 0);
    assert_non_null(strstr(tree_text("calls"), "end\n"));
    assert_string_equal(tree_text("slurm.calls"), "");
    stage_free(&stage);
}

/* A run's task waits for another one that still holds the run's lock. */
static void test_lock_of_a_run(void **state)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = quietly();
    pid_t child;
    int lock;

    (void)state;
    assert_ok(ks_slurm_write(stage.graph, tree, &s));
    tree_write("runs/toy/bn+ce/seed0/" KS_SLURM_LOCK, "");
    lock = open(tree_path("runs/toy/bn+ce/seed0/" KS_SLURM_LOCK), O_RDWR | O_CLOEXEC);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    child = start_task("train", "0");
    assert_int_equal(end_task(start_task("train", "1")), 0); /* meanwhile, another run */
    for (int i = 0; i < 10; i++)
        nap();
    assert_int_equal(count(tree_text("calls"), "train bn+ce"), 0);
    close(lock);
    assert_int_equal(end_task(child), 0);
    assert_int_equal(count(tree_text("calls"), "train bn+ce"), 1);
    stage_free(&stage);
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        IN_TREE(test_submission),
        IN_TREE(test_options),
        IN_TREE(test_only_what_is_missing),
        IN_TREE(test_refused_submission),
        IN_TREE(test_printed_submission),
        IN_TREE(test_queue),
        IN_TREE(test_tasks),
        IN_TREE(test_time_limit),
        IN_TREE(test_cancelled_task),
        IN_TREE(test_lock_of_a_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
