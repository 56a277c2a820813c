#include "readers.h"

#include "io/checkpoint_groups.h"

static ks_status read_rest(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    bool target, actor;
    int64_t in = 0;

    KS_TRY(ks_h5_has(h5, "/target", &target));
    KS_TRY(ks_h5_has(h5, "/actor", &actor));
    if (target)
        KS_TRY(ks_networks_read(h5, "/target", c->critic.arch->in, &c->target_critic));
    if (actor) {
        KS_TRY(ks_h5_read_integer(h5, "/actor", "in", 1, &in));
        KS_TRY(ks_networks_read(h5, "/actor", (size_t)in, &c->actor));
    }
    KS_TRY(ks_h5_read_attributes(h5, "/metrics", &c->metrics));
    return ks_h5_read_attributes(h5, "/settings", &c->settings);
}

ks_status try_checkpoint(const char *path, struct ks_checkpoint **out)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(ks_h5_open(path, "kappascope-checkpoint", &h5));
    KS_TRY(ks_checkpoint_read_loss(h5, &c));
    KS_TRY(read_rest(h5, c));
    *out = c, c = NULL;
    return KS_OK;
}

ks_status try_vectors(const char *path, size_t n, size_t *k, double **vectors)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *vectors = NULL;
    KS_TRY(ks_h5_open(path, "kappascope-vector", &h5));
    return ks_vectors_read_open(h5, n, k, vectors);
}
