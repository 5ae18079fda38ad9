#!/bin/sh
# Captures the .bin files next to this script, each in a separate network namespace.
# Needs root, python3, iptables-legacy, ip6tables-legacy and arptables-legacy (Debian: iptables, arptables).
set -eu
cd "$(dirname "$0")"
export XTABLES_LOCKFILE="${TMPDIR:-/tmp}/xtables.lock"

if [ $# -eq 0 ]; then
    for case in initial ipv4 ipv6 arp; do
        unshare -n "$0" "$case"
    done
    exit
fi

case $1 in
initial)
    ./capture.py ipv4 nat ipv4-nat-initial.bin
    ./capture.py ipv6 filter ipv6-filter-initial.bin
    ./capture.py arp filter arp-filter-initial.bin
    ;;
ipv4)
    iptables-legacy-restore -c <<'END'
*filter
:INPUT DROP [5:300]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [18446744073709551615:18446744073709551614]
:EMPTY - [0:0]
:JUMPED - [0:0]
:THE-LONGEST-CHAIN-NAME-HAS28 - [0:0]
:final-return - [0:0]
[1:60] -A INPUT -s 192.0.2.0/24 -d 198.51.100.7/32 -i eth0 -p tcp -m tcp --dport 22 -m comment --comment "two matches" -j ACCEPT
[2:120] -A INPUT ! -s 203.0.113.0/25 ! -i eth+ ! -p udp -j JUMPED
[3:180] -A INPUT -f -g THE-LONGEST-CHAIN-NAME-HAS28
[4:240] -A INPUT -m comment --comment "counts only"
[5:300] -A INPUT -j QUEUE
[6:360] -A FORWARD -o wg0 -j LOG --log-prefix "a target of 64 bytes"
[7:420] -A FORWARD -j EMPTY
[8:480] -A JUMPED -p icmp -j REJECT --reject-with icmp-port-unreachable
[9:540] -A JUMPED -j RETURN
[10:600] -A JUMPED -j DROP
[11:660] -A THE-LONGEST-CHAIN-NAME-HAS28 -j MARK --set-xmark 0x4000/0x4000
[12:720] -A final-return -d 192.0.2.1/32 -j DROP
[13:780] -A final-return -j RETURN
COMMIT
END
    ./capture.py ipv4 filter ipv4-filter.bin
    ;;
ipv6)
    ip6tables-legacy-restore -c <<'END'
*mangle
:PREROUTING ACCEPT [1:2]
:INPUT ACCEPT [3:4]
:FORWARD DROP [5:6]
:OUTPUT ACCEPT [7:8]
:POSTROUTING ACCEPT [9:10]
:MARKS - [0:0]
[11:12] -A PREROUTING -s 2001:db8::/32 ! -d 2001:db8::1/128 -i eth0 -p tcp -m tcp --dport 443 -j MARKS
[13:14] -A POSTROUTING -o eth+ -p ipv6-icmp -g MARKS
[15:16] -A MARKS -m mark --mark 0x8000/0x8000 -j DROP
[17:18] -A MARKS -j MARK --set-xmark 0x1/0xffffffff
COMMIT
END
    ./capture.py ipv6 mangle ipv6-mangle.bin
    ;;
arp)
    arptables-legacy -P FORWARD DROP
    arptables-legacy -N GATEWAY
    arptables-legacy -A INPUT -i eth0 -s 192.0.2.1 --opcode 1 -j GATEWAY
    arptables-legacy -A OUTPUT -d ! 198.51.100.0/24 -o eth+ --h-length 6 -j mangle --mangle-ip-s 192.0.2.9
    arptables-legacy -A GATEWAY --source-mac 02:00:00:00:00:01 -j ACCEPT
    arptables-legacy -A GATEWAY -j DROP
    ./capture.py arp filter arp-filter.bin
    ;;
esac
