/* kappascope-scores: scores over tasks from tables of returns and from folders of studies, by
 * numbers computed by hand; what it refuses, leaves out and warns of; its files. */
#include "programs.h"

#include "core/memory.h"
#include "core/process.h"
#include "results/scores.h"

/* Steps 0, 100 and 400. Normalized by 1000, the four runs of dm_control score
 *
 *   step 0:   0  .1 .2 .3     IQM (.1 + .2)/2 = .15
 *   step 100: .1 .3 .5 .9         (.3 + .5)/2 = .4
 *   step 400: .2 .6 .8 1          (.6 + .8)/2 = .7
 *
 * so the area is (100 (.15 + .4)/2 + 300 (.4 + .7)/2)/400 = .48125. Of dog-run alone the means are
 * .05, .2, .4 (area .25625), of hopper-hop .25, .7, .9 (area .71875). */
static const char HAND[] =
    "method,env,seed,env_step,return\n"
    "x,dog-run,0,0,0\nx,dog-run,0,100,100\nx,dog-run,0,400,200\n"
    "x,dog-run,1,0,100\nx,dog-run,1,100,300\nx,dog-run,1,400,600\n"
    "x,hopper-hop,0,0,200\nx,hopper-hop,0,100,500\nx,hopper-hop,0,400,800\n"
    "x,hopper-hop,1,0,300\nx,hopper-hop,1,100,900\nx,hopper-hop,1,400,1000\n";
static const char HEADER[] = "system,suite,tasks,runs,first_step,last_step,evaluations,iqm,iqm_low,"
                             "iqm_high,area,area_low,area_high\n";

/* Runs the program with these arguments, in which %s is the folder of the tree. */
static int scores(const char *format)
{
    return run_here("kappascope-scores",
                    text_of(format, scratch_folder, scratch_folder, scratch_folder));
}

/* The exit status, and words of what is printed, in so many lines (0: any). */
static void says(int status, const char *arguments, const char *words, size_t lines)
{
    assert_int_equal(scores(arguments), status);
    assert_said(words, lines);
}

TEST_IN_FOLDER(test_table)
{
    write_text("hand.csv", HAND);
    assert_int_equal(scores("%s/hand.csv --csv --resamples 0 -q"), 0);
    assert_string_equal(file_text("said"),
                        text_of("%sx,dm_control,2,4,0,400,3,0.7,-,-,0.48125,-,-\n"
                                "x,dm_control-easy,1,2,0,400,3,0.9,-,-,0.71875,-,-\n"
                                "x,dm_control-hard,1,2,0,400,3,0.4,-,-,0.25625,-,-\n"
                                "x,total,2,4,0,400,3,0.7,-,-,0.48125,-,-\n",
                                HEADER));
    says(0, "%s/hand.csv --csv --resamples 0 -q --every 200",
         "x,total,2,4,0,400,2,0.7,-,-,0.425,-,-\n", 5);
    assert_int_equal(scores("%s/hand.csv --csv --resamples 0 -q --raw"), 0);
    assert_string_equal(file_text("said"), text_of("%sx,dog-run,1,2,0,400,3,400,-,-,256.25,-,-\n"
                                                   "x,hopper-hop,1,2,0,400,3,900,-,-,718.75,-,-\n",
                                                   HEADER));
}

/* With two seeds a task, resamples of dog-run's last step are .2, .4 and .6: so are the ends of its
 * interval; with few seeds they are too narrow. */
TEST_IN_FOLDER(test_intervals)
{
    write_text("hand.csv", HAND);
    says(0, "%s/hand.csv -q", "0.400 [0.200, 0.600]", 0);
    assert_said("warning: x: tasks with fewer than five seeds: their bootstrap intervals", 6);
    write_text("one.csv", "env,seed,env_step,return\ndog-run,0,0,100\ndog-run,0,5,200\n");
    says(0, "%s/one.csv -q", "one     dm_control", 0); /* the system has the file's name */
    assert_said("0.200 [-]", 0);
    assert_said("warning: one: a line whose tasks have one seed each has no interval", 0);
    says(0, "%s/hand.csv %s/one.csv -q", "warning: one: 1 of 2 tasks", 0);
    assert_said("warning: one: steps 0 to 5, but x: 0 to 400", 0);
}

