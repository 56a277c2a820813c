/* Tests of tasks whose models may not be installed. */
#ifndef KS_SUITES_H
#define KS_SUITES_H

#include <stdbool.h>
#include <string.h>

#include "test.h"

#include "env/env.h"

/* Whether the models of this task's suite are there; if not, says what is skipped. MyoSuite's and
 * HumanoidBench's may be missing: `make deps` installs the others. */
static inline bool suite_is_there(const char *task)
{
    struct ks_env_about about;
    struct ks_env *tried = NULL;
    ks_status status = ks_env_new(task, NULL, &tried);

    ks_env_free(tried);
    assert_true(ks_env_about_task(task, &about));
    if (status == KS_MISSING && (strcmp(about.suite, "myosuite") == 0 || about.source))
        print_message("skipped: %s\n", ks_error_text());
    else
        assert_ok(status);
    return status == KS_OK;
}

#endif
