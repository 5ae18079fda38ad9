# Runs Debian's ufw from the package unpacked in $2, in the directory $3. `iptables` and the other tools are links to
# the programs in $1. Prints its output, its exit codes, and the real tools' saves in between.
set -e
if [ -z "$PRIVATE" ]; then
    export PRIVATE=yes
    exec unshare --mount sh "$0" "$@"
fi
programs=$1
root=$3
# The mounts are private. ufw runs its programs from /usr/sbin, whatever PATH contains.
mount -t tmpfs none "$root"
cp -dR "$2/." "$root"
cp -dR /etc/alternatives "$root/alternatives"
for name in iptables ip6tables; do
    for tool in "" -save -restore; do
        ln -sfn "$programs/$name$tool" "$root/alternatives/$name$tool"
    done
done
mount --bind "$root/alternatives" /etc/alternatives
readlink -f /usr/sbin/iptables /usr/sbin/ip6tables-restore

# Does what the package's own script does after unpacking, but leaves the node's settings alone.
cd "$root/usr/share/ufw"
cp iptables/*.rules ./*.init ufw.conf "$root/etc/ufw"
cd /
: >"$root/sysctl.conf"
sed -i "s|^IPT_SYSCTL=.*|IPT_SYSCTL=$root/sysctl.conf|" "$root/etc/default/ufw"
export PYTHONPATH="$root/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 LC_ALL=C

ufw() {
    echo "\$ ufw $*"
    code=0
    /usr/bin/python3 "$root/usr/sbin/ufw" --rootdir="$root" --datadir="$root" "$@" 2>&1 || code=$?
    echo "exit code $code"
}
save() {
    iptables-nft-save | grep -v '^#'
    ip6tables-nft-save | grep -v '^#'
}

ufw status
ufw allow 22/tcp
ufw allow 'WWW Full'
ufw --force enable
ufw status verbose
save
ufw enable
ufw allow 80,443/tcp
ufw deny 25
ufw reject out 6667/tcp
ufw limit ssh/tcp
ufw limit 2222/tcp comment 'not too often'
ufw allow from 192.0.2.0/24 to any port 53 proto udp
ufw allow from 2001:db8::/32
ufw deny in on lo from 203.0.113.7 to 198.51.100.1 port 1000:2000 proto tcp
ufw insert 1 deny from 203.0.113.9
ufw prepend allow proto esp from 192.0.2.4
ufw route allow in on lo out on lo to 10.0.0.0/8 port 80 proto tcp
ufw route deny log-all from 10.1.0.0/16
ufw allow log 8080/tcp
ufw status numbered
save
ufw delete deny 25
ufw --force delete 2
ufw delete allow 9999/tcp
ufw delete 99
ufw allow 99999
ufw allow no-such-service
ufw default allow routed
ufw default reject incoming
ufw default deny outgoing
ufw logging high
ufw status verbose
save
ufw reload
save
ufw logging off
ufw default allow outgoing
ufw show raw
ufw show user-rules
ufw show builtins
ufw show added
ufw disable
ufw status
save
ufw --force enable
ufw --force reset >/dev/null
ufw status
save
