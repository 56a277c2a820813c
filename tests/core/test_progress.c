/* Progress lines: counts do not run backwards or beyond the total, and rates stay finite. */
#include <unistd.h>

#include "test.h"

#include "core/progress.h"

/* Reports `done` so many seconds after the last print; the line that this prints. */
static const char *report(struct ks_progress_bar *p, size_t done, double seconds)
{
    static char line[256];
    int kept = dup(STDERR_FILENO);
    FILE *file = tmpfile();

    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    p->printed = ks_seconds() - seconds;
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
    assert_string_equal(report(&p, 40, 20), "steps 40/100, 2.00/s, 30 s left, a note\n");
    assert_true(p.rate > 1.9 && p.rate < 2.1);
    assert_string_equal(report(&p, 50, 55),
                        ""); /* the first line after ten seconds, then minutes */
    assert_contains(report(&p, 10, 80), "steps 40/100, 0.53/s, "); /* 2 e^(-80/60) */
    assert_contains(report(&p, 300, 80), "steps 100/100, ");
    assert_contains(report(&p, 300, 80), ", 0 s left");
}

TEST(test_quiet)
{
    struct ks_progress_bar p;

    ks_progress_start(&p, "steps", 100, true);
    assert_string_equal(report(&p, 40, 80), "");
}

/* On a line for several jobs, which is as often. */
TEST(test_line)
{
    struct ks_progress_line p;

    ks_progress_line_start(&p, false);
    assert_false(ks_progress_line_due(&p));
    p.printed -= 11;
    assert_true(ks_progress_line_due(&p));
    p.lines = 1;
    assert_false(ks_progress_line_due(&p));
    p.printed -= 50;
    assert_true(ks_progress_line_due(&p));
    p.quiet = true;
    assert_false(ks_progress_line_due(&p));
}
