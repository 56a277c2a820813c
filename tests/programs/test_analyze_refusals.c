/* What the analyzer refuses, and its messages: bad options, bad files, folders that cannot be
 * written, numbers that are not finite. */
#include "small_critics.h"

/* A checkpoint that fails gets one line, the others are analyzed, and the exit status is the worst.
 */
TEST(test_failing_checkpoint)
{
    struct ks_checkpoint *c = make(archs[5].text);

    for (size_t i = 0; i < dimension(archs[5].text); i++)
        c->critic.w[i] *= 1e120; /* finite, its cube is not */
    save("huge", c);
    assert_int_equal(analyzer("--precision f64 --csv huge.h5 ln+ce.h5"), 1);
    assert_complains("huge.h5: before Lanczos step 1 of 90");
    assert_null(strstr(complained, "--precision"));
    assert_shows("\nln+ce.h5,");
    assert_null(strstr(printed, "huge"));
    assert_int_equal(analyzer("huge.h5"), 1);
    assert_complains(
        "holds a NaN or an infinity: products are in float32, which overflows at 3e38; "
        "try --precision f64\n");
    assert_int_equal(link(file("huge"), scratch("a")), 0); /* a name that many messages contain */
    assert_int_equal(analyzer("--precision f64 ln+ce.h5 a"), 1);
    assert_complains(" a: before Lanczos step 1 of 90");
    assert_int_not_equal(access(file("huge.spectrum"), F_OK), 0);
    assert_int_equal(analyzer("--exact --precision f64 huge.h5"), 1);
    assert_int_equal(analyzer("--gradient g2.h5 huge.h5"), 1);
    analyzer_refuses("huge.h5 missing.h5 ln+ce.h5", "missing.h5");
    assert_shows("ln+ce.h5");
}

