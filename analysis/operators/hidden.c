#include "operators/hidden.h"

#include <string.h>

#include <cblas.h>

#include "net/arch.h"

/* The number of parameters that layer i has in theta_h. */
static size_t hidden_of(const struct ks_problem *problem, size_t i)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;
    const struct KS(layer) *l = &arch->layer[i], *next = l + 1;

    if (!(l->kind == &KS(dense) || l->kind == &KS(conv2d)) || l->normed ||
        i + 1 == arch->n_layers || !next->kind->scale_free || ks_arch_opens(arch, i + 1))
        return 0;
    return next->kind->couples_rows && problem->evaluation ? 0 : l->parameters;
}

size_t ks_hidden_parameters(const struct ks_problem *problem)
{
    size_t sum = 0;

    for (size_t i = 0; i < problem->checkpoint->critic.arch->n_layers; i++)
        sum += hidden_of(problem, i);
    return sum;
}

double ks_hidden_dot(const struct ks_problem *problem, const double *a, const double *b)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;
    double sum = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        sum += cblas_ddot((int)hidden_of(problem, i), a + arch->layer[i].offset, 1,
                          b + arch->layer[i].offset, 1);
    return sum;
}

void ks_hidden_project(const struct ks_problem *problem, double *v)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;

    for (size_t i = 0; i < arch->n_layers; i++)
        if (hidden_of(problem, i) == 0)
            memset(v + arch->layer[i].offset, 0, arch->layer[i].parameters * sizeof *v);
}
