/* The programs under limits of a shell or a batch system: address space, file sizes, closed
 * standard descriptors. Each run works, or ends soon with a one-line message and leaves no
 * files. */
#include "small_critics.h"

/* Options of a short run: pendulum, 60 updates. */
#define PENDULUM                                                                                   \
    "--env pendulum-swingup --arch bn+wn+ce --steps 120 --set hidden=16 --set actor_hidden=16 "    \
    "--set batch=8 --set random_steps=30 --set eval_episodes=1 --set evaluations=1 --set "         \
    "checkpoints=2 --set analysis_minibatches=3 "

enum { SECONDS = 60, DEADLINE_MET = 124 };

/* Runs a shell command in the scratch folder, with $train, $analyze, $plot and $kappascope set, and
 * returns its exit status. It fails the test if the command takes too long. */
__attribute__((format(printf, 1, 2))) static int shell(const char *format, ...)
{
    char line[2048];
    va_list values;
    int status;

    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    status = run_shell(
        text_of("kappascope='%s'; export OMP_WAIT_POLICY=passive kappascope; "
                "export train=$kappascope-train analyze=$kappascope-analyze plot=$kappascope-plot; "
                "timeout %d sh -c '%s' >out.txt 2>err.txt",
                program_path("kappascope"), SECONDS, line));
    if (status == DEADLINE_MET)
        fail_msg("%s: does not end", line);
    return status;
}

/* AddressSanitizer maps terabytes of address space and starts a process of its own. */
static void skip_under_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
}

/* Without a further process the program ends in a line of its own. The limit does not hold for
 * root, so root becomes another user, where that user may read the programs. */
TEST(test_no_process)
{
    const char *user = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups" : "";

    skip_under_sanitizers();
    assert_int_equal(chmod(scratch_folder, 0777), 0);
    if (shell("%s $kappascope analyze --version", user) != 0)
        skip();
    assert_int_equal(shell("%s prlimit --nproc=1 $kappascope analyze -q ln+ce.h5", user), 1);
    assert_string_equal(complained,
                        "kappascope-analyze: ln+ce.h5: cannot start the reading process: "
                        "Resource temporarily unavailable\n");
    assert_int_equal(shell("%s prlimit --nproc=1 $kappascope inspect ln+ce.h5", user), 1);
    assert_complains("kappascope-inspect: ln+ce.h5: cannot start the reading process: ");
}

/* With each number of threads, a command works within each limit on the address space, or ends with
 * one line, which should have these words, and the exit status 1. ends: how often it did which. */
static void count_ends(const char *command, const size_t *threads, const size_t *limits,
                       const char *words, size_t ends[2])
{
    ends[0] = ends[1] = 0;
    for (; *limits; limits++)
        for (size_t k = 0; threads[k]; k++) {
            int code = shell("rm -rf run; ulimit -v %zu; export OMP_NUM_THREADS=%zu; %s", *limits,
                             threads[k], command);

            if (count(complained, "\n") != (code != 0) || code > 1 ||
                strstr(complained, "make deps"))
                fail_msg("%zu K, %zu threads: exit status %d, '%s'", *limits, threads[k], code,
                         complained);
            ends[code] += code == 0 || strstr(complained, words);
        }
}

/* `kappascope` refuses a limit in which OpenBLAS cannot be loaded. */
TEST(test_address_space)
{
    static const size_t threads[] = {1, 4, 16, 0},
                        limits[] = {60000,  100000, 150000,  200000,  250000, 300000,
                                    400000, 700000, 1200000, 3000000, 0};
    size_t ends[2];

    skip_under_sanitizers();
    count_ends("$kappascope analyze -q --order 5 ln+ce.h5", threads, limits,
               "expected a limit (ulimit -v) of at least", ends);
    assert_true(ends[0] >= 6 && ends[1] >= 6);
}

