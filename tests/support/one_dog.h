/* A test fixture: one dog environment shared by all tests, as compiling its model takes 0.5 s. */
#ifndef KS_TEST_ONE_DOG_H
#define KS_TEST_ONE_DOG_H

#include <stdio.h>

#include "test.h"

#include "env/domain.h"

static struct ks_env *trot;

static inline int set_up(void **state)
{
    (void)state;
    if (ks_env_new("dog-trot", NULL, &trot) == KS_OK)
        return 0;
    fprintf(stderr, "%s\n", ks_error_text());
    return -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    ks_env_free(trot);
    return 0;
}

#endif
