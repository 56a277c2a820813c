/* Runs that another version of the program began, and the values of --resume. */
#include "resuming.h"

/* Adds or removes a setting, in the resume point and in run.json. */
static void change_setting(const char *name, int value)
{
    struct image p = open_stopped_run();
    json_auto_t *object = json_load_file(in_run("run.json"), 0, NULL);
    json_t *settings[] = {json_object_get(p.description, "settings"),
                          json_object_get(object, "settings")};

    for (size_t i = 0; i < 2; i++)
        if (value > 0)
            json_object_set_new(settings[i], name, json_integer(value));
        else
            json_object_del(settings[i], name);
    write_stopped_run(&p);
    assert_int_equal(json_dump_file(object, in_run("run.json"), JSON_REAL_PRECISION(15)), 0);
}

/* A setting that an older version did not know counts as its default; a setting of a newer version
 * is refused. */
TEST(test_settings_of_other_versions)
{
    change_setting("tau", 0);
    assert_resumes(KS_RESUME_EXACT);
    assert_same_run(RUN, REFERENCE);
    change_setting("batch", 0);
    assert_refused(KS_RESUME_ANY, "run.json: the folder holds another run: expected batch 4, "
                                  "found 256");
    change_setting("batches", 4);
    assert_refused(KS_RESUME_ANY, "this version of the program has no setting 'batches'");
    assert_int_equal(remove(in_run("run.json")), 0);
    assert_int_equal(remove(in_run("step_000000008.h5")), 0);
    assert_int_equal(remove(in_run("step_000000015.h5")), 0);
    assert_int_equal(resume(KS_RESUME_ANY), 2);
    assert_process_said(RUN, "point.0: --resume needs what the run was started with: this version");
}

/* Sections that are unknown, of a wrong size, missing, truncated. */
TEST(test_sections)
{
    static const char *const words[] = {
        "unknown section 'metrics entropz'", "environment: expected ",
        "the section 'actor w' is missing", "of the state: expected a section, found none"};

    for (size_t i = 0; i < 4; i++) {
        struct image p = open_stopped_run();
        size_t at = section(&p, i == 0 ? "metrics entropy" : i == 2 ? "actor w" : "environment");
        size_t end = at + SECTION + section_size(&p, at);

        if (i == 0)
            p.state[at + strlen("metrics entrop")]++;
        if (i == 1 || i == 3)
            p.state_size -= 8;
        if (i == 1)
            p.state[at + SECTION_NAME] -= 8; /* of the size, whose lowest byte is larger */
        if (i == 2) {
            memmove(p.state + at, p.state + end, p.state_size - end);
            p.state_size -= end - at;
        }
        write_stopped_run(&p);
        assert_refused(KS_RESUME_ANY, words[i]);
    }
}

/* The version number of MuJoCo in the environment's state. */
TEST(test_mujoco_version)
{
    for (enum ks_resume how = KS_RESUME_EXACT; how <= KS_RESUME_ANY; how++) {
        struct image p = open_stopped_run();
        unsigned char *version = p.state + section(&p, "environment") + SECTION + sizeof(double);
        double number;

        memcpy(&number, version, sizeof number);
        number++;
        memcpy(version, &number, sizeof number);
        write_stopped_run(&p);
        if (how == KS_RESUME_EXACT)
            assert_refused(how, "saved state of an environment");
        else
            assert_resumes(how);
    }
    assert_same_run(RUN, REFERENCE);
}

/* A line of the file without its end, and its number of cells. */
static size_t read_line(const char *path, size_t number, char line[8192])
{
    FILE *file = fopen(path, "r");
    size_t cells = 1;

    assert_non_null(file);
    for (size_t i = 0; i <= number; i++)
        assert_non_null(fgets(line, 8192, file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    for (const char *c = line; *c; c++)
        cells += *c == ',';
    return cells;
}

static void copy_line(const char *line, FILE *out)
{
    fprintf(out, "%.*s\n", (int)(strrchr(line, ',') - line), line);
}

/* progress.csv as another version would have begun it: without the last column, and with a column
 * `oldness` in place of `q_mean`. */
static void change_columns(struct image *p)
{
    char line[8192], *old;
    unsigned char *bytes;
    size_t size;
    FILE *out = fopen(in_run("other.csv"), "w");

    assert_non_null(out);
    read_line(in_run("progress.csv"), 0, line);
    old = strstr(line, ",q_mean,");
    assert_non_null(old);
    memcpy(old, ",oldnes,", 8);
    copy_line(line, out);
    for (size_t i = 1; i < 4; i++) {
        read_line(in_run("progress.csv"), i, line);
        copy_line(line, out);
    }
    fclose(out);
    assert_int_equal(rename(in_run("other.csv"), in_run("progress.csv")), 0);
    bytes = read_bytes(in_run("progress.csv"), &size);
    set_header_number(p, AT_PROGRESS_SIZE, size);
    assert_ok(ks_sha256(1, &(struct ks_piece){bytes, size}, p->header + AT_PROGRESS));
}

/* The file keeps its columns and its bytes; later cells are matched to columns by name. */
TEST(test_columns)
{
    struct image p = open_stopped_run();
    char line[8192], expected[8192], *cell;
    unsigned char *before, *after;
    size_t size, longer, cells;

    change_columns(&p);
    write_stopped_run(&p);
    before = read_bytes(in_run("progress.csv"), &size);
    assert_resumes(KS_RESUME_EXACT);
    after = read_bytes(in_run("progress.csv"), &longer);
    assert_true(longer > size);
    assert_memory_equal(before, after, size);
    cells = read_line(in_run("progress.csv"), 4, line);
    assert_int_equal(cells, read_line(in_run("progress.csv"), 0, expected));
    assert_int_equal(cells + 1, read_line(scratch("reference/progress.csv"), 4, expected));
    *strrchr(expected, ',') = '\0';
    cell = expected; /* q_mean is the sixth column */
    for (size_t i = 0; i < 5; i++)
        cell = strchr(cell, ',') + 1;
    assert_int_equal(strncmp(line, expected, (size_t)(cell - expected)), 0);
    assert_int_equal(strncmp(line + (cell - expected), "nan,", 4), 0);
    assert_string_equal(line + (cell - expected) + 3, strchr(cell, ','));
}

#define BEGUN                                                                                      \
    "--quiet --env pendulum-swingup --arch bn+wn+ce --steps 400 --set hidden=3 --set depth=1 "     \
    "--set actor_hidden=3 --set actor_depth=1 --set batch=4 --set atoms=5 --set random_steps=50 "  \
    "--set eval_episodes=1 --set checkpoints=2 --set evaluations=2 --set analysis_minibatches=1 "  \
    "--set threads=1 "

/* --resume without a value means exact; a value must be exact or any. */
TEST(test_option)
{
    assert_trains(BEGUN "--stop-at 150 --out words");
    assert_int_equal(train(BEGUN "--out words --resume=other"), 2);
    assert_complains("--resume: expected exact or any, found 'other'");
    assert_int_equal(train(BEGUN "--out words --set threads=2 --resume"), 2);
    assert_complains("expected threads 2, found 1; --resume=any accepts that");
    assert_int_equal(train(BEGUN "--out words --resume=exact --set threads=2"), 2);
    assert_int_equal(train(BEGUN "--out words --resume --quiet --stop-at 200"), 0);
    assert_int_equal(train(BEGUN "--out words --set threads=2 --resume=any"), 0);
    assert_true(exists("words/step_000000400.h5") && !exists("words/resume"));
}

CMFixtureFunction tests_setup = set_up, tests_teardown = tear_down;
