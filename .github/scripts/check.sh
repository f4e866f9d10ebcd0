#!/usr/bin/env bash
# What action.yml runs: traces and options come in the environment, annotations go to stdout.
set -uo pipefail
shopt -s nullglob globstar
IFS= # names with spaces stay whole

trimmed() { # a line without the space around it, in `line`
    line="${1#"${1%%[![:space:]]*}"}"
    line="${line%"${line##*[![:space:]]}"}"
    [[ -n "$line" ]]
}

traces=()
while read -r line; do
    trimmed "$line" || continue
    if [[ -e "$line" ]]; then
        traces+=("$line")
        continue
    fi
    matched=($line) # expands `*`
    # What matches nothing is handed on, so that a trace that was not made is not passed over.
    if ((${#matched[@]})); then traces+=("${matched[@]}"); else traces+=("$line"); fi
done <<<"${TRACE-}"

options=(--format github)
[[ -z "${SELECT-}" ]] || options+=(--select "$SELECT")
[[ -z "${IGNORE-}" ]] || options+=(--ignore "$IGNORE")
[[ -z "${REQUIRE-}" ]] || options+=(--require "$REQUIRE")
[[ -z "${FAIL_ON-}" ]] || options+=(--fail-on "$FAIL_ON")
[[ -z "${BASELINE-}" ]] || options+=(--baseline "$BASELINE")
while read -r line; do
    ! trimmed "$line" || options+=(--against "$line")
done <<<"${AGAINST-}"
[[ -z "${SARIF-}" ]] || options+=(--also "sarif=$SARIF")
[[ -z "${JUNIT-}" ]] || options+=(--also "junit=$JUNIT")

"$STEPSCOPE" check "${options[@]}" -- "${traces[@]}"
code=$?

{
    echo "exit-code=$code"
    # What code scanning is sent replaces what it had: alerts that nobody looked for would be fixed.
    [[ "$code" == 3 || -z "${SARIF-}" || ! -s "$SARIF" ]] || printf 'sarif=%s\n' "${SARIF//$'\n'/ }"
} >>"${GITHUB_OUTPUT:-/dev/null}"
exit "$code"
