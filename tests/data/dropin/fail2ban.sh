# Runs Debian's fail2ban from the package unpacked in $2, in the directory $3, with the programs in $1: jails that
# each use a different ban action. Prints its output, and the real tools' saves in between.
set -e
if [ -z "$PRIVATE" ]; then
    export PRIVATE=yes
    exec unshare --mount --pid --fork --kill-child sh "$0" "$@"
fi
package=$2
root=$3
# The mounts are private, and the server ends with this script.
mount -t tmpfs none "$root"
cp -dR "$package/etc/fail2ban" "$root/config"
rm -r "$root/config/jail.d"
: >"$root/empty"
cat >"$root/config/fail2ban.local" <<END
[Definition]
logtarget = $root/log
socket = $root/socket
pidfile = $root/pid
syslogsocket = none
dbfile = None
allowipv6 = yes
END
cat >"$root/config/jail.local" <<END
[DEFAULT]
backend = polling
filter = sshd
logpath = $root/empty
usedns = no
[multiport]
enabled = true
action = iptables-multiport[name=multiport, port="22,80,8000:8010", protocol="tcp,udp"]
[allports]
enabled = true
action = iptables-allports[name=allports, chain=FORWARD]
[oneport]
enabled = true
action = iptables[name=oneport, port=21, blocktype=DROP]
[logged]
enabled = true
action = iptables-multiport-log[name=logged, port="25,143"]
[set]
enabled = true
action = iptables-ipset-proto6[name=set, port="22,443"]
[allset]
enabled = true
action = iptables-ipset-proto6-allports[name=allset, bantime=0]
[legacy]
enabled = true
action = iptables-multiport[name=legacy, port=53, iptables="iptables-legacy <lockingopt>"]
END
export PATH="$1:/usr/sbin:/usr/bin:/sbin:/bin" PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
export PYTHONPATH="$package/usr/lib/python3/dist-packages"
readlink -f "$(command -v iptables)" "$(command -v ip6tables)"

client() {
    echo "\$ fail2ban-client $*"
    code=0
    /usr/bin/python3 "$package/usr/bin/fail2ban-client" -c "$root/config" "$@" 2>&1 || code=$?
    echo "exit code $code"
}
save() {
    for program in iptables-nft ip6tables-nft iptables-legacy; do
        $program-save | grep -v '^#' || true
    done
    ipset list -name | sort
}
# Waits until a command succeeds: the server works asynchronously.
wait_until() {
    tried=0
    until "$@" >"$root/tried" 2>&1; do
        tried=$((tried + 1))
        if [ $tried -gt 300 ]; then
            echo "never so: $*"
            cat "$root/log"
            exit 1
        fi
        sleep 0.1
    done
}
has_rule() {
    { iptables-nft-save && ip6tables-nft-save && iptables-legacy-save; } | grep -qe "$1"
}
has_no_rule() {
    ! has_rule "$1"
}
is_empty() {
    has_no_rule f2b && ! ipset list -name | grep -q f2b
}

client start
for jail in multiport allports oneport logged legacy; do
    client set $jail banip 192.0.2.1
    wait_until has_rule "-A f2b-$jail -s 192.0.2.1/32 "
done
save
client set multiport banip 192.0.2.2 2001:db8::2
wait_until has_rule '-A f2b-multiport -s 192.0.2.2/32 '
wait_until has_rule '-A f2b-multiport -s 2001:db8::2/128 '
client set set banip 198.51.100.3
wait_until ipset test f2b-set 198.51.100.3
client set set banip 2001:db8::3
wait_until ipset test f2b-set6 2001:db8::3
client set allset banip 198.51.100.4
wait_until ipset test f2b-allset 198.51.100.4
save
client banned
client status multiport
client set multiport unbanip 192.0.2.1
wait_until has_no_rule '-A f2b-multiport -s 192.0.2.1/32 '
client set logged unbanip 192.0.2.1
wait_until has_no_rule '-A f2b-logged -s 192.0.2.1/32 '
save
# In all jails, which empties their chains.
client unban --all
wait_until has_no_rule '-A f2b-[a-z]* -s '
save
client set oneport banip 192.0.2.5
wait_until has_rule '-A f2b-oneport -s 192.0.2.5/32 '
client reload oneport
client reload --restart allports
client stop set
save
# Another program removes the chains while the server runs, which creates them again.
iptables -D INPUT -p tcp -m tcp --dport 21 -j f2b-oneport
iptables -F f2b-oneport
iptables -X f2b-oneport
client set oneport banip 192.0.2.6
wait_until has_rule '-A f2b-oneport -s 192.0.2.6/32 '
save
client stop
wait_until is_empty
save
sed -n 's/.*\] *: \(ERROR\|CRITICAL\)/\1/p; s/.*\]: \(ERROR\|CRITICAL\)/\1/p' "$root/log" | sed 's/[0-9a-f]\{8,\}//'