/* The limit that the message names is enough for OpenBLAS. */
TEST(test_least_address_space)
{
    size_t least;

    skip_under_sanitizers();
    assert_int_equal(
        shell(
            "ulimit -v 400000; OMP_NUM_THREADS=8 $kappascope analyze -q --gradient g.h5 ln+ce.h5"),
        1);
    assert_int_equal(sscanf(strstr(complained, "at least"), "at least %zuK", &least), 1);
    shell("ulimit -v %zu; OMP_NUM_THREADS=8 $kappascope analyze -q --gradient g.h5 ln+ce.h5",
          least + 4000);
    assert_null(strstr(complained, "address space"));
    assert_int_equal(shell("ulimit -d 400000; OMP_NUM_THREADS=8 $kappascope analyze -q ln+ce.h5"),
                     1);
    assert_complains("ulimit -d");
}

TEST(test_address_space_of_training)
{
    static const size_t threads[] = {1, 2, 0},
                        limits[] = {60000,  100000, 150000, 200000, 240000,  250000,
                                    260000, 280000, 300000, 400000, 1000000, 0};
    size_t ends[2];

    skip_under_sanitizers();
    count_ends("$kappascope train -q " PENDULUM "--set threads=$OMP_NUM_THREADS --out run", threads,
               limits, "", ends);
    assert_true(ends[0] >= 2 && ends[1] >= 4);
}

/* Files that a program opens do not take the numbers of closed standard descriptors. */
TEST(test_closed_descriptors)
{
    static const char *const closed[] = {"<&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"};
    assert_int_equal(shell("$train -q " PENDULUM "--out good"), 0);
    assert_int_equal(shell("cut -d, -f1-10 good/progress.csv >expected.txt"), 0);
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        assert_int_equal(shell("$train " PENDULUM "--out r%zu %s", i, closed[i]), 0);
        assert_int_equal(shell("cut -d, -f1-10 r%zu/progress.csv >found.txt; rm -r r%zu", i, i), 0);
        assert_same_files(scratch("found.txt"), scratch("expected.txt"));
    }
    assert_int_equal(shell("$analyze ln+ce.h5 <&- 2>&-"), 0);
    assert_int_equal(shell("rm -r good expected.txt found.txt"), 0);
}

/* Printing results to a closed standard output is a failure. */
TEST(test_closed_output)
{
    static const char *const cases[] = {"$analyze -q --order 5 ln+ce.h5", "$train --list",
                                        "$kappascope --help", "$plot --version"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(shell("%s >&-", cases[i]), 1);
        assert_complains("standard output");
        assert_int_equal(shell("%s <&- >&-", cases[i]), 1);
    }
}

/* Exceeding a limit on file sizes is like a full disk: a one-line message, exit status 1, and no
 * incomplete file. */
TEST(test_file_sizes)
{
    static const char *const cases[] = {"--order 60 ln+ce.h5", "--gradient g.h5 ln+ce.h5",
                                        "--order 60 -o folder ln+ce.h5"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t files = scratch_files(false);

        assert_int_equal(shell("ulimit -f 2; $analyze -q %s", cases[i]), 1);
        assert_int_equal(count(complained, "\n"), 1);
        assert_complains("cannot be written: File too large");
        assert_int_equal(shell("rmdir folder 2>/dev/null; true"), 0);
        assert_int_equal(scratch_files(false), files);
    }
}

/* Temporary files of a killed analysis are removed by the next one that writes to the folder. */
TEST(test_leftovers)
{
    static const char *const cases[] = {"--order 5 ln+ce.h5", "--gradient g.h5 ln+ce.h5",
                                        "--order 5 -o . ln+ce.h5"};
    char name[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        name_leftover(scratch("new"), name);
        write_bytes(scratch(name), "x", 1);
        assert_runs("-q %s", cases[i]);
        assert_int_not_equal(access(scratch(name), F_OK), 0);
    }
}

/* Output names are checked before any work: the checkpoint here is unreadable. */
TEST(test_long_output_name)
{
    char name[260];

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    write_bytes(scratch("broken.h5"), "x", 1);
    assert_int_equal(analyzer("-q --gradient %s.h5 broken.h5", name), 2);
    assert_complains("File name too long");
    assert_int_equal(analyzer("-q --apply broken.h5 --output %s.h5 broken.h5", name), 2);
    assert_complains("File name too long");
    name[250] = '\0'; /* too long with the ending of a spectrum's name */
    assert_int_equal(analyzer("-q %s", name), 2);
    assert_complains("spectrum.h5: cannot be created: File name too long");
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;