/* The task without random and target score is left out, and said to be. Its step 50 is not asked
 * for by tasks that do not count. */
TEST_IN_FOLDER(test_task_without_range)
{
    write_text("hand.csv", text_of("%s%s", HAND, "x,HumanoidStandup-v4,0,50,7\n"));
    says(0, "%s/hand.csv --csv --resamples 0 -q",
         "2 of 3 tasks: HumanoidStandup-v4 is left out: no random and no target score", 6);
    assert_said("x,total,2,4,0,400,3,0.7,", 0);
    write_text("alone.csv", "env,seed,env_step,return\nHumanoidStandup-v4,0,0,100\n");
    says(2, "%s/alone.csv", "alone: HumanoidStandup-v4: no random or no target score is published",
         1);
    says(0, "%s/alone.csv --raw -q --resamples 0", "alone   HumanoidStandup-v4", 2);
}

TEST_IN_FOLDER(test_systems)
{
    write_text("two.csv", "exp_name,env_name,seed,metric,env_step,value\n"
                          "a,dog-run,0,r,0,100\nb,dog-run,0,r,0,200\na,dog-run,1,r,0,300\n");
    says(0, "%s/two.csv -q --csv --systems b,a",
         "evaluations,iqm,iqm_low,iqm_high,area,area_low,area_high\nb,dm_control,1,1,0,0,1,"
         "0.2,-,-,-,-,-\n",
         0);
    assert_said("\na,total,1,2,0,0,1,0.2,0.1,0.3,-,-,-\n", 0);
    says(0, "%s/two.csv -q --csv --resamples 0 --systems a", "a,total", 4);
    says(0, "%s/two.csv -q --csv --resamples 0 --systems a,b,a", "a,total", 7);
    assert_int_equal(count(file_text("said"), "a,total"), 1);
    says(2, "%s/two.csv --systems c", "--systems: no scores of 'c'", 1);
    says(2, "%s/two.csv --systems ,", "--systems: expected names", 1);
}

/* --- studies --- */

/* A study of one task with two seeds; `hidden`: a setting. */
static void write_study(const char *env, int hidden)
{
    write_text(
        text_of("%s/study.study", env),
        text_of("[study]\nenv = %s\narchitectures = bn+ce\nseeds = 0..1\nsteps = 1000\n"
                "[train]\nhidden = %d\nrandom_steps = 100\ncheckpoints = 2\nevaluations = 2\n",
                env, hidden));
    for (int seed = 0; seed < 2; seed++)
        write_text(text_of("%s/runs/%s/bn+ce/seed%d/progress.csv", env, env, seed),
                   text_of("env_step,update,return_mean,success\n0,0,0,0\n500,9,%d,0.5\n500,9,,\n"
                           "750,9,,\n1000,19,%d,0.%d\n",
                           100 + 200 * seed, 400 + 200 * seed, 5 + 5 * seed));
}

/* dog-run: 0, .2, .5; myo-reach by success, of which the second run ends at 0.10: 0, .5, .3. */
TEST_IN_FOLDER(test_studies)
{
    write_study("dog-run", 64);
    write_study("myo-reach", 64);
    says(0, "%s/dog-run %s/myo-reach --csv --resamples 0",
         "bn+ce,dm_control,1,2,0,1000,3,0.5,-,-,0.225,-,-\n", 5);
    assert_said("bn+ce,MyoSuite,1,2,0,1000,3,0.3,-,-,0.325,-,-\n", 0);
    assert_said("bn+ce,total,2,4,0,1000,3,0.45,-,-,", 0); /* .4 and .5 of .1 .4 .5 .6 */
    write_study("dog-run", 128);
    says(0, "%s/dog-run %s/myo-reach --csv --resamples 0", "warning: bn+ce: hidden=128 in ", 6);
    assert_said(", but hidden=64 in ", 0);
}

