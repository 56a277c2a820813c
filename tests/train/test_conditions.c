/* Runs that are resumed under changed conditions. */
#include "readers.h"
#include "resuming.h"

/* run.json lists exactly these changes. */
static void assert_changes(json_t *expected)
{
    json_t *object = described(RUN);

    if (!json_equal(json_object_get(object, "changes"), expected))
        fail_msg("changes: %s", json_dumps(json_object_get(object, "changes"), 0));
    json_decref(object);
    json_decref(expected);
}

static double changes_in_checkpoint(const char *file)
{
    struct ks_checkpoint *c;
    double n;

    assert_ok(try_checkpoint(in_run(file), &c));
    n = ks_attribute_number(&c->attributes, "resumed_any");
    ks_checkpoint_free(c);
    return n;
}

/* Each condition alone is changed in the resume point, as another machine or version would have
 * written it. The computation does not change, so the rows are those of an uninterrupted run. */
TEST(test_each_condition)
{
    static const char *const names[] = {"threads", "kappascope",   "blas",    "blas_kernel",
                                        "mujoco",  "mujoco_flags", "products"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct image p = open_stopped_run();
        json_t *from = i == 0 ? json_integer(7) : json_string("other"),
               *to = json_incref(json_object_get(p.description, names[i]));

        assert_non_null(to);
        json_object_set(p.description, names[i], from);
        write_stopped_run(&p);
        assert_refused(KS_RESUME_EXACT, text_of("expected %s ", names[i]));
        assert_process_said(RUN, "; --resume=any accepts that and notes it in run.json\n");
        assert_resumes(KS_RESUME_ANY);
        assert_changes(json_pack("[{s:i, s:s, s:o, s:o}]", "env_step", STOPPED, "what", names[i],
                                 "from", from, "to", to));
        assert_same_file("run/progress.csv", "reference/progress.csv");
        assert_same_file("run/step_000000015.h5", "reference/step_000000015.h5");
        assert_close(changes_in_checkpoint("step_000000030.h5"), 1, 0);
        assert_true(isnan(changes_in_checkpoint("step_000000015.h5")));
    }
}

/* A changed processor name is recorded with the changes, but exact resuming does not depend on it.
 * */
TEST(test_processor)
{
    for (enum ks_resume how = KS_RESUME_EXACT; how <= KS_RESUME_ANY; how++) {
        struct image p = open_stopped_run();

        json_object_set_new(p.description, "processor", json_string("80386"));
        write_stopped_run(&p);
        assert_resumes(how);
        if (how == KS_RESUME_EXACT)
            assert_same_run(RUN, REFERENCE);
        else
            assert_changes(json_pack("[{s:i, s:s, s:s, s:s}]", "env_step", STOPPED, "what",
                                     "processor", "from", "80386", "to", ks_processor_name()));
    }
}

/* A resume point from before layers could multiply otherwise is one of blas: no condition differs,
 * so --resume=any is exact, too. */
TEST(test_before_products)
{
    for (enum ks_resume how = KS_RESUME_EXACT; how <= KS_RESUME_ANY; how++) {
        struct image p = open_stopped_run();

        assert_int_equal(json_object_del(p.description, "products"), 0);
        assert_int_equal(json_object_del(json_object_get(p.description, "settings"), "products"),
                         0);
        write_stopped_run(&p);
        assert_resumes(how);
        assert_same_run(RUN, REFERENCE);
    }
}

/* A different run is refused, and --resume=any is then not suggested. */
TEST(test_other_runs)
{
    static const char *const names[] = {"seed", "steps", "env", "architecture", "critic", "actor"};

    for (size_t i = 0; i < 7; i++) {
        struct image p = open_stopped_run();
        const char *name = i < 6 ? names[i] : "tau";
        char words[100];

        json_object_set_new(p.description, "blas_kernel", json_string("other"));
        if (i == 6)
            json_object_set_new(json_object_get(p.description, "settings"), name, json_real(0.006));
        else
            json_object_set_new(p.description, name,
                                i < 2 ? json_integer(6) : json_string("other"));
        write_stopped_run(&p);
        snprintf(words, sizeof words, "expected %s %s", name,
                 i == 0   ? "7, found 6"
                 : i == 6 ? "0.005, found 0.006"
                          : "");
        for (enum ks_resume how = KS_RESUME_EXACT; how <= KS_RESUME_ANY; how++) {
            assert_refused(how, words);
            assert_null(strstr(process_said(RUN), "=any"));
        }
    }
}

/* A recorded change is kept; but if the work after it is lost by a kill, so is the change. */
TEST(test_record)
{
    struct image p = open_stopped_run();
    struct launch killed = {.resume = KS_RESUME_ANY, .fault = KILL, .fault_at = 10};

    write_stopped_run(&p);
    assert_int_equal(run_process(&unstarted[1], RUN, killed), KILLED);
    assert_changes(json_pack("[{s:i, s:s, s:i, s:i}]", "env_step", STOPPED, "what", "threads",
                             "from", 1, "to", 2));
    assert_resumes(KS_RESUME_EXACT);
    assert_same_run(RUN, REFERENCE);
    p = open_stopped_run();
    write_stopped_run(&p);
    assert_int_equal(run_process(&unstarted[1], RUN, killed), KILLED);
    assert_process_runs(&unstarted[1], RUN,
                        (struct launch){.resume = KS_RESUME_ANY, .stop_at = 20});
    assert_process_runs(&unstarted[1], RUN,
                        (struct launch){.resume = KS_RESUME_EXACT, .stop_at = 25});
    assert_resumes(KS_RESUME_ANY);
    assert_changes(json_pack("[{s:i, s:s, s:i, s:i}, {s:i, s:s, s:i, s:i}]", "env_step", STOPPED,
                             "what", "threads", "from", 1, "to", 2, "env_step", 25, "what",
                             "threads", "from", 2, "to", 1));
    assert_close(changes_in_checkpoint("step_000000030.h5"), 2, 0);
}

CMFixtureFunction tests_setup = set_up, tests_teardown = tear_down;
