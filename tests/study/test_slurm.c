/* Submission to Slurm and its queue, without Slurm: fake_slurm.h. tests/peer/slurm.sh runs a real
 * one. */
#include "staged.h"

#include "study/slurm.h"

#define ARRAY "--cpus-per-task=2 --signal=B:USR1@120 "
#define KILL  "--kill-on-invalid-dep=yes "
#define MODE  "--requeue --open-mode=append --output=slurm/"

TEST_IN_FOLDER(test_submission)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = QUIETLY;

    assert_ok(ks_slurm_submit(stage.graph, scratch_folder, &s));
    assert_string_equal(
        file_text("slurm.calls"),
        "sbatch --parsable --job-name=some:train --array=0-1 " ARRAY MODE
        "train-%A_%a.log slurm/task.sh train\n"
        "sbatch --parsable --job-name=some:analyze --array=0-1 " ARRAY
        "--dependency=aftercorr:101 " KILL MODE "analyze-%A_%a.log slurm/task.sh analyze\n"
        "sbatch --parsable --job-name=some:plot --dependency=afterok:101:102 " KILL MODE
        "plot-%j.log slurm/task.sh plot\n");
}

/* --sbatch, --jobs and --keep-going; the given options come last, so that they count. */
TEST_IN_FOLDER(test_options)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = QUIETLY;

    s.jobs = 7;
    s.keep_going = true;
    assert_ok(ks_slurm_add_options(&s, "--time=1:00:00  -p 'long'"));
    assert_ok(ks_slurm_add_options(&s, "--mem=4G"));
    assert_string_equal(s.options, " --time=1:00:00 -p long --mem=4G");
    assert_ok(ks_slurm_submit(stage.graph, scratch_folder, &s));
    assert_int_equal(count(file_text("slurm.calls"), "--array=0-1%7 "), 2);
    assert_int_equal(count(file_text("slurm.calls"), "--dependency=afterany:101:102 "), 1);
    assert_int_equal(
        count(file_text("slurm.calls"), ".log --time=1:00:00 -p long --mem=4G slurm/task.sh "), 3);
    assert_fails(ks_slurm_add_options(&s, "-p long\\"), KS_USAGE, "found '-p long");
    assert_fails(ks_slurm_add_options(&s, "a\nb"), KS_USAGE, "--sbatch: expected no control");
    free(s.options);
}

/* A task is only submitted for what is missing, and only waits for a training that is. */
TEST_IN_FOLDER(test_only_what_is_missing)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = QUIETLY;

    write_trained(&stage.graph->job[1]);
    assert_ok(ks_slurm_submit(stage.graph, scratch_folder, &s));
    assert_int_equal(count(file_text("slurm.calls"), "some:train --array=0 "), 1);
    assert_int_equal(count(file_text("slurm.calls"), "some:analyze --array=0 " ARRAY "--dependency="
                                                     "aftercorr:101 "),
                     1);
    assert_int_equal(count(file_text("slurm.calls"), "some:analyze --array=1 " ARRAY MODE), 1);
    assert_int_equal(count(file_text("slurm.calls"), "--dependency=afterok:101:102:103 "), 1);
    write_trained(&stage.graph->job[0]);
    for (size_t i = stage.graph->n_runs; i < stage.graph->n_jobs; i++)
        write_text(stage.graph->job[i].target[0], "");
    write_text("slurm.calls", "");
    assert_ok(ks_slurm_submit(stage.graph, scratch_folder, &s));
    assert_int_equal(count(file_text("slurm.calls"), "sbatch "), 1);
    assert_int_equal(count(file_text("slurm.calls"), "some:plot --requeue "), 1);
}

/* Either all jobs are submitted or none. */
TEST_IN_FOLDER(test_refused_submission)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = QUIETLY;

    write_text("refused", "3");
    assert_fails(ks_slurm_submit(stage.graph, scratch_folder, &s), KS_RUN,
                 "sbatch failed (exit status 1): sbatch: error: invalid partition");
    assert_contains(file_text("slurm.calls"), "\nscancel 101 102\n");
    write_text("slurm.calls", "");
    write_text("refused", "1");
    assert_fails(ks_slurm_submit(stage.graph, scratch_folder, &s), KS_RUN, "invalid partition");
    assert_null(strstr(file_text("slurm.calls"), "scancel"));
}

/* The printed commands, run by a shell, submit the same. */
TEST_IN_FOLDER(test_printed_submission)
{
    struct stage stage = stage_with_slurm(":");
    struct ks_slurm s = QUIETLY;
    static char submitted[1 << 16];
    FILE *out = fopen(scratch("commands"), "w");

    assert_ok(ks_slurm_add_options(&s, "--comment='a b'"));
    assert_non_null(out);
    assert_ok(ks_slurm_print(stage.graph, scratch_folder, &s, out));
    assert_int_equal(fclose(out), 0);
    assert_string_equal(file_text("slurm.calls"), "");
    assert_ok(ks_slurm_submit(stage.graph, scratch_folder, &s));
    snprintf(submitted, sizeof submitted, "%s", file_text("slurm.calls"));
    write_text("slurm.calls", "");
    write_script("bin/sbatch", "#!/bin/sh\necho \"sbatch $*\" >>slurm.calls\n"
                               "echo $((100 + $(grep -c sbatch slurm.calls)))\n");
    assert_int_equal(system(text_of("sh -e %s", scratch("commands"))), 0);
    assert_string_equal(file_text("slurm.calls"), submitted);
    free(s.options);
}

/* --- the queue --- */

static void write_queue(const char *folder)
{
    write_text("queue", text_of("12|0|RUNNING|node7|some:train|%s\n"
                                "12|1|PENDING||some:train|%s\n"
                                "13|N/A|PENDING||some:plot|%s\n"
                                "14|0|RUNNING|node8|other:train|/elsewhere\n",
                                folder, folder, folder));
}

TEST_IN_FOLDER(test_queue)
{
    struct ks_slurm_task *task;
    size_t n;

    stage_with_slurm(":");
    write_queue(scratch_folder);
    assert_ok(ks_slurm_queue(scratch_folder, &n, &task)); /* nothing was submitted from here */
    assert_int_equal(n, 0);
    write_text("slurm/task.sh", "");
    assert_ok(ks_slurm_queue(scratch_folder, &n, &task));
    assert_int_equal(n, 3);
    assert_int_equal(task[0].job, 12);
    assert_int_equal(task[1].run, 1);
    assert_string_equal(task[0].kind, "train");
    assert_string_equal(task[0].state, "RUNNING");
    assert_string_equal(task[0].node, "node7");
    assert_string_equal(task[1].node, "");
    assert_true(task[2].run == SIZE_MAX);
    free(task);
    assert_fails(ks_slurm_refuse(scratch_folder), KS_USAGE, "has 3 tasks of this study");
    assert_contains(ks_error_text(), "scancel 12 13");
    write_queue("/elsewhere");
    assert_ok(ks_slurm_refuse(scratch_folder));
    write_text("squeue.fails", "");
    assert_fails(ks_slurm_refuse(scratch_folder), KS_RUN, "squeue failed: no controller; if");
    assert_ok(ks_slurm_refuse("/"));
}
