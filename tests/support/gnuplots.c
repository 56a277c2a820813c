#include "gnuplots.h"

#include "core/process.h"

/* It is looked for once: later another one may stand in its place. */
const char *need_gnuplot(void)
{
    static char path[512];
    char *found = NULL;

    if (!*path && ks_locate_program("gnuplot", &found) != KS_OK)
        skip();
    if (!*path)
        snprintf(path, sizeof path, "%s", found);
    free(found);
    return path;
}

void replace_gnuplot(const char *script)
{
    write_text("bin/gnuplot", text_of("#!/bin/sh\n%s", script));
    assert_int_equal(chmod(scratch("bin/gnuplot"), 0755), 0);
    set_variable("PATH", text_of("%s:%s", scratch("bin"), getenv("PATH")));
}

/* The exit status 3 stands for a format that it cannot draw. */
#define ONLY_SVG "case $3 in *\"format='svg'\"*) ;; *) exit 3 ;; esac\n"

void draw_svg_alone(const char *more)
{
    replace_gnuplot(
        text_of(ONLY_SVG "exec '%s' \"$1\" \"$2\" \"$3; %s\" \"$4\"\n", need_gnuplot(), more));
}

void draw_nothing(void)
{
    replace_gnuplot(ONLY_SVG "file=${3#*output_file=\\'}\n"
                             "printf '<svg></svg>\\n\\n' >\"${file%%\\'*}\"\n");
}
