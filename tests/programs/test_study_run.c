/* Studies run by the programs themselves, with small networks: in stages, interrupted, with damaged
 * files. */
#include "gnuplots.h"
#include "staged.h"

#include <signal.h>
#include <time.h>

#include "io/spectrum.h"

static const char STUDY[] = "[study]\nenv = cartpole-balance\narchitectures = bn+ce%s\nseeds = %s\n"
                            "steps = 800\n%s"
                            "[train]\nhidden = 16\ndepth = 1\nactor_hidden = 16\nactor_depth = 1\n"
                            "batch = 16\nrandom_steps = 50\nreplay = 1000\ncheckpoints = 4\n"
                            "evaluations = 4\neval_episodes = 1\nanalysis_minibatches = 1\n"
                            "threads = 1\n[analyze]\norder = 8\n"
                            "[analyze xqc]\ncompat = xqc\norder = 8\n";

static const char *const steps[] = {"000000100", "000000200", "000000400", "000000600",
                                    "000000800"};
enum { STEPS = sizeof steps / sizeof *steps };

/* Runs the study "FOLDER.study" in FOLDER. */
static int run_study(const char *folder, const char *options)
{
    return run_here("kappascope-study",
                    text_of("%s.study --out %s -j2 %s", scratch(folder), scratch(folder), options));
}

/* The study succeeds and prints these words, in so many lines (0: any). */
static void says(const char *folder, const char *options, const char *words, size_t lines)
{
    assert_int_equal(run_study(folder, options), 0);
    assert_said(words, lines);
}

static void set_study(const char *folder, const char *architectures, const char *seeds,
                      const char *stop)
{
    write_text(text_of("%s.study", folder), text_of(STUDY, architectures, seeds, stop));
}

/* Changes the order of [analyze] in a study that has no further text behind it. */
static void set_order(const char *folder, char digit)
{
    char text[1024];

    snprintf(text, sizeof text, STUDY, "", "0", "");
    strstr(text, "order = 8")[strlen("order = ")] = digit;
    write_text(text_of("%s.study", folder), text);
}

static const char *run_file(const char *folder, const char *run_name, const char *step,
                            const char *ending)
{
    return text_of("%s/runs/cartpole-balance/%s/%s%s%s", folder, run_name, step ? "step_" : "",
                   step ? step : "", ending);
}

/* Both studies have the same spectra and returns, bit for bit. */
static void assert_same_run(const char *a, const char *b, const char *run_name)
{
    static const char *const endings[] = {".spectrum.h5", ".xqc.spectrum.h5"};

    for (size_t i = 0; i < 2 * STEPS; i++) {
        struct ks_spectrum *x = read_spectrum(
                               scratch(run_file(a, run_name, steps[i / 2], endings[i % 2]))),
                           *y = read_spectrum(
                               scratch(run_file(b, run_name, steps[i / 2], endings[i % 2])));

        assert_int_equal(x->order, y->order);
        assert_memory_equal(x->ritz, y->ritz, x->probes * x->order * sizeof *x->ritz);
    }
    assert_same_files(scratch(text_of("%s/tables/returns.csv", a)),
                      scratch(text_of("%s/tables/returns.csv", b)));
}

/* A study run in stages, to which a seed and an architecture are added, gives the same results as
 * one run without interruption. */
TEST_IN_FOLDER(test_stages)
{
    draw_nothing();
    set_study("staged", "", "0", "stop = 300\n");
    assert_int_equal(run_study("staged", ""), 0);
    says("staged", "--status", "checkpoints  2/2  spectra  4/4  stopped at step 300\n", 2);
    set_study("staged", "", "0", "stop = 500\n");
    says("staged", "--status",
         "checkpoints  2/3  spectra  4/6  stopped at step 300, will go on, about ", 4);
    assert_said("\ntime left: about ", 4);
    assert_said("from what is done in this folder (trainings: 1, spectra: 4)\n", 4);
    says("staged", "", "to do: 1 x train, 2 x analyze (4 of 7 jobs are done)", 0);
    set_study("staged", " ln+mse", "1 0", "");
    assert_int_equal(run_study("staged", ""), 0);
    says("staged", "--status", "4 runs: 20 of 20 checkpoints, 40 of 40 spectra\n", 5);
    set_study("straight", " ln+mse", "1 0", "");
    assert_int_equal(run_study("straight", ""), 0);
    assert_same_run("staged", "straight", "bn+ce/seed0");
    assert_same_run("staged", "straight", "ln+mse/seed1");
}

