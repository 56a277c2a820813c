/* Runs the analyzer program, for tests. The binary is in $KS_BIN, or build/bin if that is not set.
 */
#ifndef KS_TEST_ANALYZER_H
#define KS_TEST_ANALYZER_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "io/checkpoint.h"
#include "io/h5.h"
#include "scratch.h"
#include "test.h"

/* standard output and standard error of the last run */
static char printed[1 << 16], complained[1 << 14];

/* a command in front of the program, such as "mpirun -n 2" */
static char launcher[128];

static inline void slurp(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    assert_true(length < size - 1);
    fclose(file);
}

/* Runs "NAME ARGUMENTS" by the shell in the scratch folder; returns its exit status. Waiting OpenMP
 * threads sleep, since tests run side by side on problems of microseconds. */
static inline int run_program(const char *name, const char *arguments)
{
    char command[4096], here[1024] = "";
    const char *folder = getenv("KS_BIN");
    int status;

    folder = folder ? folder : "build/bin";
    if (folder[0] != '/')
        assert_non_null(getcwd(here, sizeof here));
    snprintf(command, sizeof command,
             "program='%s%s%s/%s'; cd '%s' && "
             "OMP_WAIT_POLICY=passive %s \"$program\" >out.txt 2>err.txt %s",
             here, here[0] ? "/" : "", folder, name, scratch_folder, launcher, arguments);
    status = system(command);
    assert_true(WIFEXITED(status));
    slurp(scratch("out.txt"), printed, sizeof printed);
    slurp(scratch("err.txt"), complained, sizeof complained);
    return WEXITSTATUS(status);
}

/* Standard output of the last run has these words. */
static inline void assert_shows(const char *words)
{
    if (!strstr(printed, words))
        fail_msg("'%s' is not in '%s'", words, printed);
}

/* Runs "kappascope-analyze ARGUMENTS". */
__attribute__((format(printf, 1, 2))) static inline int analyzer(const char *arguments, ...)
{
    char list[2048];
    va_list values;
    int status;

    va_start(values, arguments);
    vsnprintf(list, sizeof list, arguments, values);
    va_end(values);
    status = run_program("kappascope-analyze", list);
    if (status > 2)
        fail_msg("analyze %s: exit status %d, '%s'", list, status, complained);
    return status;
}

#define assert_runs(...)                                                                           \
    do {                                                                                           \
        if (analyzer(__VA_ARGS__) != 0)                                                            \
            fail_msg("the analyzer failed: %s", complained);                                       \
    } while (0)

/* The least --memory, in K, with which these arguments run, found from the messages of refused
 * runs. A refusal before the checkpoint is read or the operator is constructed names a lower bound,
 * which a later refusal may raise. `complained` holds the last refusal. */
static inline size_t least_memory(const char *arguments)
{
    static const char WORDS[] = "--memory: expected at least ";
    static char refusal[sizeof complained];
    size_t least = 0;

    while ((least == 0 ? analyzer("--memory 1 %s", arguments)
                       : analyzer("--memory %zuK %s", least, arguments)) != 0) {
        const char *words = strstr(complained, WORDS);
        size_t before = least;

        assert_non_null(words);
        assert_int_equal(sscanf(words + sizeof WORDS - 1, "%zuK, found", &least), 1);
        assert_true(least > before);
        memcpy(refusal, complained, sizeof refusal);
    }
    memcpy(complained, refusal, sizeof refusal);
    return least;
}

/* The vectors of a file in the scratch folder, n numbers each; the caller frees. */
static inline double *read_vectors(const char *name, size_t n, size_t k)
{
    double *vectors;
    size_t found;

    assert_ok(ks_vectors_read(scratch(name), n, &found, &vectors));
    assert_int_equal(found, k);
    return vectors;
}

/* A numeric root attribute of an HDF5 file. */
static inline double read_root_number(const char *path, const char *name)
{
    struct ks_attribute attribute;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_read_attribute(h5, "/", name, KS_ATTRIBUTE_NUMBER, &attribute));
    ks_h5_close(h5);
    return attribute.number;
}

#endif
