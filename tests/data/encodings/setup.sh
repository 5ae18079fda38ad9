# Creates the objects that the rules in rules.txt refer to by name. Runs in the network namespace, with ipset and nfacct.
set -e
ipset create corpus-net hash:net
ipset create corpus-net6 hash:net family inet6
ipset create corpus-port hash:ip,port timeout 0
ipset create corpus-port6 hash:ip,port family inet6 timeout 0
nfacct add ct_state_invalid_dropped_pkts
nfacct add localhost_nps_accepted_pkts