static void remove_checkpoints(const char *folder)
{
    assert_int_equal(
        system(text_of("find %s/runs -name 'step_*.h5' ! -name '*.spectrum.h5' -exec rm {} +",
                       scratch(folder))),
        0);
}

/* The study is refused, and nothing is removed or written. */
static void assert_refused(const char *folder, const char *words)
{
    const char *name = text_of("%s/study.study", folder), *before = file_text(name);
    const char *find = text_of("find %s/runs -type f", scratch(folder));

    assert_int_equal(system(text_of("%s >%s", find, scratch("before"))), 0);
    assert_int_equal(run_study(folder, "-q"), 2);
    assert_said(words, 1);
    assert_string_equal(file_text(name), before);
    assert_int_equal(system(text_of("%s | diff %s - >&2", find, scratch("before"))), 0);
    assert_int_equal(run_study(folder, "-q --dry-run"), 0);
    assert_said("# without --retrain this is refused: train cartpole-balance/", 0);
    assert_int_equal(run_study(folder, "-q --dry-run --retrain"), 0);
    assert_null(strchr(file_text("said"), '#'));
}

/* Without its checkpoints a run is complete, goes on when `stop` is raised, and is drawn. If a
 * further analysis or other options need them, or the resume point of a stopped run is gone, it is
 * trained from the beginning with --retrain, and refused without. All results are those of a run
 * that kept them. */
TEST_IN_FOLDER(test_removed_checkpoints)
{
    const char *table;

    draw_nothing();
    set_study("r", "", "0", "stop = 300\n");
    assert_int_equal(run_study("r", ""), 0);
    remove_checkpoints("r");
    says("r", "--dry-run", "# to do: 0 of 1 trainings, 0 of 4 spectra\n", 0);
    set_study("r", "", "0", "stop = 500\n");
    says("r", "", "to do: 1 x train, 2 x analyze (4 of 7 jobs are done)", 0);
    says("r", "--status", "checkpoints  1/3  spectra  6/6  stopped at step 500\n", 2);
    set_study("r", "", "0", "");
    assert_int_equal(
        rename(scratch(run_file("r", "bn+ce/seed0", NULL, "resume")), scratch("r/kept")), 0);
    says("r", "--dry-run",
         "# train cartpole-balance/bn+ce/seed0: has to start from the beginning: it was stopped at "
         "step 500, but its resume point is gone\n",
         0);
    assert_refused("r", "it was stopped at step 500, but its resume point is gone; --retrain ");
    assert_int_equal(
        rename(scratch("r/kept"), scratch(run_file("r", "bn+ce/seed0", NULL, "resume"))), 0);
    assert_int_equal(run_study("r", ""), 0);
    remove_checkpoints("r");
    says("r", "--status", "checkpoints  0/5  spectra 10/10  finished\n", 2);
    table = file_text("r/tables/checkpoints.csv");
    assert_int_equal(run_here("kappascope-plot", scratch("r")), 0);
    assert_string_equal(file_text("r/tables/checkpoints.csv"), table);
    set_study("straight", "", "0", "");
    assert_int_equal(run_study("straight", ""), 0);
    assert_same_run("r", "straight", "bn+ce/seed0");
    set_order("r", '9');
    assert_refused("r", "cartpole-balance/bn+ce/seed0: has to start from the beginning: "
                        "step_000000100.spectrum.h5 has to be made, but its checkpoint "
                        "step_000000100.h5 is gone; --retrain allows that\n");
    set_study("r", "", "0", "\n[analyze more]\norder = 4\n");
    says("r", "--status", "spectra 10/15  finished, has to start from the beginning (--retrain)",
         0);
    assert_refused("r", "step_000000100.more.spectrum.h5 has to be made, but its checkpoint ");
    says("r", "--retrain",
         "seed0: has to start from the beginning: step_000000100.more.spectrum.h5 has to be "
         "made, but its checkpoint step_000000100.h5 is gone\n",
         0);
    assert_said("to do: 1 x train, 15 x analyze (0 of 16 jobs are done)", 0);
    assert_same_run("r", "straight", "bn+ce/seed0");
}

