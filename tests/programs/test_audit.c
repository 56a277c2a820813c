/* kappascope-audit: its parts, comparisons, limits, the page, and which spectra it uses again.
 * test_audit_critics.c has unusual critics, test_audit_parts.c tests the functions. */
#include "example.h"
#include "programs.h"

TEST(test_audit)
{
    static const char *const shipped[] = {"small", "trot", "trot-small", "reference"};

    write_one(scratch("plain.h5"), make_plain(MSE), false);
    write_one(scratch("full.h5"), make_full(), false);
    if (audit("--quiet --order 40 --layer-order 20 full.h5") != 0)
        fail_msg("%s", complained);
    assert_string_equal(complained, "");
    assert_shows("On these 3 minibatches");
    assert_shows("\nFindings\n");
    assert_shows("A wrong export would stay unnoticed");
    assert_shows("the condition number is at least");
    assert_shows("largest absolute eigenvalue of the residual H - G");
    assert_shows("  preconditioned  D^-1/2 H D^-1/2, as Adam sees it");
    assert_shows("  01     dense");
    assert_shows("With the first 1 of the 3 minibatches");
    assert_shows(" of 37 critics that were measured at about the same step, this one is ");
    assert_shows(" has the block of the Hessian with the largest trace: ");
    assert_shows("\nWhat one could try\n  - An activation function that leaves");
    assert_shows("\nAmong the critics that were measured\n");
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++)
        assert_shows(text_of("  bn+wn+ce        %-10s  ce", shipped[i]));
    assert_shows("  Plot: full.audit/figures/measured.svg\n");
    assert_shows("  Plot: full.audit/figures/spectrum.svg\n");
    assert_true(strstr(printed, "this one is") < strstr(printed, "\nFindings\n"));
    /* bounds before the paper's kappa */
    assert_true(strstr(printed, "  kappa_effective_bound") < strstr(printed, "  kappa  "));
}

/* The name of the one table of layers in the folder kept.audit. */
static const char *find_table(void)
{
    static const char start[] = "layers-m10-n3-s0-";
    const char *name = NULL;
    DIR *folder = opendir(scratch("kept.audit"));
    struct dirent *entry;
    int n = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        if (strncmp(entry->d_name, start, strlen(start)) == 0) {
            name = text_of("kept.audit/%s", entry->d_name);
            n++;
        }
    closedir(folder);
    assert_int_equal(n, 1);
    return name;
}

/* A damaged table of layers is computed again. */
static void assert_table_mended(const char *arguments, const char *before)
{
    static const double short_row[] = {1, 2}, negative[] = {-1, 5, 0, 0, 0, 0};
    const char *name = find_table();

    copy_file(scratch(name), scratch("table"));
    for (int i = 0; i < 4; i++) {
        struct ks_attributes rows = {.n = 0};
        struct ks_h5 *h5 = NULL;

        if (i == 1)
            ks_attribute_add_list(&rows, "000001_dense", 2, short_row);
        if (i == 2)
            ks_attribute_add_list(&rows, "000001_dense", 6, negative);
        assert_ok(ks_h5_create(scratch(name), "kappascope-layers", 1, &h5));
        ks_h5_write_attributes(h5, "/", &rows);
        assert_ok(ks_h5_commit(h5));
        ks_h5_close(h5);
        ks_attributes_clear(&rows);
        if (i == 3)
            write_text(name, "no HDF5");
        assert_int_equal(audit(arguments), 0);
        assert_string_equal(printed, before);
        assert_same_files(scratch(find_table()), scratch("table"));
    }
}

