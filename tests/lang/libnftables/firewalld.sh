#!/bin/sh
# Runs firewalld on a private bus, and changes its rules. Prints a line at each checkpoint, and goes on after a line on
# standard input.
# Needs a mount namespace of its own, because firewalld writes to /run.
#   firewalld.sh DIRECTORY FIREWALLD PYTHON_FIREWALL: an empty directory, and the unpacked packages
set -eu
directory=$1 firewalld=$2
export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$directory/bus" PYTHONPATH="$3/usr/lib/python3/dist-packages"

mount -t tmpfs tmpfs /run
mkdir "$directory/config"
cp "$firewalld/etc/firewalld/firewalld.conf" "$directory/config"
for kind in zones policies icmptypes ipsets services helpers; do
    mkdir "$directory/config/$kind"
done
dbus-daemon --config-file="$directory/bus.conf" --nofork --nopidfile </dev/null >/dev/null &
bus=$!
trap 'kill "$bus" 2>/dev/null || :' EXIT
while ! [ -S "$directory/bus" ]; do sleep 0.1; done
/usr/bin/python3 "$firewalld/usr/sbin/firewalld" --nofork --nopid --system-config "$directory/config" \
    --default-config "$firewalld/usr/lib/firewalld" --log-file "$directory/log" </dev/null >/dev/null &
daemon=$!
trap 'kill "$daemon" "$bus" 2>/dev/null || :' EXIT

cmd() {
    /usr/bin/python3 "$firewalld/usr/bin/firewall-cmd" "$@" </dev/null >/dev/null
}
checkpoint() {
    echo "$1"
    read -r _
}

tries=0
until cmd --state 2>/dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 100 ]; then
        cat "$directory/log" >&2
        exit 1
    fi
    sleep 0.1
done
if ! grep -q "/libnftables.so\|_libnftables.so" "/proc/$daemon/maps"; then
    echo "firewalld has not loaded the library" >&2
    exit 1
fi
sed -n 's/.* \(\/.*libnftables.*\)$/library \1/p' "/proc/$daemon/maps" | sort -u
checkpoint started
cmd --zone=public --add-port=8080/tcp
cmd --zone=public --add-rich-rule='rule family=ipv4 source address=192.0.2.0/24 service name=ssh log prefix="x" level=info limit value=3/m accept'
cmd --zone=public --change-interface=eth0
cmd --zone=public --add-masquerade
cmd --zone=public --add-forward-port=port=80:proto=tcp:toport=8080:toaddr=10.0.0.1
cmd --permanent --new-ipset=bad --type=hash:net
cmd --permanent --ipset=bad --add-entry=198.51.100.0/24
cmd --permanent --zone=drop --add-source=ipset:bad
cmd --direct --add-rule ipv6 filter INPUT 0 -p tcp --dport 9 -j ACCEPT
checkpoint opened
cmd --permanent --zone=public --add-service=http
cmd --reload
checkpoint reloaded
cmd --panic-on
checkpoint panicked
cmd --panic-off
checkpoint recovered
kill "$daemon"
wait "$daemon"
checkpoint stopped
