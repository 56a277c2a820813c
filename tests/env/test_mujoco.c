/* A missing MuJoCo library: this program compiles physics.c with the path of a library that does
 * not exist. */
#include "config.h"

#undef KS_LIBMUJOCO
#define KS_LIBMUJOCO "/nowhere/libmujoco.so"
#include "env/physics.c"

#include "env/env.h"
#include "test.h"

TEST(test_missing_library)
{
    struct ks_env *env;

    assert_fails(ks_mujoco_load(), KS_MISSING, "/nowhere/libmujoco.so");
    assert_fails(ks_mujoco_load(), KS_MISSING, "make deps");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_MISSING, "MUJOCO_DIR");
    assert_int_equal(ks_exit_status(KS_MISSING), 2);
}
