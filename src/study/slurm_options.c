/* The user's options for sbatch. */
#include <stdlib.h>

#include <popt.h>

#include "core/memory.h"
#include "study/shell.h"
#include "study/slurm.h"

ks_status ks_slurm_add_options(struct ks_slurm *s, const char *text)
{
    const char **word = NULL;
    int n = 0;
    ks_status status = KS_OK;

    KS_TRY(ks_shell_check("--sbatch", text));
    if (poptParseArgvString(text, &n, &word) != 0)
        return ks_fail(KS_USAGE, "--sbatch: expected options for sbatch, found '%s'", text);
    for (int i = 0; i < n && status == KS_OK; i++) {
        status = ks_grow(s->n_options, sizeof *s->option, &s->room, &s->option);
        if (status == KS_OK)
            status = ks_copy_string(word[i], &s->option[s->n_options]);
        if (status == KS_OK)
            s->n_options++;
    }
    free(word);
    return status;
}

void ks_slurm_clear(struct ks_slurm *s)
{
    for (size_t i = 0; i < s->n_options; i++)
        free(s->option[i]);
    free(s->option);
    s->option = NULL;
    s->n_options = s->room = 0;
}
