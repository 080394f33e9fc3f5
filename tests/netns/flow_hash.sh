# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# flow_hash.sh: which bucket a flow falls into, twice: as a BPF program for the kernel, and for people who
# ask. `cluster` sources it.

readonly first_bucket=16 # bucket 0 is classid 1:10

# Both: h = addresses (last 32 bits) ^ (sport << 16 | dport), then the 32-bit finaliser of MurmurHash3, so
# that neighbouring ports do not fall into neighbouring buckets. One instruction a line, jumps by label.
flow_classifier() { # BUCKETS
  cat <<END
        ldh_abs   12
        jeq       2048 ipv4 other
other:  jeq       34525 ipv6 none
ipv4:   ldb_abs   23
        jeq       6 ports4 udp4
udp4:   jeq       17 ports4 none
ports4: ldx_ihl   14
        ld_ind    14
        tax
        ld_abs    26
        xor_x
        tax
        ld_abs    30
        ja        hash
ipv6:   ldb_abs   20
        jeq       6 ports6 udp6
udp6:   jeq       17 ports6 none
ports6: ld_abs    54
        tax
        ld_abs    34
        xor_x
        tax
        ld_abs    50
hash:   xor_x
        tax
        rsh       16
        xor_x
        mul       2246822507
        tax
        rsh       13
        xor_x
        mul       3266489909
        tax
        rsh       16
        xor_x
        and       $(($1 - 1))
        add       $((0x10000 + first_bucket))
        ret_a
none:   ret       0
END
}

# Assembles classic BPF (linux/filter.h) into tc's notation: COUNT,"code jt jf k",...
assemble() {
  awk '
    BEGIN {
      n = 0
      split("ld_abs 32 ldh_abs 40 ldb_abs 48 ld_ind 64 ldx_ihl 177 tax 7 xor_x 172 rsh 116 mul 36 and 84 " \
            "add 4 jeq 21 ja 5 ret 6 ret_a 22", pair)
      for (i = 1; i in pair; i += 2) code[pair[i]] = pair[i + 1]
    }
    $1 ~ /:$/ { at[substr($1, 1, length($1) - 1)] = n; $1 = ""; $0 = $0 }
    { op[n] = $1; k[n] = $2; yes[n] = $3; no[n] = $4; n++ }
    END {
      printf "%d", n
      for (i = 0; i < n; i++) {
        if (op[i] == "ja") k[i] = at[k[i]] - i - 1
        jt = op[i] == "jeq" ? at[yes[i]] - i - 1 : 0
        jf = op[i] == "jeq" ? at[no[i]] - i - 1 : 0
        printf ",%d %d %d %s", code[op[i]], jt, jf, k[i] == "" ? 0 : k[i]
      }
      print ""
    }'
}

# No subshells: a host has hundreds of flows.
last_word() { # ADDRESS: sets word to its last 32 bits; the two ends of our subnets differ only there
  if [[ $1 == *:* ]]; then
    word=$((16#${1##*:}))
  else
    local IFS=. bytes
    # shellcheck disable=SC2206
    bytes=($1)
    word=$((bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]))
  fi
}

flow_bucket() { # SOURCE SPORT DESTINATION DPORT BUCKETS: sets bucket
  local word h
  last_word "$1"
  h=$((word ^ ($2 << 16 | $4)))
  last_word "$3"
  h=$((h ^ word))
  h=$(((h ^ h >> 16) * 2246822507 & 0xffffffff))
  h=$(((h ^ h >> 13) * 3266489909 & 0xffffffff))
  # shellcheck disable=SC2034 # the caller's
  bucket=$(((h ^ h >> 16) & ($5 - 1)))
}
