/* Tests of src/core: random numbers, allocation, parsing, errors, BLAS. */
#include <sys/resource.h>

#include "test.h"

#include "core/blas.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/rng.h"
#include "io/file.h"

/* Threefry-2x64-20 of an all-zero counter and key, from the known-answer file of Random123 (Salmon
 * et al., SC 2011): c2b6e3a8c2c69865 6f81ed42f350084d. */
TEST(test_known_answer)
{
    struct ks_rng rng = ks_rng_start(0, 0);

    assert_close(ks_rng_uniform(&rng, 0, 1), (double)(0xc2b6e3a8c2c69865u >> 11) * 0x1p-53, 0);
    assert_int_equal(rng.drawn, 1);
}

/* Draw k depends only on (seed, stream, k). */
TEST(test_streams)
{
    struct ks_rng a = ks_rng_start(1, 2), b = ks_rng_start(1, 2), c = ks_rng_start(1, 3);
    double third;

    ks_rng_normal(&a), ks_rng_index(&a, 10);
    third = ks_rng_uniform(&a, 0, 1);
    b.drawn = 2;
    c.drawn = 2;
    assert_close(ks_rng_uniform(&b, 0, 1), third, 0);
    assert_true(ks_rng_uniform(&c, 0, 1) != third);
}

/* The moments are right within 5 standard errors. */
TEST(test_distributions)
{
    enum { N = 200000 };
    struct ks_rng rng = ks_rng_start(7, 0);
    double m1 = 0, m2 = 0, m4 = 0, mean = 0;
    size_t counts[7] = {0};

    for (size_t i = 0; i < N; i++) {
        double z = ks_rng_normal(&rng), u = ks_rng_uniform(&rng, -1, 3);

        m1 += z / N, m2 += z * z / N, m4 += z * z * z * z / N;
        mean += u / N;
        assert_true(u >= -1 && u < 3);
        counts[ks_rng_index(&rng, 7)]++;
    }
    assert_close(m1, 0, 5 / sqrt(N));
    assert_close(m2, 1, 5 * sqrt(2.0 / N));
    assert_close(m4, 3, 5 * sqrt(96.0 / N));
    assert_close(mean, 1, 5 * sqrt(16.0 / 12 / N));
    for (size_t i = 0; i < 7; i++)
        assert_close((double)counts[i], N / 7.0, 5 * sqrt(N * 6.0 / 49));
}

TEST(test_allocation)
{
    double *a = NULL;
    char *text = NULL;

    assert_ok(ks_alloc(3, sizeof *a, &a));
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_close(a[0] + a[1] + a[2], 0, 0);
    free(a);
    assert_ok(ks_alloc(0, sizeof *a, &a));
    assert_non_null(a);
    free(a);
    assert_fails(ks_alloc(SIZE_MAX / 4, 8, &a), KS_MEMORY, "out of memory");
    assert_null(a);
    ks_alloc_fail_at(2);
    assert_ok(ks_alloc(1, 1, &text));
    free(text);
    assert_fails(ks_alloc(1, 1, &text), KS_MEMORY, "out of memory");
    assert_ok(ks_print_string(&text, "%d-%s", 3, "x"));
    assert_string_equal(text, "3-x");
    free(text);
}

TEST(test_growing_array)
{
    size_t room = 0, *list = NULL;

    for (size_t n = 0; n < 1000; n++) {
        assert_ok(ks_grow(n, sizeof *list, &room, &list));
        assert_true(room > n);
        list[n] = n;
    }
    for (size_t n = 0; n < 1000; n++)
        assert_int_equal(list[n], n);
    ks_alloc_fail_at(1);
    assert_fails(ks_grow(room, sizeof *list, &room, &list), KS_MEMORY, "out of memory");
    assert_int_equal(list[999], 999);
    free(list);
}

/* Exactly one of the calls of all threads fails: the last one. */
TEST(test_failure_among_threads)
{
    enum { CALLS = 100000 };
    size_t failures = 0;

    ks_alloc_fail_at(CALLS);
#pragma omp parallel for num_threads(4) reduction(+ : failures)
    for (int i = 0; i < CALLS; i++) {
        char *text;

        failures += ks_alloc(1, 1, &text) != KS_OK;
        free(text);
    }
    assert_int_equal(failures, 1);
}

TEST(test_numbers)
{
    static const char *const none[] = {"",    " 1",    "1 ",     "x",   "1x",  "0x10", "inf",
                                       "nan", "1e999", "1e-999", "--1", "1,5", "1..4"};
    static const char *const no_integers[] = {"1.5", "-1", "1e-1", "1e16", "18446744073709551616"};
    double number = 7;
    uint64_t integer = 7;

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(ks_parse_number(none[i], -INFINITY, INFINITY, &number) ||
                     ks_parse_integer(none[i], 0, UINT64_MAX, &integer));
    for (size_t i = 0; i < sizeof no_integers / sizeof *no_integers; i++)
        assert_false(ks_parse_integer(no_integers[i], 0, UINT64_MAX, &integer));
    assert_false(ks_parse_number("2", 3, 4, &number));
    assert_false(ks_parse_integer("2", 3, 4, &integer) || ks_parse_integer("5", 3, 4, &integer));
    assert_true(number == 7 && integer == 7);
    assert_true(ks_parse_number("-2.5e-1", -1, 1, &number) && number == -0.25);
    assert_true(ks_parse_integer("1e6", 1, 1000000, &integer) && integer == 1000000);
    assert_true(ks_parse_integer("18446744073709551615", 0, UINT64_MAX, &integer));
    assert_true(integer == UINT64_MAX);
}

