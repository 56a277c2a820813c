/* What happens where MuJoCo's library is missing: this program is linked with a loader that looks
 * for it at a place where nothing is. */
#undef KS_LIBMUJOCO
#define KS_LIBMUJOCO "/nowhere/libmujoco.so"
#include "../src/env/mujoco.c"

#include "env/env.h"
#include "test.h"

static void test_missing_library(void **state)
{
    struct ks_env *env;

    (void)state;
    assert_fails(ks_mujoco_load(), KS_MISSING, "/nowhere/libmujoco.so");
    assert_fails(ks_mujoco_load(), KS_MISSING, "make deps");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_MISSING, "MUJOCO_DIR");
    assert_int_equal(ks_exit_status(KS_MISSING), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