/* Starts the study, and stops it when the file exists. */
static void interrupt(const char *folder, const char *file, int signal_number)
{
    const char *bin = getenv("KS_BIN") ? getenv("KS_BIN") : "build/bin";
    const pid_t child = fork();
    int result;

    assert_true(child >= 0);
    if (child == 0) {
        execl(text_of("%s/kappascope-study", bin), "kappascope-study", "-q", "-j2",
              text_of("%s.study", scratch(folder)), text_of("--out=%s", scratch(folder)),
              (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 2000 && !exists(file); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_int_equal(kill(child, signal_number), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(exists(file));
}

static void interrupt_twice(const char *folder)
{
    static const int signals[] = {SIGTERM, SIGKILL};

    for (size_t i = 0; i < 2; i++) {
        interrupt(folder, run_file(folder, "bn+ce/seed0", steps[i], ".h5"), signals[i]);
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* its jobs have ended, too */
    }
}

TEST_IN_FOLDER(test_interrupted_stage)
{
    draw_nothing();
    set_study("cut", "", "0", "stop = 600\n");
    interrupt_twice("cut");
    assert_int_equal(run_study("cut", ""), 0);
    says("cut", "--status", "checkpoints  4/4  spectra  8/8  stopped at step 600\n", 2);
    set_study("cut", "", "0", "");
    assert_int_equal(run_study("cut", ""), 0);
    set_study("straight", "", "0", "");
    assert_int_equal(run_study("straight", ""), 0);
    assert_same_run("cut", "straight", "bn+ce/seed0");
}

/* A killed run that has lost a checkpoint cannot go on: it starts from the beginning. */
TEST_IN_FOLDER(test_killed_run_without_checkpoint)
{
    draw_nothing();
    set_study("lost", "", "0", "");
    interrupt_twice("lost");
    assert_int_equal(unlink(scratch(run_file("lost", "bn+ce/seed0", steps[0], ".h5"))), 0);
    assert_refused("lost", "its checkpoint step_000000100.h5 is gone; --retrain allows that\n");
    assert_int_equal(run_study("lost", "-q --retrain"), 0);
    says("lost", "--status", "checkpoints  5/5  spectra 10/10  finished\n", 2);
}

/* What was said, without comments and without the memory for analyses, which varies. */
static const char *said_commands(void)
{
    static char text[1 << 16];
    size_t used = 0;
    bool comment = false;

    for (const char *c = file_text("said"); *c; c++) {
        comment = comment || *c == '#';
        if (!comment)
            text[used++] = *c;
        comment = comment && *c != '\n';
        if (used > 9 && strncmp(text + used - 9, "--memory=", 9) == 0)
            c += strspn(c + 1, "0123456789");
    }
    text[used] = '\0';
    return text;
}

/* The forecast measures what the folder's files do not tell. It consists of comments: the commands
 * stay the same. */
TEST_IN_FOLDER(test_forecast)
{
    const char *commands;

    draw_nothing();
    set_study("f", "", "0", "");
    assert_int_equal(run_study("f", "--dry-run --quiet"), 0);
    assert_null(strchr(file_text("said"), '#'));
    commands = said_commands();
    assert_int_equal(run_study("f", "--dry-run"), 0);
    assert_string_equal(said_commands(), commands);
    assert_said("# to do: 1 of 1 trainings, 10 of 10 spectra\n", 0);
    assert_said("steps and products measured now for 1 architecture, in one thread", 0);
    assert_said("# disk: at most ", 0);
    assert_int_equal(run_study("f", ""), 0);
    set_study("f", "", "0 1", "");
    says("f", "--dry-run", "# to do: 1 of 2 trainings, 10 of 20 spectra\n", 0);
    assert_said("from what is done in this folder (trainings: 1, spectra: 10)\n", 0);
    assert_int_equal(count(file_text("said"), "measured now"), 0);
}

/* How much tolerances need is not known before: from the first look to all limits. */
TEST_IN_FOLDER(test_forecast_with_tolerances)
{
    draw_nothing();
    set_study("t", "", "0", "\n[analyze fast]\ntolerance = lambda_max=0.1\nprobes = 200\n");
    says("t", "--dry-run",
         "#   less where tolerances are reached at once, more where only limits end", 0);
    assert_said("jobs at a time on as many processors: at most ", 0);
    assert_said("--tolerance=lambda_max=0.1 --probes=200", 0);
}

static void set_sha(const char *file, const char *sha, char old[65])
{
    struct ks_spectrum *s = NULL;
    struct ks_attribute *a;

    s = read_spectrum(scratch(file));
    a = (struct ks_attribute *)(uintptr_t)ks_attribute_find(&s->attributes, "checkpoint_sha256");
    assert_non_null(a);
    assert_int_equal(strlen(a->string), 64);
    memcpy(old, a->string, 65);
    if (sha) {
        memcpy(a->string, sha, 65);
        assert_ok(ks_spectrum_write(scratch(file), s));
    }
}

/* Four wrong spectra: unreadable, moved from another run, made by hand with other options, and of
 * another checkpoint. kappascope-plot refuses all but the last; kappascope-study computes exactly
 * these four again. */
TEST_IN_FOLDER(test_damaged_spectra)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    const char *damaged = "runs/cartpole-balance/bn+ce/seed0/step_000000100.spectrum.h5";
    char file[3][256], sha[65], again[65];
    const char *table;

    draw_nothing();
    set_study("s", "", "0 1", "stop = 200\n");
    assert_int_equal(run_study("s", ""), 0);
    table = file_text("s/tables/summary.csv");
    snprintf(file[0], 256, "s/%s", damaged);
    snprintf(file[1], 256, "%s", run_file("s", "bn+ce/seed0", steps[1], ".xqc.spectrum.h5"));
    snprintf(file[2], 256, "%s", run_file("s", "bn+ce/seed1", steps[1], ".spectrum.h5"));
    assert_int_equal(truncate(scratch(file[0]), 3000), 0);
    assert_int_equal(run_here("kappascope-plot", scratch("s")), 2);
    assert_said(damaged, 1);
    says("s", "--dry-run",
         "rm -f -- runs/cartpole-balance/bn+ce/seed0/step_000000100.spectrum.h5\n", 0);
    assert_int_equal(count(file_text("said"), "kappascope-analyze"), 1);
    assert_int_equal(rename(scratch(run_file("s", "bn+ce/seed1", steps[1], ".xqc.spectrum.h5")),
                            scratch(file[1])),
                     0);
    set_sha(file[2], zeros, sha);
    says("s", "--status", "2 runs: 4 of 4 checkpoints, 4 of 8 spectra", 8);
    assert_said("seed: expected 0, found 1: this spectrum has to be computed again\n", 8);
    assert_said("found 000000000000...: this spectrum has to be computed again\n", 8);
    assert_int_equal(run_here("kappascope-analyze",
                              text_of("--order 8 --weight-decay 2 %s",
                                      scratch(run_file("s", "bn+ce/seed1", steps[0], ".h5")))),
                     0);
    says("s", "--status", "2 runs: 4 of 4 checkpoints, 3 of 8 spectra", 9);
    assert_said("expected weight-decay=0, found weight-decay=2: this spectrum has to be", 9);
    assert_string_equal(file_text("s/tables/summary.csv"), table);
    says("s", "", "to do: 0 x train, 5 x analyze (5 of 10 jobs are done)", 0);
    assert_string_equal(file_text("s/tables/summary.csv"), table);
    set_sha(file[2], NULL, again);
    assert_string_equal(again, sha);
    says("s", "--status", "2 runs: 4 of 4 checkpoints, 8 of 8 spectra", 3);
}
