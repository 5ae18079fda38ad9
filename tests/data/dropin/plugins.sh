# Adds and removes a pod with published ports with the plugins of containernetworking, which run the programs in the
# directory $1. Prints the real tool's saves in between, and at the end.
set -e
PATH=$1:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
ip link set lo up
unshare -n sleep 60 &
pod=$!
data=$(mktemp -d)
trap 'kill $pod; rm -r "$data"' EXIT
# Wait until the pod is in its own namespace.
while [ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/$pod/ns/net)" ]; do sleep 0.05; done
export CNI_CONTAINERID=pod1 CNI_NETNS=/proc/$pod/ns/net CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni

plugin() {
    echo "$3" | CNI_COMMAND=$1 "/usr/lib/cni/$2"
}
save() {
    iptables-nft-save | grep -v '^#'
}

net='"cniVersion":"0.4.0","name":"testnet"'
ipam="{\"type\":\"host-local\",\"dataDir\":\"$data\",\"ranges\":[[{\"subnet\":\"10.88.0.0/16\"}]]}"
bridge="{$net,\"type\":\"bridge\",\"bridge\":\"cni0\",\"isGateway\":true,\"ipMasq\":true,\"ipam\":$ipam}"
result=$(plugin ADD bridge "$bridge")
ports='[{"hostPort":8080,"containerPort":80,"protocol":"tcp"},{"hostPort":53,"containerPort":53,"protocol":"udp"}]'
portmap="{$net,\"type\":\"portmap\",\"snat\":true,\"runtimeConfig\":{\"portMappings\":$ports},\"prevResult\":$result}"
firewall="{$net,\"type\":\"firewall\",\"backend\":\"iptables\",\"prevResult\":$result}"
plugin ADD portmap "$portmap" >/dev/null
plugin ADD firewall "$firewall" >/dev/null
plugin CHECK firewall "$firewall"
save
plugin DEL firewall "$firewall"
plugin DEL portmap "$portmap"
plugin DEL bridge "$bridge"
save
