# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# tap.sh: what test scripts print: the lines of the Test Anything Protocol (version 14), which it numbers and counts, and last
# the sum, which scripts/check reads. Programs in Python use tap.py.
#
#   tap_ok NAME [REMARK]              "ok 1 - NAME (REMARK)"
#   tap_not_ok NAME [LOG [REPEAT]]    "not ok 1 - NAME"; the end of the file LOG and the command that repeats the test in lines with "#"
#   tap_skip NAME WHY                 "ok 1 - NAME # SKIP WHY"
#   tap_skip_all WHY                  no test can run: ends the script
#   tap_program NAME STATUS OUTPUT [REPEAT]
#                                     one line for a program, whose own tests the sum counts: its exit status and the file it has
#                                     printed: TAP or a sum; one test if neither
#   tap_end                           "1..1" and "1 passed, 0 failed, 0 skipped"; false if a test has failed, or there was none

tap_lines=0 tap_passed=0 tap_failed=0 tap_skipped=0

tap_ok() {
  echo "ok $((++tap_lines)) - $1${2:+ ($2)}"
  ((++tap_passed))
}

tap_not_ok() {
  echo "not ok $((++tap_lines)) - $1"
  [[ ! ${2:-} ]] || tail -n 40 "$2" | awk '{ print "# " $0 }'
  [[ ! ${3:-} ]] || echo "# repeat: $3"
  ((++tap_failed))
}

tap_skip() {
  echo "ok $((++tap_lines)) - $1 # SKIP $2"
  ((++tap_skipped))
}

tap_skip_all() {
  echo "1..0 # SKIP $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 77
}

# cmocka's lines of skipped tests begin with "not ok". A program that dies prints no line for the test it died in.
tap_program() {
  local passed failed skipped name
  read -r passed failed skipped < <(LC_ALL=C awk -v status="$2" '
    /^(not )?ok .*# *SKIP/ { skipped++; next }
    /^ok / { passed++ }
    /^not ok / { failed++ }
    /^1\.\.[0-9]+/ { has_tests = 1 }
    /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { passed = $1; failed = $3; skipped = $5; has_tests = 1 }
    END {
      if (status != 0 && status != 77 && !failed) failed = 1
      if (!passed && !failed && !skipped) {
        if (status == 77) skipped = 1; else if (has_tests) failed = 1; else passed = 1
      }
      print passed + 0, failed + 0, skipped + 0
    }' "$3")
  name="$1 ($passed passed, $failed failed, $skipped skipped)"
  if ((failed > 0)); then
    tap_not_ok "$name, status $2" <(tap_failures "$3") "${4:-}"
    failed=$((failed - 1))
  else
    tap_ok "$name"
    passed=$((passed - 1))
    sed -nE 's/^ok [0-9]+ - (.*) # SKIP (.*)/# skipped: \1: \2/p; s/^1\.\.0 # SKIP /# skipped: /p; /^# skipped: /p' "$3" | sort -u
  fi
  tap_passed=$((tap_passed + passed)) tap_failed=$((tap_failed + failed)) tap_skipped=$((tap_skipped + skipped))
}

# What failed and why: TAP has the reason behind the line, fail_msg of cmocka before it, a sanitizer a report of its own. What is
# not known by these ends where the program died.
tap_failures() { # OUTPUT
  grep -aE -B 4 -A 8 '^not ok|^ERROR: |ERROR: [A-Za-z]*Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$1" | head -n 40 || tail -n 12 "$1"
}

tap_end() {
  echo "1..$tap_lines"
  echo "$tap_passed passed, $tap_failed failed, $tap_skipped skipped"
  ((tap_failed == 0 && tap_lines > 0))
}
