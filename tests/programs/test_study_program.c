/* kappascope and kappascope-study: messages, and which existing folders a study accepts. */
#include "staged.h"
#include "studies.h"

#include <sys/file.h>

#include "env/env.h"

TEST_IN_FOLDER(test_front_program)
{
    static const struct {
        const char *arguments;
        int status;
        const char *words;
        size_t lines;
    } cases[] = {
        {"no-such-command", 2, "'no-such-command'", 1},
        {"--no-such-option", 2, "'--no-such-option'", 1},
        {"../bin", 2, "", 0},
        {"", 2, "kappascope: expected a command", 1},
        {"--help", 0, "study    train, analyze and plot", 0},
        {"--version", 0, "HDF5", 0},
        {"study --help", 0, "kappascope-study - ", 0}, /* the command gets its arguments */
        {"plot a b", 2, "kappascope-plot: expected the folder", 1},
        {"plot --resamples x a", 2,
         "--resamples: expected an integer from 0 to 10000000, found 'x'", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run_here("kappascope", cases[i].arguments), cases[i].status);
        assert_said(cases[i].words, cases[i].lines);
    }
}

/* A row per task, with its sizes, under the name of its suite; then architectures and settings. */
TEST_IN_FOLDER(test_list)
{
    const char *suite = "";
    struct ks_env_about about;

    assert_int_equal(run_here("kappascope-train", "--list"), 0);
    assert_int_equal(strncmp(file_text("said"), "Environments ", 13), 0);
    for (size_t i = 0; ks_env_about(i, &about); i++) {
        const char *row = strstr(file_text("said"), text_of("\n  %s ", about.name));
        size_t observations, actions;
        double step;

        assert_non_null(row);
        assert_int_equal(sscanf(row, "%*s %zu %zu %lf", &observations, &actions, &step), 3);
        if (strcmp(about.suite, suite) != 0) { /* the heading stands in the line before */
            const char *line = row;

            while (line[-1] != '\n')
                line--;
            suite = about.suite;
            assert_int_equal(strncmp(line, suite, strlen(suite)), 0);
        }
        assert_int_equal(observations, about.observations);
        assert_int_equal(actions, about.actions);
        assert_close(step, about.control_step, 0);
    }
    assert_said("\nmyosuite\n  myo-key-turn ", 0);
    assert_said("\nhumanoid-bench: set HUMANOID_BENCH_DIR to the folder of ", 0);
    assert_said("\n\nArchitectures\n  bn+wn+ce ", 0);
    assert_said("\n\nSettings, with their defaults\n  hidden ", 0);
}

/* Writes the study GOOD; skips the test if there is no training program. */
static void start(void)
{
    if (run_here("kappascope-train", "--list") != 0)
        skip();
    write_text("some.study", GOOD);
}

static void run_study(const char *options, int expected)
{
    assert_int_equal(run_here("kappascope-study", text_of("%s --out %s %s", scratch("some.study"),
                                                          scratch("out/folder"), options)),
                     expected);
}

/* Its exit status, and words of what it prints, in so many lines (0: any). */
static void says(const char *options, int expected, const char *words, size_t lines)
{
    run_study(options, expected);
    assert_said(words, lines);
}

/* The study fails as soon as it starts its jobs. */
static void run_without_make(const char *options)
{
    setenv("MAKE", "/bin/false", 1);
    run_study(options, 1);
    unsetenv("MAKE");
}