/* The spectra and the table of layers are used again only for the same bytes of the checkpoint. */
TEST(test_cache)
{
    static const char arguments[] = "--quiet --order 20 --layer-order 10 kept.h5";
    static const char name[] = "kept.audit/hessian-m20-n3-s0-g.spectrum.h5";
    struct stat table, table_after;
    static char before[sizeof printed];
    struct stat first, second, third;
    struct ks_checkpoint *c = make_plain(MSE);

    assert_ok(ks_checkpoint_write(scratch("kept.h5"), c, false));
    assert_int_equal(audit(arguments), 0);
    memcpy(before, printed, sizeof before);
    assert_int_equal(stat(scratch(name), &first), 0);
    assert_int_equal(stat(scratch(find_table()), &table), 0);
    assert_int_equal(audit(arguments), 0);
    assert_int_equal(stat(scratch(name), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_int_equal(stat(scratch(find_table()), &table_after), 0);
    assert_true(table.st_ino == table_after.st_ino &&
                table.st_mtim.tv_nsec == table_after.st_mtim.tv_nsec);
    assert_string_equal(printed, before);
    assert_table_mended(arguments, before);
    c->critic.w[0] += 1;
    write_one(scratch("kept.h5"), c, false);
    assert_int_equal(audit(arguments), 0);
    assert_int_equal(stat(scratch(name), &third), 0);
    assert_true(second.st_ino != third.st_ino || second.st_mtim.tv_nsec != third.st_mtim.tv_nsec);
    assert_true(strcmp(printed, before) != 0);
}

/* Killed audits leave temporary files of their processes, which the next one removes, even if it
 * computes nothing; the page's folder is swept as well. Files of living processes stay. */
TEST(test_killed)
{
    static const char *const folders[] = {".", "plain.audit", "plain.audit/tables",
                                          "plain.audit/figures"};
    const char *dead[4], *alive = text_of("plain.audit/.kappascope-%ld-0.tmp", (long)getpid());

    for (size_t i = 0; i < 4; i++)
        dead[i] = text_of("%s/.kappascope-%ld-0.tmp", folders[i], dead_process());
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 plain.h5"), 0);
    for (size_t i = 0; i < 4; i++)
        if (exists(folders[i])) /* without gnuplot there are no figures */
            write_text(dead[i], "x");
    write_text(alive, "x");
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 -o page.html plain.h5"), 0);
    for (size_t i = 0; i < 4; i++)
        assert_false(exists(dead[i]));
    assert_true(exists(alive));
    assert_int_equal(remove(scratch(alive)), 0);
}

/* --- limits --- */

static int limit(const char *expression)
{
    return audit(text_of("--quiet --order 20 --layer-order 0 --fail-if '%s' plain.h5", expression));
}

TEST(test_limits)
{
    static const struct {
        const char *expression;
        int status;
        const char *words;
    } cases[] = {
        {"kappa_effective_bound > 1e-3", 3, "met: shown by a bound"},
        {"kappa_effective_bound>1e30", 0, "not met: not shown to be worse"},
        {"directions_1e2_upper>=1e9", 0, "not met, and shown not to be"},
        {"directions_1e2_upper>0", 3, "met: the bound does not exclude it"},
        {"directions_1e2_lower<0", 0, "not met, and shown not to be"},
        {"lambda_max<1e9", 3, "met: the bound does not exclude it"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(limit(cases[i].expression), cases[i].status);
        assert_shows(cases[i].words);
    }
}

/* A limit on what the spectrum does not have is no limit that is not met. */
TEST(test_absent_statistics)
{
    assert_int_equal(limit("kappa_lower>1"), 2);
    assert_complains("or NAME_upper), found 'kappa_lower'");
    assert_int_equal(limit("stable_rank_upper>1"), 2);
    assert_complains("or NAME_upper), found 'stable_rank_upper'");
    assert_int_equal(limit("directions_above_upper>1"), 2);
    assert_complains("directions_above_upper: expected a size, --count-above X, found none");
    assert_int_equal(limit("sharpness_ratio>1"), 2);
    assert_complains("expected the attribute learning_rate, found none");
}

/* With another size the kept spectra are computed anew. */
TEST(test_count_above)
{
    static const char AUDIT[] = "--quiet --order 20 --layer-order 0 --count-above %s "
                                "--fail-if 'directions_above_upper<1' plain.h5";

    assert_int_equal(audit(text_of(AUDIT, "1e9")), 3);
    assert_shows("directions_above_upper < 1, found 0: met: shown by a bound.");
    assert_int_equal(audit(text_of(AUDIT, "1e-9")), 0);
    assert_shows("not met: not shown to be worse");
    assert_int_equal(audit(text_of(AUDIT, "0")), 2);
    assert_complains("--count-above: expected a number above 0, found '0'");
}

/* --- comparisons --- */

static void compare(const char *against)
{
    assert_int_equal(
        audit(text_of("--quiet --order 20 --layer-order 0 --against %s plain.h5", against)), 0);
}

/* Four times the loss has four times the eigenvalues and the same ratios. */
TEST(test_against_file)
{
    double lower, upper;
    const char *line;

    write_one(scratch("four.h5"), make_plain("dense 4\nrelu\ndense 1\nloss mse weight=4\n"), false);
    compare("four.h5");
    line = strstr(printed, "\nAgainst four.h5");
    assert_non_null(line);
    line = strstr(line, "lambda_abs_max         smaller here");
    assert_non_null(line);
    line = strrchr(strtok(strstr(line, "smaller"), "\n"), '[');
    assert_int_equal(sscanf(line, "[%lf, %lf]", &lower, &upper), 2);
    assert_true(lower <= 0.25 && 0.25 <= upper && upper < 0.3);
    compare("full.h5");
    assert_shows("The minibatches differ");
    compare("plain.h5");
    assert_shows(
        "Both critics were analyzed on the same minibatches. The random start vectors are");
    assert_shows("  directions_1e2         not resolved");
}

/* Only the minibatches that are analyzed have to be the same. */
TEST(test_same_batches)
{
    struct ks_checkpoint *c = make_plain(MSE);

    c->input[2 * ROWS * IN] += 1;
    write_one(scratch("third.h5"), c, false);
    compare("third.h5");
    assert_shows("The minibatches differ");
    compare("third.h5 --batches 2");
    assert_shows("Both critics were analyzed on the same minibatches");
}

/* In place of the shipped critics those of a study's folder. */
TEST(test_against_study)
{
    static const char table[] =
        "env,architecture,seed,env_step,analysis,kappa_effective_bound,directions_1e2_lower,"
        "directions_1e2_upper,kappa_q99_lower,kappa_q99_upper\n"
        "toy,bn+mse,0,1000,standard,100,1e6,2e6,2,3\n"
        "toy,bn+mse,1,1000,standard,200,5e5,1e6,1,-\n"
        "toy,bn+mse,0,1000,xqc,1,1,1,1,1\n"
        "toy,wide,0,1000,standard,100,1e6,2e6,1,-\n"
        "toy,wide,0,9000,standard,100,1,1,1e5,2e5\n";

    assert_int_equal(mkdir(scratch("study"), 0777), 0);
    audit_refuses("--quiet --order 21 --layer-order 0 --against study plain.h5", "kappascope plot");
    assert_int_not_equal(access(scratch("plain.audit/hessian-m21-n3-s0-g.spectrum.h5"), F_OK), 0);
    assert_int_equal(mkdir(scratch("study/tables"), 0777), 0);
    write_bytes(scratch("study/tables/checkpoints.csv"), table, strlen(table));
    compare("study");
    assert_shows("Usual: of 2 critics that were measured at the end of their training, this one is "
                 "better\n  conditioned than 1 and worse than 1; 0 undecided.");
    assert_shows("They were trained on toy, this");
    set_integer(scratch("plain.h5"), "/", "env_step", 1010);
    compare("study");
    assert_shows("Badly conditioned: of 2 critics that were measured at about the same step");
    assert_shows("[500000, 2.00e+06]");
    assert_shows("Batch normalization in place of none: no evidence, as");
    set_integer(scratch("plain.h5"), "/", "env_step", 0); /* no ratio of steps is finite */
    compare("study");
    assert_shows("near step 0, and");
}

/* --- several critics --- */

TEST(test_several)
{
    struct ks_checkpoint *c = make_plain(MSE);

    c->critic.w[0] += 1;
    write_one(scratch("other.h5"), c, false);
    write_one(scratch("plain.h5"), make_plain(MSE), false);
    assert_int_equal(audit("--quiet --order 20 --layer-order 10 -o two.html plain.h5 other.h5"), 0);
    assert_shows("\nWhich is better conditioned?\n");
    assert_shows("plain.h5 and other.h5: the intervals do not decide.");
    assert_shows("plain.h5 and other.h5 differ most in layer 00 (dense)");
    assert_shows("All critics");
}

/* --- the page --- */

/* No id occurs twice in the page. */
static void check_ids(const char *page)
{
    size_t n = 0;

    for (const char *a = page; (a = strstr(a, " id=\"")); a++) {
        const size_t length = strcspn(a + 5, "\"") + 6;
        char id[128];

        assert_true(length < sizeof id);
        snprintf(id, sizeof id, "%.*s", (int)length, a);
        assert_null(strstr(a + 1, id));
        n++;
    }
    assert_true(n > 10);
}

TEST(test_page)
{
    const char *page;

    write_one(scratch("a<b>&'.h5"), make_full(), false);
    set_string(scratch("a<b>&'.h5"), "/", "env", "<script>alert(1)</script>");
    if (audit("--quiet --order 20 --layer-order 10 -o page.html plain.h5 \"a<b>&'.h5\"") != 0)
        fail_msg("%s", complained);
    page = file_text("page.html");
    assert_contains(page, "<h2>a&lt;b&gt;&amp;&#39;.h5</h2>");
    assert_null(strstr(page, "<script>alert"));
    assert_contains(page, "id=\"critic-3-1\"");
    assert_contains(page, "<svg");
    assert_null(strstr(page, "{{"));
    check_ids(page);
    assert_null(strstr(page, "http://www.example"));
}

TEST(test_refusals)
{
    static const char *const cases[][2] = {
        {"", "expected a checkpoint, found none"},
        {"--train new.arch --env cartpole-swingup plain.h5",
         "expected a checkpoint or --train, found both"},
        {"--train new.arch", "--train: expected together with --env"},
        {"--env cartpole-swingup plain.h5", "--env: expected together with --train"},
        {"--out page.html plain.h5", "-o, --output is the page"},
        {"--thorough --batches 2 plain.h5", "--thorough: expected no --batches"},
        {"--train nowhere.arch --env cartpole-swingup", "nowhere.arch: expected a file"},
        {"--order 0 plain.h5", "--order: expected an integer from 1 to 10000, found '0'"},
        {"plain.audit/hessian-m20-n3-s0-g.spectrum.h5", "kappascope-checkpoint"},
        {"mine.safetensors", "kappascope import"},
        {"--against nowhere plain.h5", "--against: expected a study's folder"},
        {"-o plain.h5 plain.h5", "expected another file for the output"},
        {"-o nowhere/page.html plain.h5", "nowhere"},
        {"-o full.h5 --against full.h5 plain.h5", "expected another file for the output"},
    };

    write_bytes(scratch("mine.safetensors"), "12345678", 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(audit(cases[i][0]), 2);
        assert_complains(cases[i][1]);
    }
}

/* All files are checked before the first one is analyzed; files whose spectra would overwrite each
 * other are refused. */
TEST(test_checks_first)
{
    write_one(scratch("early.h5"), make_plain(MSE), false);
    audit_refuses("early.h5 nowhere.h5", "nowhere.h5");
    assert_int_not_equal(access(scratch("early.audit"), F_OK), 0);
    assert_int_equal(mkdir(scratch("other"), 0777), 0);
    write_one(scratch("other/early.h5"), make_plain(CE), false);
    audit_refuses("--cache kept early.h5 other/early.h5",
                  "early.h5 and other/early.h5: the spectra of both would be "
                  "kept in kept/early.audit");
    assert_int_equal(
        audit("--quiet --order 20 --layer-order 0 --cache kept --against early.h5 early.h5"), 0);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
