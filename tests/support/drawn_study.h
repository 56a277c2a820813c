/* Studies that are drawn, for tests of plots. */
#ifndef KS_DRAWN_STUDY_H
#define KS_DRAWN_STUDY_H

#include "finished_study.h"

#include <fcntl.h>

#include "core/process.h"
#include "io/text.h"

static inline bool have_gnuplot(void)
{
    char *path = NULL;
    bool there = ks_locate_program("gnuplot", &path) == KS_OK;

    free(path);
    return there;
}

static inline void assert_starts(const char *name, const char *magic)
{
    FILE *file = fopen(tree_path(name), "rb");
    char start[8] = "";

    assert_non_null(file);
    assert_int_equal(fread(start, 1, 4, file), 4);
    fclose(file);
    assert_memory_equal(start, magic, 4);
}

/* Redirect standard output to the file "said"; restore it. */
static inline int divert_output(void)
{
    int output, file = open(tree_path("said"), O_WRONLY | O_CREAT, 0666);

    fflush(stdout);
    output = dup(STDOUT_FILENO);
    assert_true(file >= 0 && output >= 0);
    assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    close(file);
    return output;
}

static inline void restore_output(int output)
{
    fflush(stdout);
    dup2(output, STDOUT_FILENO);
    close(output);
}

/* A file's bytes, followed by a zero; the caller frees. */
static inline char *file_bytes(const char *name, size_t *size)
{
    char *bytes = NULL;

    assert_ok(ks_text_read(tree_path(name), &bytes, size));
    return bytes;
}

static inline void plot_study(size_t resamples)
{
    int output = divert_output();
    ks_status status = ks_study_plot(tree, NULL, resamples, true);

    restore_output(output);
    assert_ok(status);
}

#endif