TEST_IN_FOLDER(test_study_program_writes_nothing)
{
    static const char *const studies[][2] = {
        {"env = walker-runt\narchitectures=all\nseeds=0\nsteps=10\n",
         "some.study:2: env: unknown task 'walker-runt'"},
        {"env = bn+ce\narchitectures=all\nseeds=0\nsteps=10\n", /* a valid name */
         "some.study:2: env: unknown task 'bn+ce'"},
        {"env = walker-run\narchitectures=xx\nseeds=0\nsteps=10\n",
         "some.study:3: architectures: unknown architecture 'xx'"},
        {"env = walker-run\narchitectures=bn+ce\nseeds=0\nsteps=10\n[analyze]\nlayer = 99\n",
         "some.study:7: bn+ce: --layer: expected 0 to 13, found 99"}};
    static const char *const jobs[][2] = {
        {"--jobs=0", "'0'"},
        {"--jobs few", "'few'"},
        {"--jobs 65537", "'65537'"}}; /* make would block: its pipe holds 65536 bytes */

    start();
    for (size_t i = 0; i < sizeof studies / sizeof *studies; i++) {
        write_text("some.study", text_of("[study]\n%s", studies[i][0]));
        for (int dry = 0; dry < 2; dry++) {
            run_study(dry ? "--dry-run" : "", 2);
            assert_said(studies[i][1], 1);
        }
    }
    write_text("some.study", GOOD);
    run_says("kappascope-study",
             text_of("%s --dry-run --out \"`printf 'a\\nb'`\"", scratch("some.study")), 2,
             "--out: expected no control characters, found 'a\\x0ab'", 1);
    run_says("kappascope-study", "--dry-run \"`printf 'a\\nb.study'`\"", 2,
             "the study's path: expected no control characters, found 'a\\x0ab.study'", 1);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        run_study(jobs[i][0], 2);
        assert_said(text_of("--jobs: expected an integer from 1 to 4096, found %s", jobs[i][1]), 1);
    }
    says("--dry-run --quiet", 0, "--arch=dense+mse --seed=1 --steps=1000", 3 + 2 * 6 + 6 * 4 + 1);
    assert_said("/kappascope-plot .\n", 0);
    says("--status", 0, "walker-run/bn+wn+ce/seed3", 10);
    assert_said("checkpoints  0/4  spectra  0/4  waiting, about ", 10);
    assert_said("an estimate, from steps and products measured now for 2 architectures, ", 10);
    assert_false(exists("out"));
    run_says("kappascope-study", "no-such-study", 2,
             "no-such-study: neither a file nor the name of a shipped study", 1);
    assert_int_equal(run_here("kappascope-study", ""), 2);
}

/* --slurm needs sbatch, and --sbatch needs --slurm. */
TEST_IN_FOLDER(test_slurm_options)
{
    start();
    says("--sbatch=--time=1 --dry-run", 2, "--sbatch: expected only together with --slurm", 1);
    says("--slurm --sbatch '--time=1 -p a' --jobs 3 --dry-run --quiet", 0, "'--array=0-5%3' ", 4);
    assert_said(" --time=1 -p a slurm/task.sh plot) || exit\n", 4);
    assert_false(exists("out"));
}

/* The text of GOOD with one line replaced. */
static const char *changed(const char *line, const char *by)
{
    const char *at = strstr(GOOD, line);

    assert_non_null(at);
    return text_of("%.*s%s%s", (int)(at - GOOD), GOOD, by, at + strlen(line));
}

/* --status names the tasks that squeue lists for the folder; until they have ended, no other
 * command may work in it. */