TEST(test_order)
{
    double list[] = {NAN, 2, INFINITY, -1, NAN, 0.5};

    qsort(list, 6, sizeof *list, ks_ascending);
    assert_true(list[0] == -1 && list[1] == 0.5 && list[2] == 2 && list[3] == INFINITY);
    assert_true(isnan(list[4]) && isnan(list[5]));
}

TEST(test_paths)
{
    assert_string_equal(ks_path_base("a/b.c/d.arch"), "d.arch");
    assert_string_equal(ks_path_base("d.arch"), "d.arch");
    assert_string_equal(ks_path_base("a/"), "");
    assert_true(ks_path_ends("d.arch.arch", ".arch"));
    assert_int_equal(ks_path_stem("d.arch.arch", ".arch"), 6);
    assert_false(ks_path_ends(".arch", ".arch") || ks_path_ends("d.arch.h5", ".arch"));
    assert_int_equal(ks_path_stem("d.arch.h5", ".arch"), 9);
}

TEST(test_errors)
{
    assert_int_equal(ks_fail(KS_FORMAT, "%s: %d", "file", 3), KS_FORMAT);
    assert_string_equal(ks_error_text(), "file: 3");
    assert_int_equal(ks_exit_status(KS_OK), 0);
    assert_int_equal(ks_exit_status(KS_USAGE), 2);
    assert_int_equal(ks_exit_status(KS_IO), 2);
    assert_int_equal(ks_exit_status(KS_NUMBER), 1);
}

/* Bytes that a terminal could interpret are escaped; letters of all languages are unchanged. */
TEST(test_escapes)
{
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        {"plain", "plain"},
        {"a\x1b[31mb\a\n\t\x7f", "a\\x1b[31mb\\x07\\x0a\\x09\\x7f"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc2\x9b\xc2\xa0", "\\xc2\\x9b\xc2\xa0"},            /* U+009B; U+00A0 */
        {"\x9b\xe4\xe2\x82", "\\x9b\\xe4\\xe2\\x82"},          /* no UTF-8 */
        {"\xc0\x9b\xe0\x82\x9b", "\\xc0\\x9b\\xe0\\x82\\x9b"}, /* U+001B, U+009B */
        {"\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
    };
    char escaped[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(ks_escape(cases[i].text, sizeof escaped, escaped), cases[i].escaped);
        assert_int_equal(ks_fail(KS_FORMAT, "%s", cases[i].text), KS_FORMAT);
        assert_string_equal(ks_error_text(), cases[i].escaped);
    }
    assert_string_equal(ks_escape("ab\x1b", 6, escaped), "ab"); /* an escape is not split */
    assert_string_equal(ks_escape("ab\x1b", 7, escaped), "ab\\x1b");
    assert_string_equal(ks_escape("a\xc3\xa4", 3, escaped), "a"); /* nor is a character */
}

/* OpenBLAS's buffers for the threads are reserved, or the message names the limit that forbids it.
 */
TEST(test_reserve)
{
    struct rlimit old, small;
    ks_status status;

    assert_ok(ks_blas_reserve(4));
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* the sanitizer's own memory would not fit */
#endif
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    small = (struct rlimit){.rlim_cur = (rlim_t)1 << 31, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    status = ks_blas_reserve(100);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_int_equal(status, KS_MEMORY);
    assert_contains(ks_error_text(), "(ulimit -v) of at least ");
    assert_contains(ks_error_text(), "found 2097152K");
}

/* There is a warning exactly if a processor with AVX-512 uses a kernel without it. */
TEST(test_kernel)
{
    assert_contains(ks_blas_version(), "OpenBLAS ");
    assert_true(strlen(ks_blas_kernel()) > 0);
    assert_string_equal(ks_blas_better_kernel("Haswell", true, true), "SkylakeX");
    assert_string_equal(ks_blas_better_kernel("Zen", true, true), "SkylakeX");
    assert_string_equal(ks_blas_better_kernel("Prescott", true, true), "SkylakeX");
    assert_string_equal(ks_blas_better_kernel("Prescott", true, false), "Haswell");
    assert_null(ks_blas_better_kernel("SkylakeX", true, true));
    assert_null(ks_blas_better_kernel("Cooperlake", true, true));
    assert_null(ks_blas_better_kernel("Haswell", true, false));
    assert_null(ks_blas_better_kernel("Zen", true, false));
    assert_null(ks_blas_better_kernel("Prescott", false, false));
    if (ks_blas_warning())
        assert_non_null(strstr(ks_blas_warning(), ks_blas_kernel()));
}
