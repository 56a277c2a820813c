#include "core/processor.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { LENGTH = 128 };

/* Copies the value of a line "model name : ..." of /proc/cpuinfo; false for any other line. */
static bool model_name(const char *line, char name[LENGTH])
{
    const char *colon = strchr(line, ':');

    if (strncmp(line, "model name", 10) != 0 || !colon)
        return false;
    colon += 1 + strspn(colon + 1, " \t");
    snprintf(name, LENGTH, "%.*s", (int)strcspn(colon, "\n"), colon);
    return *name != '\0';
}

const char *ks_processor_name(void)
{
    static _Thread_local char name[LENGTH];
    FILE *file = fopen("/proc/cpuinfo", "r");
    bool found = false;
    struct utsname system;
    char line[512];

    while (file && !found && fgets(line, sizeof line, file))
        found = model_name(line, name);
    if (file)
        fclose(file);
    if (!found)
        snprintf(name, LENGTH, "%s", uname(&system) == 0 ? system.machine : "unknown");
    return name;
}
