#include "staged.h"

#include <time.h>

RELEASES(free_study, ks_study_free)

ks_status study_of_text(const char *text, struct ks_study **study)
{
    write_text("some.study", text);
    KS_TRY(ks_study_read(scratch("some.study"), KS_STUDY_RUN, study));
    hold_object(*study, free_study);
    return KS_OK;
}

struct ks_study *good_study(const char *text)
{
    struct ks_study *study = NULL;

    assert_ok(study_of_text(text, &study));
    return study;
}

void write_script(const char *name, const char *text)
{
    write_text(name, text);
    assert_int_equal(chmod(scratch(name), 0755), 0);
}

RELEASES(free_graph, ks_graph_free)

struct stage stage_of(const char *text)
{
    const struct ks_graph_programs programs = {.train = scratch("bin/fake train"),
                                               .analyze = scratch("bin/fake-analyze")};
    struct stage stage = {good_study(text), NULL};

    assert_ok(ks_graph_new(stage.study, &programs, &stage.graph));
    hold_object(stage.graph, free_graph);
    assert_ok(ks_graph_write(stage.graph, scratch_folder));
    return stage;
}

struct stage stage_new(const char *behaviour)
{
    write_text("calls", "");
    write_text("behave", behaviour);
    write_script("bin/fake train", FAKE_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    return stage_of(TWO_RUNS);
}

bool job_is_done(struct ks_graph *graph, size_t i)
{
    assert_ok(ks_graph_look(graph, scratch_folder));
    return graph->job[i].done;
}

void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

void wait_for(const char *name)
{
    for (int i = 0; i < 500 && !exists(name); i++)
        nap();
    assert_true(exists(name));
}

void write_trained(const struct ks_graph_job *training)
{
    write_text(text_of("%s/run.json", training->folder),
               "{\n  \"state\": \"finished\",\n  \"env_step\": 8\n}\n");
    for (size_t i = 0; i < training->n_targets; i++)
        write_text(training->target[i], "");
}

void run_printed(const struct stage *stage)
{
    FILE *out = fopen(scratch("commands"), "w");

    assert_non_null(out);
    assert_ok(ks_graph_print(stage->graph, scratch_folder,
                             text_of("cp '%s' study.study", scratch("some.study")),
                             scratch("bin/fake plot"), out));
    assert_int_equal(fclose(out), 0);
    assert_int_equal(
        system(text_of("MAKELEVEL=1 sh -e %s 2>%s", scratch("commands"), scratch("said"))), 0);
}

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

struct stage stage_with_slurm(const char *behaviour)
{
    write_script("bin/sbatch", FAKE_SBATCH);
    write_script("bin/scancel", FAKE_SCANCEL);
    write_script("bin/scontrol", FAKE_SCONTROL);
    write_script("bin/squeue", FAKE_SQUEUE);
    write_text("slurm.calls", "");
    write_text("refused", "0");
    write_text("queue", "");
    if (!strstr(getenv("PATH"), scratch_folder)) {
        setenv("PATH", text_of("%s:%s", scratch("bin"), getenv("PATH")), 1);
    }
    return stage_new(behaviour);
}