static const struct refusal {
    const char *arguments, *words;
} refusals[] = {
    {"", "expected a checkpoint"},
    {"--nonsense ln+ce.h5", "--nonsense"},
    {"--order 0 ln+ce.h5", "--order: expected an integer from 1"},
    {"--order 1e-2 ln+ce.h5", "--order"},
    {"--order ' 5' ln+ce.h5", "--order"},
    {"--order", "--order"},
    {"--probes -1 ln+ce.h5", "--probes"},
    {"--seed 9223372036854775808 ln+ce.h5", "--seed"},
    {"--precision f16 ln+ce.h5", "--precision: expected f64 or f32, found 'f16'"},
    {"--batchnorm test ln+ce.h5", "--batchnorm"},
    {"--operator nonsense ln+ce.h5", "--operator: expected one of hessian"},
    {"--batches 0 ln+ce.h5", "--batches"},
    {"--batches 4 ln+ce.h5", "--batches: expected 1 to 3, found 4"},
    {"--batch 3 ln+ce.h5", "--batch: expected 0 to 2, found 3"},
    {"--batch 0 --batches 1 ln+ce.h5", "--batch: expected no --batches: it is one minibatch"},
    {"--weight-decay -1 ln+ce.h5", "--weight-decay"},
    {"--weight-decay nan ln+ce.h5", "--weight-decay"},
    {"--scale 0 ln+ce.h5", "--scale"},
    {"--scale inf ln+ce.h5", "--scale"},
    {"--memory 3X ln+ce.h5", "--memory"},
    {"--memory 0 ln+ce.h5", "--memory"},
    {"--memory 99999999999T ln+ce.h5", "--memory"},
    {"--compat pytorch ln+ce.h5", "--compat"},
    {"--compat xqc --probes 2 ln+ce.h5", "--compat xqc"},
    {"--compat xqc --precision f64 ln+ce.h5", "--compat xqc"},
    {"--compat xqc --products split3 ln+ce.h5", "expected --products blas, found split3"},
    {"--products split2 ln+ce.h5", "--products: expected blas, split3 or auto, found 'split2'"},
    {"--products split3 --precision f64 ln+ce.h5", "expected --precision f32, found f64"},
    {"--products split3 --operator preconditioned ln+ce.h5", "--products split3: expected --prec"},
    {"--compat xqc --rewards normalized ln+ce.h5", "--compat xqc: expected --rewards raw"},
    {"--rewards clipped ln+ce.h5",
     "--rewards: expected normalized, raw or raw-if-present, found 'clipped'"},
    {"--rewards raw ln+ce.h5", "ln+ce.h5: --rewards raw: expected the dataset /batch/target"},
    {"--rewards raw --compat xqc ln+ce.h5", "expected the dataset /batch/target_raw"},
    {"--rewards raw --gradient g.h5 ln+ce.h5", "expected the dataset /batch/target_raw"},
    {"--keep-basis ln+ce.h5", "--keep-basis"},
    {"--start-at v.h5 ln+ce.h5", "--start-at"},
    {"--exact --order 90 ln+ce.h5", "--order: expected without --exact"},
    {"--exact --probes 1 ln+ce.h5", "--probes: expected without --exact"},
    {"--exact --seed 0 ln+ce.h5", "--seed: expected without --exact"},
    {"--complement --exact ln+ce.h5", "--complement: expected without --exact"},
    {"--complement --probes 2 ln+ce.h5", "--complement: expected no --probes"},
    {"--complement --layers ln+ce.h5", "--layers: expected no --complement"},
    {"--complement --compat xqc ln+ce.h5", "--compat xqc: expected no --complement"},
    {"--complement --gradient g.h5 ln+ce.h5", "expected no --complement"},
    {"--compat xqc --operator preconditioned ln+ce.h5", "Adam's second moment"},
    {"--exact --apply units.h5 --output o.h5 ln+ce.h5", "expected no --exact"},
    {"--json --apply units.h5 --output o.h5 ln+ce.h5", "expected no --json"},
    {"--order 9 --apply units.h5 --output o.h5 ln+ce.h5", "expected no --order"},
    {"--seed 1 --gradient g.h5 ln+ce.h5", "expected no --seed"},
    {"--csv --gradient g.h5 ln+ce.h5", "expected no --csv"},
    {"-o . --gradient g.h5 ln+ce.h5", "expected no --out"},
    {"--name x --gradient g.h5 ln+ce.h5", "expected no --name"},
    {"--name a.b ln+ce.h5", "--name: expected 1 to 32 letters, digits, - and _, found 'a.b'"},
    {"--name= ln+ce.h5", "--name: expected 1 to 32 letters"},
    {"--name 123456789012345678901234567890123 ln+ce.h5", "--name: expected 1 to 32 letters"},
    {"--critic 0 --gradient g.h5 ln+ce.h5", "expected no --critic"},
    {"--layer 1 --gradient g.h5 ln+ce.h5", "expected no --layer"},
    {"--layer dense ln+ce.h5", "--layer: expected a number from 0, or 02_dense, found 'dense'"},
    {"--layer 1_ ln+ce.h5", "--layer: expected a number from 0, or 02_dense, found '1_'"},
    {"--layer -1 ln+ce.h5", "--layer: expected a number from 0"},
    {"--layer 99999999999 ln+ce.h5", "--layer: expected a number from 0"},
    {"--layer 02_dense ln+ce.h5", "ln+ce.h5: --layer: expected 02_layernorm, found 02_dense"},
    {"--layer 99_dense ln+ce.h5", "ln+ce.h5: --layer: expected 0 to 7, found 99"},
    {"--count-above 0 ln+ce.h5", "--count-above: expected a number above 0, found '0'"},
    {"--count-above -1 ln+ce.h5", "--count-above: expected a number above 0"},
    {"--count-above inf ln+ce.h5", "--count-above: expected a number above 0"},
    {"--count-above 1 --compat xqc ln+ce.h5", "--compat xqc: expected no --count-above"},
    {"--count-above 1 --layers ln+ce.h5", "--layers: expected no --count-above"},
    {"--count-above 1 --gradient g.h5 ln+ce.h5", "expected no --count-above"},
    {"--tolerance directions_above=1 ln+ce.h5", "directions_above: expected a size, --count-above"},
    {"--array 0/kernel ln+ce.h5", "ln+ce.h5: --array: expected some of 00_layernorm/scale, "},
    {"--array= ln+ce.h5", "--array: expected arrays such as 00_dense/kernel,00_dense/bias"},
    {"--array 0/scale --layer 1 ln+ce.h5", "--array: expected no --layer"},
    {"--array 0/scale --layers ln+ce.h5", "--layers: expected no --array"},
    {"--array 0/scale --gradient g.h5 ln+ce.h5", "expected no --array"},
    {"ln+ce.safetensors", "ln+ce.safetensors: expected a checkpoint, found weights of another"},
    {"ln+ce.safetensors", "by 'kappascope import'"},
    {"critic.pt", "critic.pt: expected a checkpoint, found weights of another program"},
    {"critic.pkl", "critic.pkl: expected a checkpoint, found a Python pickle"},
    {"critic.pt", "by 'kappascope import'"},
    {"missing.safetensors", "missing.safetensors: cannot be opened: No such file"},
    {"--operator ggn --gradient g.h5 ln+ce.h5", "expected no --operator"},
    {"--compat xqc --gradient g.h5 ln+ce.h5", "expected no --compat"},
    {"--json --csv ln+ce.h5", "--json and --csv"},
    {"--apply units.h5 ln+ce.h5", "--output"},
    {"--output o.h5 ln+ce.h5", "--apply"},
    {"--gradient g.h5 ln+ce.h5 bn+ce.h5", "one checkpoint"},
    {"--gradient ln+ce.h5 ln+ce.h5", "expected another file"},
    {"--gradient ./ln+ce.h5 ln+ce.h5", "expected another file"},
    {"--gradient v.h5 --apply ./v.h5 --output o.h5 ln+ce.h5", "expected another file"},
    {"--apply units.h5 --output ./units.h5 ln+ce.h5", "expected another file"},
    {"--apply units.h5 --output o.h5 --gradient ./o.h5 ln+ce.h5", "expected two files"},
    {"--gradient nowhere/g.h5 ln+ce.h5", "nowhere/g.h5"},
    {"--apply ln+ce.h5 --output o.h5 ln+ce.h5", "ln+ce.h5"},
    {"--apply missing.h5 --output o.h5 ln+ce.h5", "missing.h5"},
    {"ln+ce.h5 ./ln+ce.h5", "./ln+ce.spectrum.h5"},
    {"-o nowhere/deeper ln+ce.h5", "nowhere/deeper"},
    {"-o bn+ce.h5 ln+ce.h5", "exists and is not a directory"},
    {"-o /proc ln+ce.h5", "/proc"},
    {"missing.h5", "missing.h5"},
    {"out.txt", "out.txt"},
    {".", "."},
};

