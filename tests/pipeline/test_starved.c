/* Analyses of which one allocation fails: they end with a message, write no file and leak nothing.
 */
#include <unistd.h>

#include "core/memory.h"
#include "critics.h"
#include "io/scout.h"
#include "pipeline/pipeline.h"
#include "scratch.h"

static ks_status analyze(const struct ks_spectrum_options *o, const char *output)
{
    struct ks_pipeline p = {.options = o, .path = scratch("critic.h5"), .quiet = true};
    ks_status status = ks_pipeline_open(&p);

    if (status == KS_OK)
        status = o->eigenvectors > 0 ? ks_pipeline_eigenvectors(&p, output)
                                     : ks_pipeline_spectrum(&p);
    ks_pipeline_close(&p);
    return status;
}

/* Every eighth allocation after the first ones, since an analysis has many. */
static void starve(const struct ks_spectrum_options *o)
{
    for (struct starved s = {.least = 40}; starving(&s); s.n += s.n / 8) {
        s.status = analyze(o, scratch("vectors.h5"));
        if (s.status == KS_OK)
            continue;
        assert_contains(ks_error_text(), "out of memory");
        assert_int_not_equal(access(scratch("vectors.h5"), F_OK), 0);
    }
}

TEST(test_starved)
{
    static const char critic[] = "dense 6\nlayernorm\nrelu\ndense 4\nloss ce min=-5 max=5\n";
    struct ks_spectrum_options o = ks_spectrum_options_defaults();

    ks_scout_only_if_asked();
    assert_ok(ks_checkpoint_write(
        scratch("critic.h5"),
        keep_checkpoint(random_critic(critic, (struct critic_sizes){2, 5, 4, 10, 6}, 63)), false));
    o.order = 5;
    o.residual = 10; /* eigenvectors are found at once */
    starve(&o);
    o.gradient_probe = true;
    starve(&o);
    o.complement = true;
    starve(&o);
    o.gradient_probe = o.complement = false;
    o.eigenvectors = 1;
    starve(&o);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
