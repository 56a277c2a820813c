/* Runs kappascope-audit, for tests. */
#ifndef KS_TEST_AUDITOR_H
#define KS_TEST_AUDITOR_H

#include "analyzer.h"
#include "example_checkpoint.h"

static inline int audit(const char *arguments)
{
    return run_program("kappascope-audit", arguments);
}

/* Teardown of a group of tests: audits make folders in the scratch folder. */
static inline int remove_all(void **state)
{
    char command[600];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_folder);
    return system(command);
}

#endif