TEST_IN_FOLDER(test_slurm_queue)
{
    start();
    setenv("PATH", text_of("%s:%s", scratch("bin"), getenv("PATH")), 1);
    write_text("bin/squeue", text_of("#!/bin/sh\necho '12|1|RUNNING|node7|some:train|%s'\n"
                                     "echo '13|1|PENDING||some:analyze|%s'\n",
                                     scratch("out/folder"), scratch("out/folder")));
    assert_int_equal(chmod(scratch("bin/squeue"), 0755), 0);
    write_text("some.study", GOOD);
    write_text("out/folder/study.study", GOOD);
    write_text("out/folder/slurm/task.sh", "");
    says("--status", 0, "waiting, train 12_1 RUNNING on node7", 11);
    assert_said("\nSlurm: 1 tasks are running, 1 are waiting\n", 11);
    setenv("MAKE", "/bin/false", 1);
    write_text("bin/sbatch", "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(scratch("bin/sbatch"), 0755), 0);
    says("", 2, "Slurm still has 2 tasks of this study in its queue", 1);
    run_study("--slurm", 2);
    unsetenv("MAKE");
    assert_said("cancel them with: scancel 12 13\n", 1);
    assert_false(exists("out/folder/study.mk"));
    write_text("out/folder/study.study", changed("steps = 1000", "steps = 1000\nstop = 400"));
    run_study("--status", 0); /* the runs of another study may have other numbers */
    assert_int_equal(count(file_text("said"), "node7"), 0);
    write_text("bin/squeue", "#!/bin/sh\necho no controller\nexit 1\n");
    says("--status", 0, "note: squeue failed: no controller\n", 11);
}

TEST_IN_FOLDER(test_folder_of_another_study)
{
    static const char *const different[][3] = {
        {"walker-run", "walker-walk", "'env'"},     {"dense+mse", "dense+ce", "'architectures'"},
        {"bn+wn+ce,", "bn+ce", "'architectures'"},  {"3 0..1", "0..2", "'seeds'"},
        {"steps = 1000", "steps = 999", "'steps'"}, {"gamma = auto", "gamma = 0.9", "'gamma'"},
        {"checkpoints = 3", "utd = 3", "'utd'"},    {"gamma", "threads = 7\ngamma", "'threads'"},
    };

    start();
    for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
        write_text("out/folder/study.study", changed(different[i][0], different[i][1]));
        says("", 2, "holds another study, which differs", 1);
        assert_said(different[i][2], 1);
    }
    assert_false(exists("out/folder/study.mk"));
}

/* Architectures and seeds may be added to a folder's study, and `stop` may change; nothing may be
 * removed. */
TEST_IN_FOLDER(test_folder_of_a_smaller_study)
{
    static const char *const fewer[][3] = {{", dense+mse", "", "'architectures'"},
                                           {"3 0..1", "1 3", "'seeds'"},
                                           {"steps = 1000", "steps = 1000\nstop = 400", NULL}};

    start();
    for (size_t i = 0; i < sizeof fewer / sizeof *fewer; i++) {
        write_text("out/folder/study.study", changed(fewer[i][0], fewer[i][1]));
        write_text("some.study", GOOD);
        says("--status", 0, "6 runs: 0 of 24 checkpoints, 0 of 24 spectra\n", 10);
        write_text("out/folder/study.study", GOOD);
        write_text("some.study", changed(fewer[i][0], fewer[i][1]));
        run_study("--status", fewer[i][2] ? 2 : 0);
        assert_said(fewer[i][2] ? fewer[i][2]
                                : "0 of 12 checkpoints, 0 of 12 spectra, up to step 400 of 1000",
                    fewer[i][2] ? 1 : 10);
    }
    says("--dry-run --quiet", 0, "--steps=1000 --stop-at=400 --set", 0);
}

/* Options that do not affect training may change; existing spectra then count as missing. */
TEST_IN_FOLDER(test_folder_of_other_analyses)
{
    static const char spectrum[] =
        "out/folder/runs/walker-run/dense+mse/seed1/step_000000200.spectrum.h5";
    static const struct {
        const char *line, *by;
        bool stale;
    } cases[] = {{"; a comment\n", "", false},
                 {"missing = drop", "grid = common", false},
                 {"order = 30\n", "order = 20\nprobes = 2\nmemory = 2G\n", true},
                 {"exact = no\n", "", false}, /* that is the default */
                 {"f64\n", "f64\noperator = ggn\n", true}};

    start();
    write_text("out/folder/study.study", GOOD);
    write_spectrum_at(spectrum, &(struct place){"dense+mse", 1, 200, NULL}, 2, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("some.study", changed(cases[i].line, cases[i].by));
        run_study("--status", 0);
        assert_said(cases[i].stale ? "0 of 24 spectra" : "1 of 24 spectra", 10 + cases[i].stale);
        assert_int_equal(
            count(file_text("said"),
                  "the options of [analyze] have changed: all its spectra would be computed"),
            cases[i].stale);
        says("--dry-run --quiet", 0, "/some.study study.study\n", 0);
        assert_int_equal(count(file_text("said"), "rm -f -- runs/"), cases[i].stale);
    }
    assert_string_equal(file_text("out/folder/study.study"), GOOD);
    assert_true(exists(spectrum));
    write_text("some.study", changed("order = 30\n", ""));
    run_without_make("");
    assert_said("the options of [analyze] have changed: all its spectra are computed again", 0);
    assert_false(exists(spectrum));
    assert_string_equal(file_text("out/folder/study.study"), changed("order = 30\n", ""));
}

