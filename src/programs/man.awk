# A manual page from what --help prints, whose lines stay as they are: awk -v version=VERSION -f man.awk
function escaped(line)
{
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    return line ~ /^[.']/ ? "\\&" line : line
}

function section(title)
{
    print (open ? ".fi\n" : "") ".SH " title "\n.nf"
    open = 1
}

NR == 2 { # "  NAME - what it does", below the heading NAME
    printf ".TH %s 1 \"\" \"KappaScope %s\"\n.SH NAME\n%s\n", toupper($1), version, escaped(substr($0, 3))
}
NR <= 2 { next }
/^[A-Z][A-Z ]+$/ { section($0); next }
/^Options:$/ { section("OPTIONS"); next }
{ sub(/^Usage: /, ""); print escaped($0) }
