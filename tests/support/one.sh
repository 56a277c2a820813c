#!/bin/sh
# Runs one test program. Several run in parallel, so the output goes to a log and is printed, with the
# seconds, when the program has ended. $TIMES gets the line "STATUS MILLISECONDS PROGRAM".
status=0
started=$(date +%s%N)
"$1" >"$1.log" 2>&1 || status=$?
milliseconds=$((($(date +%s%N) - started) / 1000000))
exec flock "$TIMES" sh -c 'cat "$1.log"; echo "$1: $(($3 / 1000)).$(($3 / 100 % 10)) s"; echo "$2 $3 $1" >>"$TIMES"' \
    sh "$1" $status $milliseconds