/* Only the spectra of the changed section are computed again. Existing spectra of a new section
 * were left by an earlier study with unknown options, so they are, too. */
TEST_IN_FOLDER(test_folder_of_other_further_analyses)
{
    static const char further[] = "[analyze a]\norder = 3\n[analyze b]\norder = 4\n";
    static const char *const spectra[] = {
        "step_000000200.spectrum.h5", "step_000000200.a.spectrum.h5",
        "step_000000200.b.spectrum.h5", "step_000000200.c.spectrum.h5"};

    start();
    write_text("out/folder/study.study", text_of("%s%s", GOOD, further));
    for (size_t i = 0; i < 4; i++)
        write_spectrum_at(text_of("out/folder/runs/walker-run/dense+mse/seed1/%s", spectra[i]),
                          &(struct place){"dense+mse", 1, 200, NULL}, 2, false);
    copy_file(scratch("out/folder/study.study"), scratch("some.study"));
    says("--status", 0, "3 of 72 spectra", 10);
    write_text("some.study",
               text_of("%s[analyze c]\n[analyze b]\norder = 4\n[analyze a]\norder = 5\n", GOOD));
    says("--status", 0,
         "the options of [analyze a] have changed: all its spectra would be computed again\n", 11);
    assert_said("2 of 96 spectra", 11);
    run_study("--dry-run --quiet", 0);
    assert_int_equal(count(file_text("said"), "rm -f -- runs/"), 2);
    assert_said("rm -f -- runs/walker-run/dense+mse/seed1/step_000000200.a.spectrum.h5\n", 0);
    assert_said("rm -f -- runs/walker-run/dense+mse/seed1/step_000000200.c.spectrum.h5\n", 0);
    assert_said("kappascope-analyze --name=a --products=blas --order=5 --memory=", 0);
}

/* Training gets the value of --resume; only `any` allows another number of threads. */
TEST_IN_FOLDER(test_resume_option)
{
    start();
    says("--resume=some --dry-run", 2, "--resume: expected exact or any, found 'some'", 1);
    run_study("--resume=exact --dry-run -q", 0);
    assert_int_equal(count(file_text("said"), " --resume --quiet >"), 6);
    run_study("--resume=any --dry-run -q", 0);
    assert_int_equal(count(file_text("said"), " --resume=any --quiet >"), 6);
    write_text("out/folder/study.study", changed("gamma", "threads = 7\ngamma"));
    says("--status", 2, "differs from", 1);
    assert_said("in 'threads' (--resume=any accepts that)", 1);
    says("--resume=any --status", 0, "0 of 24 checkpoints", 10);
}

/* Jobs at a time share the memory, so their number is at most the number of jobs. */
TEST_IN_FOLDER(test_as_many_jobs_as_there_are)
{
    start();
    run_without_make("--jobs 4096");
    assert_said("to do: 6 x train, 24 x analyze (0 of 30 jobs are done), 30 at a time", 0);
}

/* The next study removes temporary files of a killed one. */
TEST_IN_FOLDER(test_leftovers)
{
    const char *path;
    char name[64];

    start();
    name_leftover(scratch("new"), name);
    path = text_of("out/folder/%s", name);
    write_text(path, "x");
    run_without_make("");
    assert_false(exists(path));
}

TEST_IN_FOLDER(test_folder_in_use)
{
    int lock;

    start();
    write_text("out/folder/study.study", GOOD);
    lock = open(scratch("out/folder"), O_RDONLY | O_DIRECTORY);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    says("", 2, "in use by another kappascope-study", 1);
    close(lock);
}