TEST_IN_FOLDER(test_unfinished_studies)
{
    const char *const progress = "dog-run/runs/dog-run/bn+ce/seed1/progress.csv";

    write_study("dog-run", 64);
    write_text(progress, "env_step,return_mean\n0,0\n500,300\n1000,nan\n");
    says(2, "%s/dog-run",
         "dog-run, bn+ce, seed 1, step 1000: the score is missing or not a finite number", 1);
    says(2, "%s/dog-run --grid common", "the score is missing or not a finite number", 1);
    says(0, "%s/dog-run --missing drop --csv -q", "warning: --missing drop: runs left out: 1", 0);
    assert_said("bn+ce,total,1,1,0,1000,3,0.4,-,-,", 0);
    write_text(progress, "env_step,return_mean\n0,0\n1000,500\n");
    says(2, "%s/dog-run", "seed 1, step 500: the score is missing (", 1);
    says(0, "%s/dog-run --grid common --csv -q --resamples 0",
         "bn+ce,total,1,2,0,1000,2,0.45,-,-,0.225,", 0);
    says(0, "%s/dog-run --every 1000 --csv -q --resamples 0", "total,1,2,0,1000,2,0.45,", 0);
    says(0, "%s/dog-run --missing drop --csv -q --resamples 0", "total,1,1,0,1000,3,0.4,", 0);
    write_text("short.csv", "env,seed,step,score\ndog-run,0,0,1\ndog-run,0,50,2\ndog-run,1,0,4\n");
    says(2, "%s/short.csv --grid common", "50: the score is missing at the last step of all", 1);
    assert_null(strstr(file_text("said"), "--grid common")); /* which is given */
    says(0, "%s/short.csv --grid common --missing drop -q", "runs left out: 1", 0);
    assert_int_equal(unlink(scratch(progress)), 0);
    says(2, "%s/dog-run",
         "seed1/progress.csv: dog-run, bn+ce, seed 1, step 1000: the score is missing", 1);
    write_text(progress, "env_step,reward\n0,1\n");
    says(2, "%s/dog-run --missing drop",
         "seed1/progress.csv: expected a column 'return_mean', found none", 1);
}

/* --- files --- */

TEST_IN_FOLDER(test_files)
{
    char *gnuplot = NULL, text[4096], *out = text;

    if (ks_locate_program("gnuplot", &gnuplot) != KS_OK)
        skip();
    free(gnuplot);
    for (const char *c = HAND; *c; c++) /* a name that scripts and pages could take for their own */
        out += sprintf(out, c > HAND && c[-1] == '\n' && *c == 'x' ? "#'<b>`%%$2_^{y}" : "%c", *c);
    write_text("hand.csv", text);
    assert_int_equal(scores("%s/hand.csv --out %s/out --resamples 100"), 0);
    assert_int_equal(strncmp(file_text("out/tables/scores.csv"), HEADER, strlen(HEADER)), 0);
    assert_contains(file_text("out/tables/scores.csv"), "\n#'<b>`%$2_^{y},total,2,4,");
    assert_contains(file_text("out/tables/score_curves.csv"),
                    "system,suite,env_step,iqm,iqm_low,iqm_high\n#'<b>`%$2_^{y},dm_control,0"
                    ",0.15,");
    assert_contains(file_text("out/tables/score_curves.csv"), ",total,100,0.4,");
    assert_memory_equal(file_text("out/figures/scores.png"), "\x89PNG", 4);
    assert_memory_equal(file_text("out/figures/scores.pdf"), "%PDF", 4);
    assert_contains(file_text("out/figures/scores.svg"),
                    "<title>#'&lt;b>`%$2_^{y}, dm_control-hard (tasks: 1): area 0.2562 [");
    assert_contains(file_text("out/figures/scores.svg"), "dm_control");
    assert_int_equal(scores("%s/hand.csv --out %s/out --raw --resamples 0"), 0);
    assert_contains(file_text("out/tables/scores.csv"), ",dog-run,1,2,");
    assert_false(exists("out/figures/scores.png") || exists("out/figures/scores.svg"));
    assert_int_equal(scores("%s/hand.csv --out %s/plain --raw --resamples 0"), 0);
    assert_true(exists("plain/tables/scores.csv"));
    assert_false(exists("plain/figures"));
}