TEST(test_refusals)
{
    write_bytes(scratch("ln+ce.safetensors"), "\x40\0\0\0\0\0\0\0{}", 10);
    write_bytes(scratch("critic.pt"), "PK", 2);
    write_bytes(scratch("critic.pkl"), "PK", 2);
    remove(file("ln+ce.spectrum"));
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char *newline;

        if (analyzer("-q %s", refusals[i].arguments) != 2)
            fail_msg("'%s' was not refused", refusals[i].arguments);
        newline = strchr(complained, '\n');
        if (!strstr(complained, refusals[i].words) || !newline || newline[1] || printed[0])
            fail_msg("'%s' printed '%s', expected one line with '%s'", refusals[i].arguments,
                     complained, refusals[i].words);
    }
    assert_int_not_equal(access(file("o"), F_OK), 0);
    assert_int_not_equal(access(file("ln+ce.spectrum"), F_OK), 0);
}

/* Two spectra of the same name in -o are refused before any work; a missing folder is created. */
TEST(test_output_folder)
{
    assert_runs("-o spectra --order 10 ln+ce.h5 bn+ce.h5");
    assert_int_equal(remove(scratch("spectra/bn+ce.spectrum.h5")), 0);
    assert_int_equal(rename(scratch("spectra/ln+ce.spectrum.h5"), scratch("spectra/ln+ce.h5")), 0);
    analyzer_refuses("-o spectra ln+ce.h5 spectra/ln+ce.h5", "spectra/ln+ce.spectrum.h5");
    assert_int_not_equal(access(scratch("spectra/ln+ce.spectrum.h5"), F_OK), 0);
    assert_int_equal(remove(scratch("spectra/ln+ce.h5")), 0);
    assert_int_equal(rmdir(scratch("spectra")), 0);
}

/* A spectrum that would replace a checkpoint, by its name or through a link, is refused before any
 * work. */
