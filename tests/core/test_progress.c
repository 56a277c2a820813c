/* Progress lines: counts do not run backwards or beyond the total, and rates stay finite. */
#include <unistd.h>

#include "test.h"

#include "core/progress.h"

/* Reports `done` as if the last line had been printed 20 seconds ago; the line that this prints. */
static const char *report(struct ks_progress_bar *p, size_t done)
{
    static char line[256];
    int kept = dup(STDERR_FILENO);
    FILE *file = tmpfile();

    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    p->printed = ks_seconds() - 20;
    ks_progress_update(p, done, "a note");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    line[fread(line, 1, sizeof line - 1, file)] = '\0';
    fclose(file);
    return line;
}

TEST(test_lines)
{
    struct ks_progress_bar p;

    ks_progress_start(&p, "steps", 100, false);
    assert_string_equal(report(&p, 40), "steps 40/100, 2.00/s, 30 s left, a note\n");
    assert_true(p.rate > 1.9 && p.rate < 2.1);
    assert_contains(report(&p, 10), "steps 40/100, 1.43/s, "); /* 2 e^(-20/60) */
    assert_contains(report(&p, 300), "steps 100/100, ");
    assert_contains(report(&p, 300), ", 0 s left");
}

TEST(test_quiet)
{
    struct ks_progress_bar p;

    ks_progress_start(&p, "steps", 100, true);
    assert_string_equal(report(&p, 40), "");
}
