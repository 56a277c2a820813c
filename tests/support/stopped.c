#include "stopped.h"

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
    char name[100];

    snprintf(name, sizeof name, "%s/%s", RUN, file);
    return scratch(name);
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
    assert_ptr_equal(strchr(process_said(RUN), '\n') + 1, strchr(process_said(RUN), '\0'));
    assert_state(RUN, "stopped");
    assert_int_equal(access(in_run("resume/point.0"), F_OK), 0);
}
