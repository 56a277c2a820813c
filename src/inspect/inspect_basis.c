#include "inspect/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "inspect/lines.h"
#include "lanczos/basis_about.h"

ks_status ks_inspect_basis(const char *path, FILE *out)
{
    struct ks_basis_about about;
    char *next = NULL;

    KS_TRY(ks_basis_look(path, &about));
    ks_line_print(out, "kept basis", "%s", path);
    ks_line_print(out, "Lanczos steps", "%zu complete, checksums verified", about.steps);
    ks_line_print(out, "vectors", "%zu numbers of %zu bytes each", about.length,
                  about.number_bytes);
    if (about.extra > 0)
        ks_line_print(out, "further bytes", "%zu, of an interrupted or damaged step", about.extra);
    ks_title_print(out, "What the steps belong to");
    for (char *line = strtok_r(about.fingerprint, "\n", &next); line;
         line = strtok_r(NULL, "\n", &next)) {
        char *value = strchr(line, ' ');

        if (value)
            *value++ = '\0';
        ks_line_print(out, line, "%s", value ? value : "");
    }
    free(about.fingerprint);
    return KS_OK;
}
