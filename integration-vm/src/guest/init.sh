#!/bin/busybox sh
# The first process: switches from the initramfs to the host's files. Writes in the guest do not change them.
set -e
bb=/bin/busybox
fail() { $bb echo "integration-vm: the guest cannot start: $1"; $bb poweroff -f; }
trap 'fail "see above"' EXIT

$bb mkdir -p /proc /sys /dev /host /changes /root
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev
while read -r module; do
    $bb insmod "/modules/$module" || fail "$module"
done < /modules/order
share=trans=virtio,version=9p2000.L,msize=524288
$bb mount -t 9p -o "ro,cache=loose,$share" host /host
$bb mount -t tmpfs tmpfs /changes
$bb mkdir /changes/upper /changes/work
$bb mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work overlay /root

release=$($bb uname -r)
$bb mount -t tmpfs -o mode=1777 tmpfs /root/tmp
$bb mount -t tmpfs -o mode=1777 tmpfs /root/var/tmp
$bb mount -t tmpfs tmpfs /root/run
$bb mkdir -p "/root/lib/modules/$release" /root/run/integration-vm/results /root/run/integration-vm/plan
$bb mount -t 9p -o "ro,cache=loose,$share" modules "/root/lib/modules/$release"
$bb mount -t 9p -o "rw,$share" results /root/run/integration-vm/results
# The program that the kernel calls to load a module.
$bb cp /bin/busybox /run /root/run/integration-vm/
$bb ln -sf /run/integration-vm/busybox /root/run/integration-vm/modprobe
$bb echo /run/integration-vm/modprobe > /proc/sys/kernel/modprobe
for directory in proc sys dev; do
    $bb mount --move "/$directory" "/root/$directory"
done
trap - EXIT
exec $bb switch_root /root /run/integration-vm/busybox sh /run/integration-vm/run