TEST(test_outputs_among_inputs)
{
    static const char *const cases[] = {
        "ln+ce.h5 ln+ce.spectrum.h5", "./ln+ce.spectrum.h5 ln+ce.h5", "bn+ce.h5 ln+ce.h5 hard.h5",
        "soft.h5 ln+ce.h5", "-o . bn+ce.h5 bn+ce.spectrum.h5"}; /* does not exist */

    remove(file("bn+ce.spectrum"));
    copy_file(file("dense+ce"), file("ln+ce.spectrum"));
    assert_int_equal(link(file("ln+ce.spectrum"), scratch("hard.h5")), 0);
    assert_int_equal(symlink("ln+ce.spectrum.h5", scratch("soft.h5")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(analyzer("-q --order 5 %s", cases[i]), 2);
        assert_complains("would replace this input");
        assert_string_equal(printed, "");
    }
    assert_same_files(file("ln+ce.spectrum"), file("dense+ce"));
    assert_runs("-q --order 5 hard.h5 ln+ce.spectrum.h5");
    remove(scratch("hard.h5")), remove(scratch("soft.h5")), remove(file("ln+ce.spectrum"));
    remove(scratch("hard.spectrum.h5")), remove(scratch("ln+ce.spectrum.spectrum.h5"));
}

/* The vectors of --apply and --gradient count against --memory: each vector of --apply twice, in
 * memory and in the file of the products, which is built in memory. */
TEST(test_memory_of_vectors)
{
    enum { MORE = 1000 };
    static const char *const cases[] = {"--apply v.h5 --output o.h5 ln+ce.h5",
                                        "--gradient g.h5 ln+ce.h5"};
    size_t n = dimension(archs[2].text), least[2];
    struct ks_rng rng = ks_rng_start(31, 0);
    double *v = hold(numbers(&rng, 2 * MORE * n));

    for (size_t i = 0; i < 2; i++) {
        assert_ok(
            ks_vectors_write(file("v"), &(struct ks_vectors){(1 + i) * MORE, n, v, NULL, NULL}));
        least[i] = least_memory(cases[0]);
    }
    assert_close((double)(least[1] - least[0]), 2 * MORE * (double)n * sizeof *v / 1024, 2);
    least_memory(cases[1]);
    assert_runs("--memory %zuK --gradient g.h5 %s", least[1] + 1,
                cases[0]); /* one after the other */
}

/* Without the memory for a basis in float64 it is in float32, as a message says; with even less the
 * analysis is refused, with the sizes. */
TEST(test_memory_of_the_basis)
{
    static const char WIDE[] = "layernorm\ndense 90\nlayernorm\nrelu\ndense 90\nrelu\ndense 1\n"
                               "loss mse\n";
    static const char OPTIONS[] = "--precision f64 --order 60 medium.h5";
    size_t least;

    save("medium", make(WIDE));
    least = least_memory(OPTIONS);
    assert_complains("the Lanczos vectors in float32 in ");
    for (size_t k = 1; k <= 3; k += 2) {
        struct ks_spectrum *s;

        assert_runs("--memory %zuK %s", k * least, OPTIONS);
        assert_int_equal(!strstr(complained, "GB for vectors (in float32, since they do not fit"),
                         k > 1);
        s = read_spectrum(file("medium.spectrum"));
        assert_string_equal(ks_attribute_find(&s->attributes, "basis_precision")->string,
                            k > 1 ? "f64" : "f32");
    }
    remove(file("medium")), remove(file("medium.spectrum"));
}

/* Control characters in a file, its name or an option do not reach the terminal. */
TEST(test_control_characters)
{
    struct ks_h5 *h5;

    assert_ok(ks_h5_create(file("strange"), "a\x1b[2Jb", KS_H5_VERSION, &h5));
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    analyzer_refuses("-q strange.h5", "a\\x1b[2Jb");
    assert_null(strchr(complained, '\x1b'));
    analyzer_refuses("-q --order \"$(printf '\\033\\n1')\" ln+ce.h5", "found '\\x1b\\x0a1'");
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
    assert_int_equal(link(file("ln+ce"), scratch("e\x1b.h5")), 0);
    assert_runs("--order 5 \"$(printf 'e\\033.h5')\"");
    assert_null(strchr(printed, '\x1b'));
    assert_null(strchr(complained, '\x1b'));
    assert_shows("\n  e\\x1b.h5 ");
    assert_int_equal(link(file("huge"), scratch("h\x1b.h5")), 0);
    assert_int_equal(analyzer("-q --precision f64 \"$(printf 'h\\033.h5')\""), 1);
    assert_complains("analyze: h\\x1b.h5: before Lanczos step");
}

TEST(test_version)
{
    assert_runs("--version");
    assert_shows("OpenBLAS");
    assert_shows("jansson");
}

/* A full disk under standard output is a failure at run time. */
TEST(test_full_output)
{
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(analyzer("--order 10 --json ln+ce.h5 >/dev/full"), 1);
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;
