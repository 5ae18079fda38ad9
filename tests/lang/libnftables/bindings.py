"""Runs commands by Debian's python3-nftables, and prints their results."""

from nftables import Nftables

nft = Nftables()


def run(commands):
    print((nft.cmd(commands)))


def fails(commands):
    """Texts of errors differ, except for the kernel's."""
    code, output, error = nft.cmd(commands)
    first = error.splitlines()[0]
    print(commands, code, repr(output), first if "o such file or directory" in first or "Could not" in first else "")


run(
    "add table inet t;"
    "add chain inet t c { type filter hook input priority 0; };"
    "add rule inet t c tcp dport { 22, 80 } counter accept"
)
for switch in [
    nft.set_handle_output,
    nft.set_stateless_output,
    nft.set_numeric_prio_output,
    nft.set_numeric_proto_output,
    nft.set_numeric_time_output,
    nft.set_service_output,
    nft.set_guid_output,
    nft.set_json_output,
]:
    print(switch.__name__, switch(True))
    run("list ruleset")
    print(switch(False))
fails("list table inet nope")
fails("add rule inet t c tcp dprot 22")
fails("delete chain inet t nope")
fails("create table inet t")
fails("include \"no-such-file\"")
print(nft.json_cmd({"nftables": [{"add": {"table": {"family": "ip", "name": "x"}}}]}))
print(nft.json_cmd({"nftables": [{"list": {"tables": {}}}]}))
print(nft.json_cmd({"nftables": [{"delete": {"table": {"family": "ip", "name": "y"}}}]})[:2])
nft.set_dry_run(True)
print(nft.get_dry_run())
run("delete table inet t")
nft.set_dry_run(False)
run("list tables")
nft.set_debug("netlink")
run("add rule inet t c ip saddr 192.0.2.1")
nft.set_debug(0)
nft.set_json_output(True)
nft.set_echo_output(True)
nft.set_handle_output(True)
print(nft.json_cmd({"nftables": [{"add": {"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [{"accept": None}]}}}]}))