/* Everything that is wrong gives one line and exit status 2, before anything is written. */
TEST_IN_FOLDER(test_refusals)
{
    static const struct {
        const char *arguments, *words;
    } cases[] = {
        {"", "expected folders of studies or CSV files"},
        {"%s/nothing", "/nothing: cannot be opened"},
        {"%s", "/study.study: cannot be opened"},
        {"%s/hand.csv --missing ignore", "--missing: expected error or drop, found 'ignore'"},
        {"%s/hand.csv --grid 3", "--grid: expected all or common, found '3'"},
        {"%s/hand.csv --every 0", "--every: expected an integer from 1, found '0'"},
        {"%s/hand.csv --resamples -1", "--resamples: expected an integer from 0"},
        {"%s/hand.csv %s/hand.csv", "hand.csv: dog-run, x, seed 0, step 0: two scores"},
        {"%s/hand.csv --every 7000 --systems y", "no scores of 'y'"},
        {"%s/unknown.csv", "my-task: unknown task: it has no random and no target score (--raw"},
        {"%s/myo.csv", "myo-reach, myo, seed 0, step 0: expected a share of successful episodes"},
        {"%s/quoted.csv", "quoted.csv:2: env: expected a name without quotes, found '\"dog-run\"'"},
        {"%s/headless.csv",
         "headless.csv: expected one column of the names env, env_name, task, found"},
        {"%s/hand.csv --out %s/hand.csv", "hand.csv"},
    };

    write_text("hand.csv", HAND);
    write_text("unknown.csv", "env,seed,step,score\nmy-task,0,0,1\n");
    write_text("myo.csv", "env,seed,step,score\nmyo-reach,0,0,350\n");
    write_text("quoted.csv", "env,seed,step,score\n\"dog-run\",0,0,1\n");
    write_text("headless.csv", "dog-run,0,0,1\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool has_out = strstr(cases[i].arguments, "--out") != NULL;

        assert_int_equal(scores(text_of("%s %s", cases[i].arguments,
                                        has_out ? "--resamples 0 -q" : "--out %s/out")),
                         2);
        assert_said(cases[i].words, 1);
        assert_false(exists("out"));
    }
    assert_string_equal(file_text("hand.csv"), HAND);
}

/* --- the library --- */

/* Every allocation may fail. */
TEST_IN_FOLDER(test_memory)
{
    const struct ks_score_query query = {.normalize = true};
    struct ks_score_summary summary = {0};
    struct starved s = {.least = 30};

    write_text("hand.csv", HAND);
    write_study("dog-run", 64);
    while (starving(&s)) {
        struct ks_score_rows rows = {0};

        s.status = ks_score_rows_add_csv(scratch("hand.csv"), &rows);
        if (s.status == KS_OK)
            s.status = ks_score_rows_add_study(scratch("dog-run"), &rows);
        if (s.status == KS_OK)
            s.status = ks_score_summary_new(&rows, &query, 0, &summary);
        if (s.status == KS_OK)
            assert_int_equal(summary.n, 4 + 3);
        ks_score_summary_clear(&summary);
        summary = (struct ks_score_summary){0};
        ks_score_rows_free(&rows);
    }
}
