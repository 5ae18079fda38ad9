# Runs the plan: one line per program, `USER NAME SECONDS COMMAND…`; or `load MODULE…`.
bb=/run/integration-vm/busybox
results=/run/integration-vm/results
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C RUST_BACKTRACE=0
$bb ln -sf /proc/self/fd /dev/fd
$bb mkdir -p /dev/shm /dev/pts /sys/fs/cgroup
$bb mount -t tmpfs -o mode=1777 tmpfs /dev/shm
$bb mount -t devpts devpts /dev/pts
$bb mount -t cgroup2 cgroup2 /sys/fs/cgroup
$bb ip link set lo up
# The limit of an ordinary boot of Debian, which users' processes inherit.
ulimit -n 1048576

$bb touch $results/started
cd "$($bb cat $results/directory)" || $bb poweroff -f
while read -r user name limit command; do
    if [ "$user" = load ]; then
        for module in $name $limit $command; do
            # The kernel has it built in or lacks it; the tests that need it report that.
            $bb modprobe -q "$module" || $bb echo "integration-vm: no module $module"
        done
        continue
    fi
    as=""
    home=/root
    if [ "$user" != root ]; then
        as="/usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups"
        home=/tmp
    fi
    log=$results/$name.$user.log
    start=$($bb cut -d' ' -f1 /proc/uptime)
    # shellcheck disable=SC2086 # lists of words
    HOME=$home $bb timeout -s KILL "$limit" $as $command > $log 2>&1 < /dev/null
    status=$?
    end=$($bb cut -d' ' -f1 /proc/uptime)
    $bb echo "$status $start $end" > "$results/$name.$user.status"
    $bb echo "integration-vm: $name as $user: status $status"
done < $results/plan
$bb cp /proc/modules "$results/modules"
$bb dmesg > "$results/dmesg"
$bb sync
$bb poweroff -f
