/* The script that the tasks of Slurm's job arrays run, without Slurm. */
#include "staged.h"

#include "study/slurm.h"

#include <fcntl.h>
#include <sys/file.h>

static pid_t start_task(const char *kind, const char *run_here)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        int log = open(scratch("task.log"), O_WRONLY | O_CREAT | O_APPEND, 0666);

        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        setenv("SLURM_ARRAY_JOB_ID", "7", 1);
        setenv("SLURM_ARRAY_TASK_ID", run_here, 1);
        unsetenv("MAKELEVEL");
        unsetenv("MAKEFLAGS");
        if (chdir(scratch_folder) == 0)
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

TEST_IN_FOLDER(test_tasks)
{
    struct stage stage = stage_with_slurm("[ $arch != bn+ce ] || exit 5");
    struct ks_slurm s = QUIETLY;

    s.plot = "/bin/echo";
    assert_ok(ks_slurm_write(stage.graph, scratch_folder, &s));
    assert_int_equal(end_task(start_task("train", "1")), 0);
    assert_contains(file_text("task.log"), "start train toy/ln+ce/seed0, process ");
    assert_contains(file_text("task.log"), "\ntrain toy/ln+ce/seed0\n");
    assert_false(exists("runs/toy/bn+ce"));
    assert_int_equal(end_task(start_task("analyze", "1")), 0);
    assert_int_equal(count(file_text("calls"), "analyze runs/toy/ln+ce/seed0/"), 3);
    assert_int_equal(count(file_text("calls"), "\n"), 4);
    assert_int_equal(end_task(start_task("train", "0")), 2); /* make's status of a failure */
    assert_int_equal(end_task(start_task("plot", "")), 0);
    assert_contains(file_text("task.log"), "\n.\n");
    assert_string_equal(file_text("slurm.calls"), "");
}

/* Near its time limit the task stops its program and is requeued, but not if nothing has changed
 * since it was started. */
TEST_IN_FOLDER(test_time_limit)
{
    struct stage stage = stage_with_slurm("trap 'echo TERM >>calls; exit 1' TERM; : >asleep\n"
                                          "while :; do sleep 0.05; done");
    struct ks_slurm s = QUIETLY;
    pid_t child;

    assert_ok(ks_slurm_write(stage.graph, scratch_folder, &s));
    for (int i = 0; i < 2; i++) {
        child = start_task("train", "0");
        wait_for("asleep");
        assert_int_equal(unlink(scratch("asleep")), 0);
        assert_int_equal(kill(child, SIGUSR1), 0);
        assert_int_not_equal(end_task(child), 0);
        assert_int_equal(count(file_text("calls"), "TERM"), (size_t)i + 1);
        assert_string_equal(file_text("slurm.calls"), "scontrol requeue 7_0\n");
    }
    assert_contains(file_text("task.log"), "no progress within the time limit");
    write_text("behave", ":");
    assert_int_equal(end_task(start_task("train", "0")), 0);
}

/* A task that is cancelled waits until its program has stopped, and is not requeued. */
TEST_IN_FOLDER(test_cancelled_task)
{
    struct stage stage = stage_with_slurm("trap 'sleep 0.2; echo end >>calls; exit 1' TERM\n"
                                          ": >asleep; while :; do sleep 0.05; done");
    struct ks_slurm s = QUIETLY;
    pid_t child;

    assert_ok(ks_slurm_write(stage.graph, scratch_folder, &s));
    child = start_task("train", "0");
    wait_for("asleep");
    assert_int_equal(kill(child, SIGTERM), 0); /* the first of all processes of the task */
    nap();
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
    {
        const char *line = strstr(file_text("calls"), "train bn+ce ");
        int trainer = 0;

        assert_non_null(line);
        assert_int_equal(sscanf(line, "train bn+ce %d", &trainer), 1);
        assert_int_equal(kill(trainer, SIGTERM), 0);
    }
    assert_int_not_equal(end_task(child), 0);
    assert_contains(file_text("calls"), "end\n");
    assert_string_equal(file_text("slurm.calls"), "");
}

/* A run's task waits for another one that still holds the run's lock. */
TEST_IN_FOLDER(test_lock_of_a_run)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = QUIETLY;
    pid_t child;
    int lock;

    assert_ok(ks_slurm_write(stage.graph, scratch_folder, &s));
    write_text("runs/toy/bn+ce/seed0/" KS_SLURM_LOCK, "");
    lock = open(scratch("runs/toy/bn+ce/seed0/" KS_SLURM_LOCK), O_RDWR | O_CLOEXEC);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    child = start_task("train", "0");
    assert_int_equal(end_task(start_task("train", "1")), 0); /* meanwhile, another run */
    for (int i = 0; i < 10; i++)
        nap();
    assert_int_equal(count(file_text("calls"), "train bn+ce"), 0);
    close(lock);
    assert_int_equal(end_task(child), 0);
    assert_int_equal(count(file_text("calls"), "train bn+ce"), 1);
}
