#include "inspect/inspect.h"

#include <stdlib.h>

#include "inspect/layers.h"
#include "inspect/lines.h"
#include "net/arch.h"

/* Without a width the description is checked for inputs of one column, which some layers refuse. */
static ks_status parse(const char *path, size_t inputs, struct ks_networks *networks)
{
    ks_status status = KS(arch_parse)(networks->text, path, inputs > 0 ? inputs : 1,
                                      &networks->arch);
    char said[1024];

    if (status == KS_OK || inputs > 0)
        return status;
    snprintf(said, sizeof said, "%s", ks_error_text());
    return ks_fail(status, "%s (checked for one input column: --inputs D gives their number)",
                   said);
}

/* Those that have a number. */
static size_t count_layers(const struct ks_arch *arch)
{
    size_t n = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        n += !arch->layer[i].kind->uncounted;
    return n;
}

ks_status ks_inspect_architecture(const char *path, size_t inputs, FILE *out)
{
    struct ks_networks networks = {.ensemble = 1};
    ks_status status = KS_OK;
    const struct ks_arch *arch;

    KS_GO(KS(arch_read)(path, &networks.text));
    KS_GO(parse(path, inputs, &networks));
    arch = networks.arch;
    ks_line_print(out, "architecture", "%s", path);
    ks_line_print(out, "layers", "%zu", count_layers(arch));
    if (arch->loss.kind)
        ks_loss_print(out, &arch->loss);
    else if (arch->policy.actions > 0)
        ks_line_print(out, "policy", "%s, %zu actions",
                      arch->policy.shift   ? "shift"
                      : arch->policy.fixed ? "tanh"
                                           : "tanh-gaussian",
                      arch->policy.actions);
    if (inputs == 0) {
        ks_line_print(out, "parameters", "not known without the input's width: --inputs D");
        goto done;
    }
    ks_line_print(out, "inputs", "%zu", inputs);
    ks_line_print(out, "parameters", "%zu", arch->parameters);
    ks_title_print(out, "Layers");
    ks_layers_print(out, &networks, NULL);
done:
    ks_networks_clear(&networks);
    return status;
}
